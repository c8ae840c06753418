//! Memory: how much a replay may fill, and when it has to stop.
//!
//! What is read ahead displaces something else once memory is full; then it makes everything slower, itself included.
//! `MemAvailable` (`proc(5)`) says how much there is without displacing; pressure stall information
//! (`Documentation/accounting/psi.rst`) says when tasks have begun to wait for memory. Its running total is used, not the
//! averages: the shortest of these looks back ten seconds, in which a whole start is over.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use headstart_shared::units::{Bytes, Nanos};

use super::account::{Stopped, now};
use crate::roots::Roots;

/// The state of memory at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Memory in all.
    pub total: Bytes,
    /// What can be had without swapping (`MemAvailable`).
    pub available: Bytes,
    /// Time that some task has waited for memory since boot; `None` where the kernel does not count it.
    pub stalled: Option<Nanos>,
}

/// When to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Memory that has to stay available, in per cent of all.
    pub leave_percent: u8,
    /// And never less than this.
    pub leave: Bytes,
    /// Stalls, in per cent of the time between two looks, that are too many.
    pub stalled_percent: u8,
    /// The time between two looks.
    pub every: Nanos,
}

impl Default for Limits {
    /// A twentieth of memory, no less than 96 MiB, stays available; waiting for a tenth of the time is too much.
    fn default() -> Self {
        Self { leave_percent: 5, leave: Bytes(96 << 20), stalled_percent: 10, every: Nanos(50_000_000) }
    }
}

impl Limits {
    /// The bytes that a plan may fill: half of what is available, and nothing of what has to be left.
    #[must_use]
    pub fn budget(&self, memory: &Memory) -> Bytes {
        Bytes(memory.available.0 / 2).min(memory.available - self.floor(memory))
    }

    fn floor(&self, memory: &Memory) -> Bytes {
        Bytes(memory.total.0 / 100 * u64::from(self.leave_percent)).max(self.leave)
    }

    /// Whether to stop, given the state now and at the look before, `passed` ago.
    #[must_use]
    pub fn judge(&self, before: &Memory, after: &Memory, passed: Nanos) -> Option<Stopped> {
        if after.available < self.floor(after) {
            return Some(Stopped::MemoryLow);
        }
        let stalled = after.stalled? - before.stalled?;
        let share = u128::from(stalled.0) * 100;
        (share > u128::from(passed.0) * u128::from(self.stalled_percent)).then_some(Stopped::MemoryPressure)
    }
}

impl Memory {
    /// The state now. What cannot be read is 0 or `None`.
    #[must_use]
    pub fn now(roots: &Roots) -> Self {
        Source::open(roots).read()
    }

    /// From the text of `/proc/meminfo` and `/proc/pressure/memory`.
    #[must_use]
    pub fn parse(meminfo: &str, pressure: Option<&str>) -> Self {
        let field = |name: &str| {
            let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
            Bytes(kib.unwrap_or(0).saturating_mul(1024))
        };
        let stalled = pressure.and_then(|text| {
            let some = text.lines().find(|line| line.starts_with("some "))?;
            let total = some.split_whitespace().find_map(|word| word.strip_prefix("total="))?;
            Some(Nanos(total.parse::<u64>().ok()?.saturating_mul(1000)))
        });
        Self { total: field("MemTotal"), available: field("MemAvailable"), stalled }
    }
}

/// The two files, kept open: reading from their beginning gives the state at that moment.
#[derive(Debug)]
struct Source {
    meminfo: Option<File>,
    pressure: Option<File>,
}

impl Source {
    fn open(roots: &Roots) -> Self {
        let open = |path: &Path| File::open(path).ok();
        Self {
            meminfo: open(&roots.proc.join("meminfo")),
            pressure: open(&roots.proc.join("pressure/memory")),
        }
    }

    fn read(&self) -> Memory {
        // What is looked for stands at the beginning of both.
        let (mut first, mut second) = ([0; 1024], [0; 256]);
        let meminfo = self.meminfo.as_ref().map(|file| beginning(file, &mut first)).unwrap_or_default();
        let pressure = self.pressure.as_ref().map(|file| beginning(file, &mut second));
        Memory::parse(meminfo, pressure)
    }
}

