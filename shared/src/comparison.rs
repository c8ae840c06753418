//! The result of `headstartctl try`: every start that was timed, under which condition, and what was read ahead.
//!
//! This is also the format of `--json`, and of the file that hands the last result to the window. It holds what was
//! observed; medians, intervals and gains are always computed from it ([`Comparison::summary`]), never stored.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::run::{AppId, ColdMethod, Condition, Milestone};
use crate::units::{Bytes, Nanos};

/// The version of the format that this code writes. A reader refuses what is newer.
pub const FORMAT: u32 = 1;

/// One comparison of an app's starts, as observed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Always [`FORMAT`] in what this version writes.
    pub format: u32,
    /// The version of Headstart that measured.
    pub version: String,
    /// When the comparison began.
    pub began: DateTime<Utc>,
    /// What was started.
    pub app: AppId,
    /// Its name for people, from the desktop file, or the command as typed.
    pub name: String,
    /// The command line that was run, escaped where it is not UTF-8.
    pub command: Vec<String>,
    /// When a start counted as over: one milestone for all runs.
    pub milestone: Milestone,
    /// How cold was made.
    pub cold: ColdMethod,
    /// Rounds asked for; fewer are complete when the comparison was stopped early.
    pub rounds: u32,
    /// Starts that count, in the order in which they ran.
    pub runs: Vec<TimedRun>,
    /// Starts that do not count, and why.
    pub left_out: Vec<LeftOut>,
    /// What was read ahead.
    pub prefetch: PrefetchAccount,
    /// The drives the app's files are on, the busiest first.
    pub drives: Vec<DriveSummary>,
    /// The machine.
    pub host: Host,
    /// Remarks a reader needs to judge the figures, in words.
    pub remarks: Vec<String>,
}

/// One start that counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimedRun {
    /// The round, from 1.
    pub round: u32,
    /// The condition of this start.
    pub condition: Condition,
    /// From the moment before exec to the milestone.
    pub time: Nanos,
    /// Bytes that the start's own processes had read from a drive (`/proc/PID/io`), if known.
    pub read: Option<Bytes>,
}

/// One start that does not count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The round, from 1; 0 for a learning run.
    pub round: u32,
    /// The condition of this start.
    pub condition: Condition,
    /// Why it does not count, in words.
    pub reason: String,
}

/// What the prefetched starts read ahead.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PrefetchAccount {
    /// Files in the plan.
    pub files: u64,
    /// Ranges in the plan.
    pub ranges: u64,
    /// Bytes of file content in the plan.
    pub planned: Bytes,
    /// Bytes of directories, inodes and other file-system structures in the plan.
    pub metadata: Bytes,
    /// Bytes of file content that one prefetched start brought in, median over the starts.
    pub read: Bytes,
    /// The part of the bytes read ahead that a recorded prefetched start then touched; `None` if not recorded.
    pub used: Option<Bytes>,
    /// How long the replay itself took, median over the starts.
    pub time: Option<Nanos>,
    /// Learning runs that the profile rests on.
    pub learned_from: u32,
}

/// A drive, in the words shown beside a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DriveSummary {
    /// The kernel's name: `sda`, `nvme0n1`, `mmcblk0`.
    pub name: String,
    /// `spinning` or `flash`.
    pub class: String,
    /// Model name, where the kernel has one.
    pub model: Option<String>,
    /// The active I/O scheduler: `none`, `mq-deadline`, `bfq`.
    pub scheduler: Option<String>,
    /// Bytes of the plan on this drive.
    pub planned: Bytes,
}

/// The machine a comparison ran on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// `uname -r`.
    pub kernel: String,
    /// Usable processors.
    pub cpus: u32,
    /// Memory in all.
    pub memory: Bytes,
}
