//! Every constant of ordering and carrying out, in one place, so that a benchmark can sweep them.

use std::fmt;

use headstart_shared::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use super::Target;
use crate::drive::{Class, Flash};
use crate::sys::ioprio::IoPriority;

/// By what file content is ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// By the time of first need. Neighbours in a file are merged only if they are needed within this time of each
    /// other, so that a large file used all through a start does not come whole before everything else.
    Need {
        /// The time.
        together: Nanos,
    },
    /// By place on the drive, within bins of need time this wide.
    Place {
        /// The width of a bin.
        bin: Nanos,
    },
}

/// Where file-system structures come in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MetadataOrder {
    /// All of them before everything else.
    First,
    /// Those of the first bin first; those of each later bin ride along in the sweep over the data of the bin before
    /// it. Only with [`Order::Place`]; otherwise as `First`.
    RideAlong,
}

/// How to order and carry out a plan. Anything not given when read from JSON is as for unknown flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tuning {
    /// Threads that carry it out.
    pub workers: u32,
    /// Requests that each of them keeps in flight: before it asks for more it waits for its oldest. 0 means that it
    /// never waits, and the block layer's queue is the only bound. Too many, and the program's own reads wait behind
    /// them.
    pub window: u32,
    /// The largest request. What a drive allows at most is below that where it says so.
    pub chunk: Bytes,
    /// The largest hole between wanted pages of a file that is read rather than left out.
    pub bridge: Bytes,
    /// The same between wanted pages of a block device.
    pub metadata_bridge: Bytes,
    /// By what file content is ordered.
    pub order: Order,
    /// Where file-system structures come.
    pub metadata: MetadataOrder,
    /// How many files are opened ahead of the one that is read, so that opening one, which may wait for its inode, is
    /// not what the reading waits for. `u32::MAX`: all of a bin first, in the order of their inodes.
    pub open_ahead: u32,
    /// The I/O priority of the threads.
    pub priority: IoPriority,
}

impl Tuning {
    /// What suits a class of drives.
    ///
    /// Spinning: a seek with rotation costs 8 to 15 ms, in which 120 MB/s pass by 1 MiB and more; but what is bridged
    /// takes memory and seldom lies on a straight line, so 128 KiB. One thread, or the head moves between the parts of
    /// the plan. NCQ chooses among 32.
    ///
    /// Flash: as many threads as can wait for inodes at the same time without taking the processor from the program,
    /// and as many requests as keep the channels busy. On two processors, starts on modelled drives were as fast with
    /// one or two threads as with any other number, and slower with four and more on `NVMe`, where the processor is what
    /// is short. On modelled eMMC and SATA drives requests of 256 KiB took a tenth less time than of 128 KiB; 512 KiB
    /// gained little more there, and hold up a read of the program for longer; on `NVMe` they save processor time.
    #[must_use]
    pub fn for_class(class: Class) -> Self {
        let flash = Self {
            workers: 2,
            window: 16,
            chunk: Bytes(256 << 10),
            bridge: Bytes(32 << 10),
            metadata_bridge: Bytes(32 << 10),
            order: Order::Need { together: Nanos(20_000_000) },
            metadata: MetadataOrder::First,
            open_ahead: 16,
            priority: IoPriority::BestEffort(2),
        };
        match class {
            Class::Spinning => Self {
                workers: 1,
                window: 32,
                chunk: Bytes(512 << 10),
                bridge: Bytes(128 << 10),
                metadata_bridge: Bytes(256 << 10),
                order: Order::Place { bin: Nanos(2_000_000_000) },
                open_ahead: u32::MAX,
                ..flash
            },
            Class::Flash(Flash::Emmc) => Self { window: 4, ..flash },
            Class::Flash(Flash::Nvme) => Self { chunk: Bytes(512 << 10), bridge: Bytes(16 << 10), ..flash },
            Class::Flash(Flash::Sata | Flash::Unknown) | Class::Virtual => flash,
        }
    }

    /// What suits a drive: as its class, in requests that it takes whole.
    #[must_use]
    pub fn for_target(target: &Target) -> Self {
        let class = Self::for_class(target.class);
        Self { chunk: class.chunk.min(target.max_readahead), ..class }
    }
}

impl Default for Tuning {
    fn default() -> Self {
        Self::for_class(Class::Flash(Flash::Unknown))
    }
}

impl fmt::Display for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.order {
            Order::Need { .. } => f.write_str("in order of first need")?,
            Order::Place { bin } => write!(f, "by place within bins of {bin}")?,
        }
        let threads = if self.workers == 1 { "thread" } else { "threads" };
        write!(
            f,
            ", {} {threads}, requests up to {}, holes up to {} bridged",
            self.workers, self.chunk, self.bridge
        )
    }
}
