//! A launch in daily use: who it was, how it began, what it cost, and whether it counts.
//!
//! The record of one launch ([`Launch`]) is what the history keeps for years; its [`Timeline`] is what is needed to draw
//! it and is kept for the latest ones only.
//!
//! All moments are spans since the program's exec, on the monotonic clock.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::run::{AppId, Milestone};
use crate::units::{Bytes, Nanos};

/// The format of [`Timeline`] in JSON.
pub const TIMELINE_FORMAT: u32 = 1;

/// What Headstart did about a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arm {
    /// It was read ahead.
    Prefetched,
    /// It was left alone on purpose, by lot, to compare with.
    HeldOut,
    /// It was left alone for another reason: nothing learned yet, switched off, paused.
    Off,
}

/// How much of what a launch needs was in memory when it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Temperature {
    /// Little: at most [`COLD_UP_TO`].
    Cold,
    /// Between cold and warm.
    Lukewarm,
    /// Nearly all: at least [`WARM_FROM`].
    Warm,
    /// There is no profile to compare with.
    Unknown,
}

/// A launch is cold when at most this share of its profile was cached.
pub const COLD_UP_TO: f64 = 0.35;
/// A launch is warm when at least this share of its profile was cached.
pub const WARM_FROM: f64 = 0.9;

impl Temperature {
    /// The temperature of a launch of whose profile this share (0 to 1) was cached.
    #[must_use]
    pub fn of(cached: Option<f64>) -> Self {
        match cached {
            None => Self::Unknown,
            Some(share) if share <= COLD_UP_TO => Self::Cold,
            Some(share) if share >= WARM_FROM => Self::Warm,
            Some(_) => Self::Lukewarm,
        }
    }
}

/// Why a launch does not count for a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Exclusion {
    /// It was handed over to an instance that was running already: a *hot* start.
    Hot,
    /// The machine slept during it.
    Suspended,
    /// Files of its profile were replaced while it went on, or shortly before.
    Upgrading,
    /// Others kept the drive or the processor busy.
    ForeignLoad,
    /// It was recorded, which costs it something.
    Recorded,
    /// It ended or was ended before any milestone.
    EndedEarly,
    /// No milestone was seen in time.
    NoMilestone,
    /// Memory ran short, so reading ahead was stopped half-way.
    ShortOfMemory,
    /// Too many programs started at once to watch each.
    Burst,
    /// The daemon ended or was replaced while it went on.
    Interrupted,
}

/// What was read ahead for a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadAhead {
    /// Bytes asked for from the drives.
    pub read: Bytes,
    /// Bytes of the plan that were in memory already.
    pub cached: Bytes,
    /// Bytes of `read` that the launch then used; `None` if it was not recorded.
    pub used: Option<Bytes>,
    /// The first request was made this long after the exec.
    pub first_read: Nanos,
    /// The last one was answered this long after the exec.
    pub done: Option<Nanos>,
}

impl ReadAhead {
    /// Bytes that were read for nothing; `None` if the launch was not recorded.
    #[must_use]
    pub fn wasted(&self) -> Option<Bytes> {
        self.used.map(|used| self.read - used)
    }
}

/// What a launch used, up to its last milestone. `None` is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time in user mode.
    pub user: Nanos,
    /// CPU time in the kernel.
    pub system: Nanos,
    /// Time that its threads waited for a drive, summed up (delay accounting,
    /// Documentation/accounting/delay-accounting.rst): more than the wall time where several wait at once.
    pub blocked: Option<Nanos>,
    /// Page faults that waited for a drive.
    pub major_faults: u64,
    /// Bytes its processes had read from drives themselves.
    pub read: Option<Bytes>,
    /// Processes it had.
    pub processes: u32,
}

/// One launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// Its number in the history; 0 before it is stored.
    pub id: u64,
    /// The app.
    pub app: AppId,
    /// When it began.
    pub began: DateTime<Utc>,
    /// What Headstart did.
    pub arm: Arm,
    /// How cold it was.
    pub temperature: Temperature,
    /// The share of its profile that was cached when it began, 0 to 1.
    pub cached: Option<f64>,
    /// The milestones reached, in order of time, each at most once.
    pub milestones: Vec<(Milestone, Nanos)>,
    /// Why it does not count; empty if it does.
    pub exclusions: Vec<Exclusion>,
    /// What it used.
    pub usage: Usage,
    /// What was read ahead for it.
    pub read_ahead: Option<ReadAhead>,
    /// Which version of the app it was: changes with its executable, and means nothing else.
    pub version: u64,
    /// Whether it was recorded to learn from.
    pub recorded: bool,
    /// Whether priorities were changed for it.
    pub tuned: bool,
}

impl Launch {
    /// The time to a milestone.
    #[must_use]
    pub fn time_to(&self, milestone: Milestone) -> Option<Nanos> {
        self.milestones.iter().find(|(reached, _)| *reached == milestone).map(|&(_, at)| at)
    }

    /// Whether it takes part in a comparison of prefetched and held-out launches: cold, by lot, and nothing against it.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.temperature == Temperature::Cold && self.exclusions.is_empty() && self.arm != Arm::Off
    }
}

/// A process of a launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessSpan {
    /// Its number.
    pub pid: i32,
    /// Its parent's; 0 for the first one.
    pub parent: i32,
    /// The file name of what it executes, and of a script that is interpreted the script's.
    pub name: String,
    /// When it was first seen.
    pub began: Nanos,
    /// When it was gone; `None` if it outlived the launch.
    pub ended: Option<Nanos>,
    /// Its CPU time.
    pub cpu: Nanos,
    /// Time that it waited for a drive.
    pub blocked: Option<Nanos>,
    /// Bytes it had read from drives.
    pub read: Option<Bytes>,
}

/// What all processes of a launch together did since the sample before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageSample {
    /// The end of the span that it is of.
    pub at: Nanos,
    /// CPU time.
    pub cpu: Nanos,
    /// Time waited for a drive.
    pub blocked: Option<Nanos>,
    /// Bytes that they had read from drives.
    pub read: Bytes,
    /// Bytes that all of the machine read from drives.
    pub machine_read: Bytes,
}

/// A change of a priority during a launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriorityChange {
    /// When.
    pub at: Nanos,
    /// The process.
    pub pid: i32,
    /// Its name.
    pub name: String,
    /// What it had, as `ionice(1)` writes it.
    pub from: String,
    /// What it was given.
    pub to: String,
    /// Whether it belongs to the launch; else it was a heavy reader beside it.
    pub own: bool,
    /// When it was given back what it had.
    pub restored: Option<Nanos>,
}

/// What is needed to draw a launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// [`TIMELINE_FORMAT`].
    pub format: u32,
    /// The launch.
    pub launch: Launch,
    /// Its processes, in order of their beginning.
    pub processes: Vec<ProcessSpan>,
    /// What they did, in order of time.
    pub samples: Vec<UsageSample>,
    /// Priorities that were changed.
    pub priorities: Vec<PriorityChange>,
}

#[cfg(test)]
mod tests {
    use super::Temperature::{Cold, Lukewarm, Unknown, Warm};
    use super::*;

    #[test]
    fn a_temperature_needs_a_profile() {
        let of = [None, Some(0.0), Some(0.35), Some(0.5), Some(0.9), Some(1.0)].map(Temperature::of);
        assert_eq!(of, [Unknown, Cold, Cold, Lukewarm, Warm, Warm]);
    }
}
