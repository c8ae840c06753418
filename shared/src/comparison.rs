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
    /// Cold starts that were recorded while they were timed, if asked for: beside the cold ones they show what recording
    /// costs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recorded: Vec<TimedRun>,
    /// The time of the very first start, if it found nearly nothing in memory: a true cold start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found_cold: Option<Nanos>,
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
    /// Events that the recorder lost during them: pages may be missing from the profile.
    #[serde(default)]
    pub lost_events: u64,
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

/// Why a document is not a comparison that this version can show. The caller adds which file it was.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// Not JSON at all, or cut short.
    #[error("not a result of headstartctl: {0}. Measure again: headstartctl try APP")]
    NotJson(#[source] serde_json::Error),
    /// Written by a newer Headstart.
    #[error(
        "written by a newer Headstart (format {found}; this one reads up to {FORMAT}). Update this program, or measure again with this version"
    )]
    Newer {
        /// The version of the format that was found.
        found: u64,
    },
    /// JSON, but not what this format holds.
    #[error("a damaged result of headstartctl: {0}. Measure again: headstartctl try APP")]
    Damaged(#[source] serde_json::Error),
}

impl Comparison {
    /// Reads a comparison from JSON. The version of the format is looked at first, so that what a newer Headstart wrote
    /// is called newer and not damaged.
    ///
    /// # Errors
    /// If the document is not JSON, is newer, or is not a comparison.
    pub fn from_json(json: &[u8]) -> Result<Self, FormatError> {
        let value: serde_json::Value = serde_json::from_slice(json).map_err(FormatError::NotJson)?;
        let found = value.get("format").and_then(serde_json::Value::as_u64);
        match found {
            Some(found) if found > u64::from(FORMAT) => Err(FormatError::Newer { found }),
            _ => serde_json::from_value(value).map_err(FormatError::Damaged),
        }
    }

    /// The comparison as indented JSON with a line feed at its end.
    ///
    /// # Errors
    /// None in practice: every value of this type has a form in JSON.
    pub fn to_json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn what_is_written_is_read_again() {
        let sample = sample::troubled();
        assert_eq!(Comparison::from_json(sample.to_json().unwrap().as_bytes()).unwrap(), sample);
    }

    #[test]
    fn each_kind_of_bad_document_is_told_apart() {
        let kind = |json: &str| Comparison::from_json(json.as_bytes()).unwrap_err().to_string();
        assert!(kind("").starts_with("not a result"));
        assert!(kind("{\"format\": 1").starts_with("not a result"));
        assert!(kind("{\"format\": 1}").starts_with("a damaged result"));
        assert!(kind("[]").starts_with("a damaged result"));
        assert!(kind("{\"format\": 2, \"runs\": 7}").starts_with("written by a newer Headstart (format 2;"));
        let negative = sample::faster().to_json().unwrap().replace("\"rounds\": 5", "\"rounds\": -5");
        assert!(kind(&negative).contains("-5"));
        let nested = "[".repeat(100_000);
        assert!(kind(&nested).starts_with("not a result"), "a deep document must not overflow the stack");
    }
}
