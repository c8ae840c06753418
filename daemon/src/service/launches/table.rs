//! Which launches are going on, and which of the next ones are watched. Pure.
//!
//! Every start that is seen is counted somewhere: watched, part of a launch that is watched, a second start of an app that
//! is starting, of no app, or gone by unwatched ([`Counts`]). Their sum is the number of starts seen.

use headstart_shared::run::AppId;

use crate::watch::processes::ProcessKey;
use crate::watch::start::Monotonic;

/// Launches that are watched at the same time. Each has a thread that samples its processes.
pub const AT_ONCE: usize = 4;
/// Starts of one app within [`BURST_SPAN`] that are looked at. A person does not start an app more often.
pub const BURST: u32 = 8;
/// The span of [`BURST`] in nanoseconds.
pub const BURST_SPAN: u64 = 1_000_000_000;

/// An app of a user.
pub type Owned = (u32, AppId);

/// A launch that is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ongoing {
    /// Whose and which.
    pub app: Owned,
    /// Its first process.
    pub process: ProcessKey,
}

/// What is to be done about a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Watch it.
    Watch,
    /// A program of a launch that is watched.
    Part,
    /// Another start of an app that is just starting: whichever instance wins, this one is no launch.
    Again,
    /// Too many at once.
    Unwatched,
}

/// Starts seen, by what was done about them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Watched.
    pub watched: u64,
    /// Programs of launches that were watched.
    pub parts: u64,
    /// Second starts of an app that was starting.
    pub again: u64,
    /// Gone by, because too many came at once.
    pub unwatched: u64,
    /// Of no app: a program that several share, another user's, or a process that was gone before it could be looked at.
    pub others: u64,
}

impl Counts {
    /// All starts seen.
    #[must_use]
    pub fn starts(&self) -> u64 {
        self.watched + self.parts + self.again + self.unwatched + self.others
    }
}

/// The launches that are going on.
#[derive(Debug, Default)]
pub struct Table {
    ongoing: Vec<Ongoing>,
    /// The starts of an app in the present span, which began at the moment beside.
    spans: Vec<(Owned, Monotonic, u32)>,
    counts: Counts,
}

impl Table {
    /// Whether starts of this app come so fast that they are let go by before anything is read about them.
    #[must_use]
    pub fn is_burst(&mut self, app: &Owned, at: Monotonic) -> bool {
        self.spans.retain(|(_, began, _)| at.since(*began).0 < BURST_SPAN);
        if let Some((_, _, starts)) = self.spans.iter_mut().find(|(known, ..)| known == app) {
            *starts += 1;
            return *starts > BURST;
        }
        self.spans.push((app.clone(), at, 1));
        false
    }

    /// Counts a start that goes by unwatched.
    pub fn let_go(&mut self) {
        self.counts.unwatched += 1;
    }

    /// Counts a start that is of no app.
    pub fn pass(&mut self) {
        self.counts.others += 1;
    }

    /// Takes a start. `is_part` tells whether it belongs to a launch that is going on; it is asked only of those of its
    /// user.
    pub fn admit(&mut self, start: Ongoing, is_part: impl Fn(&Ongoing) -> bool) -> Admission {
        let (uid, _) = start.app;
        if self.ongoing.iter().any(|o| o.app.0 == uid && (o.process == start.process || is_part(o))) {
            self.counts.parts += 1;
            return Admission::Part;
        }
        if self.ongoing.iter().any(|o| o.app == start.app) {
            self.counts.again += 1;
            return Admission::Again;
        }
        if self.ongoing.len() >= AT_ONCE {
            self.counts.unwatched += 1;
            return Admission::Unwatched;
        }
        self.counts.watched += 1;
        self.ongoing.push(start);
        Admission::Watch
    }

    /// A launch is over.
    pub fn over(&mut self, process: ProcessKey) {
        self.ongoing.retain(|o| o.process != process);
    }

    /// What was seen since the beginning.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The launches that are going on.
    #[must_use]
    pub fn ongoing(&self) -> &[Ongoing] {
        &self.ongoing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(uid: u32, app: &str, pid: i32) -> Ongoing {
        Ongoing { app: (uid, AppId(app.into())), process: ProcessKey { pid, started: 1 } }
    }

    #[test]
    fn a_program_that_a_launch_executes_is_part_of_it_whatever_app_it_looks_like() {
        let mut table = Table::default();
        assert_eq!(table.admit(start(1, "writer", 10), |_| false), Admission::Watch);
        assert_eq!(table.admit(start(1, "writer", 10), |_| false), Admission::Part);
        assert_eq!(table.admit(start(1, "base", 11), |o| o.process.pid == 10), Admission::Part);
        assert_eq!(table.admit(start(2, "writer", 12), |_| true), Admission::Watch, "another user's");
    }

    #[test]
    fn a_second_start_while_the_first_goes_on_is_no_launch() {
        let mut table = Table::default();
        let first = start(1, "gimp", 10);
        let _ = table.admit(first.clone(), |_| false);
        assert_eq!(table.admit(start(1, "gimp", 20), |_| false), Admission::Again);
        table.over(first.process);
        assert_eq!(table.admit(start(1, "gimp", 20), |_| false), Admission::Watch);
    }

    #[test]
    fn starts_of_one_app_beyond_a_burst_go_by() {
        let mut table = Table::default();
        let app = (1, AppId("x".into()));
        let burst = (0..20).filter(|i| table.is_burst(&app, Monotonic(*i * 1_000_000))).count();
        assert_eq!(burst, 20 - BURST as usize);
        assert!(!table.is_burst(&(2, AppId("x".into())), Monotonic(20_000_000)), "another user's");
        assert!(!table.is_burst(&app, Monotonic(BURST_SPAN + 20_000_000)), "the next second");
    }

    proptest::proptest! {
        #[test]
        fn every_start_is_counted_once(starts in proptest::collection::vec((0_u32..3, 0_u8..5, 0_i32..9), 0..200)) {
            let mut table = Table::default();
            for (i, (uid, app, pid)) in starts.iter().enumerate() {
                let process = start(*uid, &app.to_string(), *pid);
                if i % 7 == 0 {
                    table.over(process.process);
                }
                table.admit(process, |_| false);
                proptest::prop_assert!(table.ongoing().len() <= AT_ONCE);
            }
            proptest::prop_assert_eq!(table.counts().starts(), starts.len() as u64);
        }
    }
}
