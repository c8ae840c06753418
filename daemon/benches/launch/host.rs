//! The machine and the moment, as far as they matter to a reader of the figures.

use std::fs;

use chrono::{DateTime, Utc};
use headstart_shared::units::Bytes;
use serde::Serialize;

/// The machine and the moment.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Host {
    /// When the benchmark began.
    pub began: DateTime<Utc>,
    /// The version of Headstart.
    pub version: &'static str,
    /// `uname -r`.
    pub kernel: String,
    /// The processor's name.
    pub processor: String,
    /// Processors that may be used.
    pub processors: usize,
    /// Memory in all.
    pub memory: Bytes,
    /// The distribution.
    pub system: String,
    /// Processes that were running or waiting for a processor in the minute before: above 1, others disturb.
    pub load: f64,
}

impl Host {
    /// Looks around.
    pub(crate) fn look() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let value = |text: &str, key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key));
            line.map(|rest| rest.trim_matches([' ', '\t', ':', '=', '"']).to_owned())
        };
        let unknown = || "unknown".to_owned();
        let kib = value(&read("/proc/meminfo"), "MemTotal:")
            .and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
        Self {
            began: Utc::now(),
            version: env!("CARGO_PKG_VERSION"),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            processor: value(&read("/proc/cpuinfo"), "model name").unwrap_or_else(unknown),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            memory: Bytes(kib.unwrap_or(0) * 1024),
            system: value(&read("/etc/os-release"), "PRETTY_NAME").unwrap_or_else(unknown),
            load: read("/proc/loadavg").split(' ').next().and_then(|one| one.parse().ok()).unwrap_or(0.0),
        }
    }
}