fn beginning<'a>(file: &File, buffer: &'a mut [u8]) -> &'a str {
    let read = file.read_at(buffer, 0).unwrap_or(0);
    std::str::from_utf8(&buffer[..read]).unwrap_or_default()
}

/// Looks at memory now and then, for all workers of a replay together.
#[derive(Debug)]
pub(super) struct Guard {
    limits: Limits,
    source: Source,
    /// When the next look is due. Whichever worker comes first takes it.
    due: AtomicU64,
    last: Mutex<(Nanos, Memory)>,
}

impl Guard {
    pub(super) fn new(roots: &Roots, limits: Limits) -> Self {
        let source = Source::open(roots);
        Self { limits, source, due: AtomicU64::new(0), last: Mutex::default() }
    }

    /// Whether to stop; nearly always answered without a look.
    pub(super) fn check(&self) -> Option<Stopped> {
        let at = now();
        let due = self.due.load(Ordering::Relaxed);
        if at.0 < due {
            return None;
        }
        let next = at + self.limits.every;
        self.due.compare_exchange(due, next.0, Ordering::Relaxed, Ordering::Relaxed).ok()?;
        let memory = self.source.read();
        // Nobody else is here: the next look is due only later. If it is held all the same, that one decides.
        let mut last = self.last.try_lock().ok()?;
        let (before_at, before) = std::mem::replace(&mut *last, (at, memory));
        if memory.total == Bytes(0) {
            // Without a figure there is nothing to judge by.
            return None;
        }
        let before = if before_at == Nanos(0) { memory } else { before };
        self.limits.judge(&before, &memory, at - before_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn memory(available: u64, stalled: Option<u64>) -> Memory {
        Memory { total: Bytes(8192 * MIB), available: Bytes(available * MIB), stalled: stalled.map(Nanos) }
    }

    #[test]
    fn the_kernels_files_are_read() {
        let meminfo = "MemTotal:       16000000 kB\nMemFree:  1 kB\nMemAvailable:    8000000 kB\n";
        let pressure = "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234\nfull avg10=0.00 total=999\n";
        let parsed = Memory::parse(meminfo, Some(pressure));
        assert_eq!((parsed.total.0, parsed.available.0), (16_000_000 * 1024, 8_000_000 * 1024));
        assert_eq!(parsed.stalled, Some(Nanos(1_234_000)));
        assert_eq!(Memory::parse("", None), Memory::default());

        let here = Memory::now(&Roots::default());
        assert!(here.available.0 > 0 && here.available < here.total, "{here:?}");
    }

    #[test]
    fn half_of_what_is_available_and_nothing_of_what_is_to_be_left() {
        let limits = Limits::default();
        assert_eq!(limits.budget(&memory(4000, None)), Bytes(2000 * MIB));
        let little = limits.budget(&memory(500, None));
        assert!(little < Bytes(92 * MIB) && little > Bytes(88 * MIB), "{little}");
        assert_eq!(limits.budget(&memory(300, None)), Bytes(0));
        assert_eq!(limits.budget(&Memory::default()), Bytes(0));
    }

    #[test]
    fn short_memory_and_waiting_tasks_stop_it() {
        let limits = Limits::default();
        let passed = Nanos(50_000_000);
        let judge = |before, after| limits.judge(&before, &after, passed);
        assert_eq!(judge(memory(4000, Some(0)), memory(4000, Some(5_000_000))), None);
        assert_eq!(
            judge(memory(4000, Some(0)), memory(4000, Some(5_000_001))),
            Some(Stopped::MemoryPressure)
        );
        assert_eq!(judge(memory(4000, None), memory(300, None)), Some(Stopped::MemoryLow));
        assert_eq!(judge(memory(4000, None), memory(4000, Some(1 << 40))), None);
    }

    #[test]
    fn a_look_is_taken_only_when_it_is_due() {
        let never = Limits {
            leave_percent: 100,
            leave: Bytes(u64::MAX),
            every: Nanos(u64::MAX),
            ..Limits::default()
        };
        let guard = Guard::new(&Roots::default(), never);
        assert_eq!(guard.check(), Some(Stopped::MemoryLow));
        assert_eq!(guard.check(), None);
        let blind = Guard::new(&Roots { proc: "/nonexistent".into(), ..Roots::default() }, never);
        assert_eq!(blind.check(), None);
    }
}
