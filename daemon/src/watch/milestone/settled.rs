//! When a start has settled: no new pages, no disk reads, and little CPU, for a while.
//!
//! Pure: fed with samples, it says when the quiet began. That instant is the end of the start; the while that had to
//! pass to be sure of it is not part of it.

use std::time::Duration;

use headstart_shared::units::{Bytes, Nanos};

/// What the run used up to a moment; each is a running total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The moment, since exec.
    pub at: Nanos,
    /// Pages touched, where a recorder counts them.
    pub pages: Option<u64>,
    /// Bytes read from a drive, where that may be known.
    pub read: Option<Bytes>,
    /// CPU time.
    pub cpu: Nanos,
}

/// What counts as quiet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quiet {
    /// How long it must last.
    pub span: Duration,
    /// The most CPU time within such a span, as a share of one processor.
    pub cpu_share: f64,
}

impl Default for Quiet {
    /// A second with at most a tenth of a processor: above what blinking cursors and spinners take, below any work.
    fn default() -> Self {
        Self { span: Duration::from_secs(1), cpu_share: 0.1 }
    }
}

/// Finds the quiet in a series of samples.
#[derive(Clone, Debug)]
pub struct Settled {
    quiet: Quiet,
    /// The sample that the current quiet began with.
    since: Option<Sample>,
    last: Option<Sample>,
}

impl Settled {
    /// Nothing sampled.
    #[must_use]
    pub fn new(quiet: Quiet) -> Self {
        Self { quiet, since: None, last: None }
    }

    /// Takes the next sample. `Some`: it has been quiet for long enough, and this is when that began.
    pub fn sample(&mut self, now: Sample) -> Option<Nanos> {
        let now = self.last.map_or(now, |last| never_less(last, now));
        let last = self.last.replace(now);
        let since = match (self.since, last) {
            (Some(since), Some(last)) if !self.broken(since, last, now) => since,
            _ => {
                self.since = Some(now);
                return None;
            }
        };
        (Duration::from(now.at - since.at) >= self.quiet.span).then_some(since.at)
    }

    /// Whether the quiet since `since` is over. Any new page or read ends it; CPU time does when the sum since then is
    /// more than the share allows within the span.
    fn broken(&self, since: Sample, last: Sample, now: Sample) -> bool {
        let more = |a: Option<u64>, b: Option<u64>| matches!((a, b), (Some(a), Some(b)) if b > a);
        let read = |sample: Sample| sample.read.map(|bytes| bytes.0);
        if more(last.pages, now.pages) || more(read(last), read(now)) {
            return true;
        }
        // CPU time is counted in clock ticks of 10 ms: one tick in a short interval proves nothing, the sum does.
        let allowed = self.quiet.span.as_secs_f64() * self.quiet.cpu_share;
        (now.cpu - since.cpu).as_secs_f64() > allowed
    }
}

/// A total that seems to fall (a process was between living and reaped when it was counted) has not.
fn never_less(last: Sample, now: Sample) -> Sample {
    Sample {
        at: now.at,
        pages: last.pages.max(now.pages),
        read: last.read.max(now.read),
        cpu: last.cpu.max(now.cpu),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn at(ms: u64, pages: u64, read: u64, cpu_ms: u64) -> Sample {
        Sample { at: Nanos(ms * MS), pages: Some(pages), read: Some(Bytes(read)), cpu: Nanos(cpu_ms * MS) }
    }

    fn first_quiet(samples: impl IntoIterator<Item = Sample>) -> Option<(Nanos, Nanos)> {
        let mut settled = Settled::new(Quiet::default());
        samples.into_iter().find_map(|s| settled.sample(s).map(|began| (began, s.at)))
    }

    #[test]
    fn the_start_is_over_when_the_quiet_begins_not_when_it_is_proven() {
        let work = (0..20).map(|i| at(i * 50, i * 100, i * 4096, i * 40));
        let quiet = (20..60).map(|i| at(i * 50, 1900, 19 * 4096, 760));
        let (began, proven) = first_quiet(work.chain(quiet)).unwrap();
        assert_eq!(began, Nanos(950 * MS));
        assert_eq!(proven, Nanos(1950 * MS));
    }

    #[test]
    fn a_late_read_begins_the_quiet_anew() {
        let samples = (0..100).map(|i| at(i * 50, 10, u64::from(i >= 15), 0));
        assert_eq!(first_quiet(samples).unwrap().0, Nanos(750 * MS));
    }

    #[test]
    fn new_pages_alone_are_work() {
        let samples = (0..100).map(|i| at(i * 50, u64::min(i, 40), 0, 0));
        assert_eq!(first_quiet(samples).unwrap().0, Nanos(2000 * MS));
    }

    #[test]
    fn a_busy_processor_never_settles_and_a_blinking_cursor_does() {
        assert_eq!(first_quiet((0..400).map(|i| at(i * 50, 0, 0, i * 25))), None);
        assert_eq!(first_quiet((0..400).map(|i| at(i * 50, 0, 0, i))).unwrap().0, Nanos(0));
    }

    #[test]
    fn what_is_not_known_does_not_keep_it_from_settling() {
        let samples =
            (0..100).map(|i| Sample { at: Nanos(i * 50 * MS), pages: None, read: None, cpu: Nanos(0) });
        assert_eq!(first_quiet(samples).unwrap().0, Nanos(0));
    }

    #[test]
    fn totals_that_dip_while_a_process_is_reaped_are_no_work() {
        let samples =
            (0..100).map(|i| at(i * 50, 0, if i == 3 { 50 } else { 100 }, if i == 3 { 5 } else { 10 }));
        assert_eq!(first_quiet(samples).unwrap().0, Nanos(0));
    }
}
