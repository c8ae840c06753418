//! What a replay did.

use std::path::PathBuf;

use headstart_shared::units::{Bytes, Nanos};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::opening::Refusal;

/// Bytes asked for, and what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Asked for by the steps that were reached.
    pub requested: Bytes,
    /// Of these, what was in memory before.
    pub already_cached: Bytes,
    /// Of these, what could not be read.
    pub failed: Bytes,
}

impl Traffic {
    /// What the replay brought in. Where the program read the same page at the same moment, it counts here.
    #[must_use]
    pub fn brought_in(&self) -> Bytes {
        self.requested - self.already_cached - self.failed
    }

    fn add(&mut self, other: &Self) {
        self.requested += other.requested;
        self.already_cached += other.already_cached;
        self.failed += other.failed;
    }
}

/// Something that was not read ahead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The file.
    #[serde(with = "crate::path_text")]
    pub path: PathBuf,
    /// Why.
    pub why: Refusal,
}

/// Why a replay stopped before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Stopped {
    /// It was told to.
    Cancelled,
    /// Less memory is available than is to be left.
    MemoryLow,
    /// Tasks are waiting for memory.
    MemoryPressure,
}

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Cancelled => "it was told to stop",
            Self::MemoryLow => "memory became short",
            Self::MemoryPressure => "programs had to wait for memory",
        })
    }
}

/// What a replay did, all plans together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// File content.
    pub data: Traffic,
    /// File-system structures read from block devices. What opening files read is not known.
    pub metadata: Traffic,
    /// Files opened.
    pub files_opened: u64,
    /// Files not read, and why.
    pub skipped: Vec<Skipped>,
    /// From the opening of the gate to the first worker's first step.
    pub reaction: Option<Nanos>,
    /// From the opening of the gate until the last page asked for had arrived. `None` if the gate never opened.
    pub time: Option<Nanos>,
    /// Processor time of the workers.
    pub cpu: Nanos,
    /// Steps carried out.
    pub steps: u64,
    /// Why it stopped before its end, if it did.
    pub stopped: Option<Stopped>,
    /// Remarks in words.
    pub remarks: Vec<String>,
}

/// What one worker did. Its own, so that counting costs nothing.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) data: Traffic,
    pub(super) metadata: Traffic,
    pub(super) files_opened: u64,
    pub(super) steps: u64,
    pub(super) skipped: Vec<Skipped>,
    /// When it began and ended, if it got through the gate.
    pub(super) span: Option<(Nanos, Nanos)>,
    pub(super) cpu: Nanos,
}

/// The monotonic clock.
pub(super) fn now() -> Nanos {
    read(ClockId::Monotonic)
}

/// Processor time of the calling thread.
pub(super) fn thread_cpu() -> Nanos {
    read(ClockId::ThreadCPUTime)
}

fn read(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    Nanos(
        time.tv_sec.unsigned_abs().saturating_mul(1_000_000_000).saturating_add(time.tv_nsec.unsigned_abs()),
    )
}

pub(super) fn sum(
    tallies: Vec<Tally>,
    skipped: Vec<Skipped>,
    remarks: Vec<String>,
    opened: Option<Nanos>,
    stopped: Option<Stopped>,
) -> Account {
    let mut account = Account { skipped, stopped, remarks, ..Account::default() };
    let spans = || tallies.iter().filter_map(|tally| tally.span);
    if let Some(opened) = opened {
        account.reaction = spans().map(|(began, _)| began).min().map(|began| began - opened);
        account.time = spans().map(|(_, ended)| ended).max().map(|ended| ended - opened);
    }
    for tally in tallies {
        account.data.add(&tally.data);
        account.metadata.add(&tally.metadata);
        account.files_opened += tally.files_opened;
        account.steps += tally.steps;
        account.cpu += tally.cpu;
        account.skipped.extend(tally.skipped);
    }
    account
}
