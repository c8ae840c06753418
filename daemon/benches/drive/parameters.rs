//! The four drives, in figures.
//!
//! They stand for classes of hardware, not for products: a desktop hard disk of the 2010s, the soldered eMMC of a
//! cheap laptop, a SATA SSD and an `NVMe` SSD of the middle class.

use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// The class of drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// `NVMe` SSD: 64 channels, 75 µs, 3 GB/s.
    Nvme,
    /// SATA SSD: 32 channels, 110 µs, 530 MB/s.
    Sata,
    /// eMMC: 4 channels, 350 µs, 160 MB/s.
    Emmc,
    /// Hard disk: 7200 rpm, seek 0.8–17 ms by distance, 120 MB/s, nearest of 32 first.
    Hdd,
}

/// How a drive moves data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// A head over platters.
    Spinning(Spinning),
    /// Flash chips behind a controller.
    Flash(Flash),
}

/// A spinning drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spinning {
    /// Turns of the platters in a minute.
    pub turns_per_minute: u32,
    /// The seek to a neighbouring track.
    pub shortest_seek: Duration,
    /// The seek over all tracks.
    pub longest_seek: Duration,
    /// The media rate.
    pub bytes_per_second: u64,
    /// Requests the drive itself chooses from (native command queueing).
    pub queue_depth: usize,
    /// A hole ahead of the head that is shorter than this, in bytes, is let pass instead of being sought over.
    pub pass_over: u64,
    /// With at least this many other requests to choose from, half of the rotational delay is saved.
    pub rotation_choice: usize,
}

/// A flash drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flash {
    /// Requests that are read from the chips at the same time.
    pub channels: usize,
    /// How long one request occupies a channel.
    pub latency: Duration,
    /// The rate of the link that all share.
    pub bytes_per_second: u64,
}

impl Spinning {
    /// The time of one turn.
    #[must_use]
    pub fn turn(&self) -> Duration {
        Duration::from_mins(1) / self.turns_per_minute.max(1)
    }
}

impl Mechanism {
    /// The most bytes that the drive delivers in a second.
    #[must_use]
    pub fn bytes_per_second(&self) -> u64 {
        match self {
            Self::Spinning(drive) => drive.bytes_per_second,
            Self::Flash(drive) => drive.bytes_per_second,
        }
    }
}

impl Kind {
    /// All of them, the fastest first.
    pub const ALL: [Self; 4] = [Self::Nvme, Self::Sata, Self::Emmc, Self::Hdd];

    /// The drive's figures.
    #[must_use]
    pub fn mechanism(self) -> Mechanism {
        let flash = |channels, micros, bytes_per_second| {
            Mechanism::Flash(Flash { channels, latency: Duration::from_micros(micros), bytes_per_second })
        };
        match self {
            Self::Nvme => flash(64, 75, 3_000_000_000),
            Self::Sata => flash(32, 110, 530_000_000),
            Self::Emmc => flash(4, 350, 160_000_000),
            Self::Hdd => Mechanism::Spinning(Spinning {
                turns_per_minute: 7200,
                shortest_seek: Duration::from_micros(800),
                longest_seek: Duration::from_millis(17),
                bytes_per_second: 120_000_000,
                queue_depth: 32,
                pass_over: 256 << 10,
                rotation_choice: 4,
            }),
        }
    }

    /// Whether the kernel is told that the drive spins.
    #[must_use]
    pub fn rotational(self) -> bool {
        matches!(self.mechanism(), Mechanism::Spinning(_))
    }

    /// The I/O scheduler that distributions choose for such a drive.
    #[must_use]
    pub fn scheduler(self) -> &'static str {
        if self.rotational() { "mq-deadline" } else { "none" }
    }

    /// The figures in words, for a report.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Nvme => "64 channels, 75 µs, 3 GB/s",
            Self::Sata => "32 channels, 110 µs, 530 MB/s",
            Self::Emmc => "4 channels, 350 µs, 160 MB/s",
            Self::Hdd => "7200 rpm, seek 0.8–17 ms, 120 MB/s, nearest of 32 first, mq-deadline",
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Nvme => "nvme",
            Self::Sata => "sata",
            Self::Emmc => "emmc",
            Self::Hdd => "hdd",
        })
    }
}
