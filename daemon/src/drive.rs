//! Which drives a file system is on, and what the kernel says about them.
//!
//! A file system's device is rarely the drive: partitions, LVM, dm-crypt, md and loop devices are in between, and btrfs
//! spreads over several. [`Drives::of`] walks down through `/sys` to what is at the bottom.
//!
//! What is said here is what the kernel's flags say. A flag can be wrong (a virtual machine calls an SSD rotational),
//! so where the drive is virtual it is called that, and nothing is concluded from the flag.

use std::fmt;
use std::path::PathBuf;

use headstart_shared::units::Bytes;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::recording::DeviceNumber;
use crate::sys::readahead::MAX_CHUNK;

mod walk;

/// What a drive is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Discs and a head: a seek costs as much as a megabyte.
    Spinning,
    /// No moving parts.
    Flash(Flash),
    /// A drive of a virtual machine, or memory: what is behind it cannot be known from here.
    Virtual,
}

/// How flash is attached, which decides how many requests it can work on at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Flash {
    /// PCI Express, deep queues.
    Nvme,
    /// SATA or SAS, 32 requests.
    Sata,
    /// eMMC or an SD card: few channels, slow requests.
    Emmc,
    /// USB, UFS or anything else.
    Unknown,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Spinning => "spinning",
            Self::Flash(Flash::Nvme) => "flash (NVMe)",
            Self::Flash(Flash::Sata) => "flash (SATA)",
            Self::Flash(Flash::Emmc) => "flash (eMMC)",
            Self::Flash(Flash::Unknown) => "flash",
            Self::Virtual => "virtual",
        })
    }
}

/// The class called by a name on a command line: `hdd`, `emmc`, `sata`, `nvme`, `flash`, `virtual`.
impl std::str::FromStr for Class {
    type Err = UnknownClass;

    fn from_str(name: &str) -> Result<Self, UnknownClass> {
        Ok(match name {
            "hdd" | "spinning" => Self::Spinning,
            "emmc" | "sd" => Self::Flash(Flash::Emmc),
            "sata" | "ssd" => Self::Flash(Flash::Sata),
            "nvme" => Self::Flash(Flash::Nvme),
            "flash" => Self::Flash(Flash::Unknown),
            "virtual" => Self::Virtual,
            _ => return Err(UnknownClass(name.to_owned())),
        })
    }
}

/// A word that names no class of drive.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no class of drive called {0:?}; there are hdd, emmc, sata, nvme, flash and virtual")]
pub struct UnknownClass(pub String);

/// One layer between a file system and a drive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// The kernel's name: `dm-0`.
    pub name: String,
    /// What it is, in words: `encryption (dm-crypt)`.
    pub what: String,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.what)
    }
}

/// A drive as the kernel describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drive {
    /// The kernel's name: `sda`, `nvme0n1`, `mmcblk0`.
    pub name: String,
    /// Its number.
    pub device: DeviceNumber,
    /// What it is made of.
    pub class: Class,
    /// The manufacturer's name for it, where the kernel has one.
    pub model: Option<String>,
    /// The active I/O scheduler: `none`, `mq-deadline`, `bfq`, `kyber`.
    pub scheduler: Option<String>,
    /// The read-ahead window of the device that the file system is on, in KiB: a setting of that layer, not of the drive.
    pub read_ahead_kb: Option<u64>,
    /// The largest request of that same device, in KiB.
    pub max_sectors_kb: Option<u64>,
    /// Requests that the scheduler holds.
    pub requests: Option<u32>,
    /// Requests that the drive works on at once, where it says so.
    pub queue_depth: Option<u32>,
    /// The layers from the file system's device down to the drive, which is not among them.
    pub path: Vec<Layer>,
}

/// What a scheduler makes of the I/O priority of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorityEffect {
    /// It is honoured.
    Honoured,
    /// It makes no difference.
    None,
    /// The scheduler is not known.
    Unknown,
}

impl Drive {
    /// The most that one call of `readahead(2)` brings in from this drive's file system, never below 4 KiB.
    #[must_use]
    pub fn max_readahead(&self) -> Bytes {
        let kib = self.read_ahead_kb.max(self.max_sectors_kb);
        Bytes(kib.map_or(MAX_CHUNK, |kib| kib.saturating_mul(1024)).max(4096))
    }

    /// The same drive taken for one of another class, to see what would be planned for that.
    #[must_use]
    pub fn as_if(self, class: Class) -> Self {
        Self { class, ..self }
    }

    /// Whether the I/O priority of a thread matters on this drive.
    #[must_use]
    pub fn priority_effect(&self) -> PriorityEffect {
        match self.scheduler.as_deref() {
            Some("bfq" | "mq-deadline") => PriorityEffect::Honoured,
            Some(_) => PriorityEffect::None,
            None => PriorityEffect::Unknown,
        }
    }

    /// The same in words.
    #[must_use]
    pub fn priority_remark(&self) -> String {
        let name = &self.name;
        match (self.priority_effect(), self.scheduler.as_deref().unwrap_or_default()) {
            (PriorityEffect::Honoured, scheduler) => {
                format!("I/O priorities are honoured on {name} ({scheduler})")
            }
            (PriorityEffect::None, scheduler) => format!(
                "I/O priorities make no difference on {name}: its scheduler is {scheduler}, and only bfq and \
                 mq-deadline look at them"
            ),
            (PriorityEffect::Unknown, _) => {
                format!(
                    "whether I/O priorities make a difference on {name} is not known: it names no scheduler"
                )
            }
        }
    }
}

/// Why the drives of a file system are not known.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DriveError {
    /// sysfs has no such device.
    #[error("the kernel knows no block device {device} (looked at {}); is /sys mounted?", path.display())]
    NoDevice {
        /// The device.
        device: DeviceNumber,
        /// Where it should be.
        path: PathBuf,
    },
    /// The file system has no block device, or none that can be told.
    #[error("the block devices of {source_name} ({fs_type}) are not known: {why}")]
    NoBlockDevice {
        /// What was mounted.
        source_name: String,
        /// Its type.
        fs_type: String,
        /// What was found instead.
        why: String,
    },
    /// The file system lives in memory (zram, ramdisk): there is nothing to read ahead.
    #[error("{name} is memory, not a drive: there is nothing to read ahead")]
    Memory {
        /// The device.
        name: String,
    },
    /// The layers lead in a circle or too deep.
    #[error("{name} has more layers below it than any real system; the tree in /sys is damaged")]
    TooDeep {
        /// The device at which the walk ended.
        name: String,
    },
}

/// The drives of one file system, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drives {
    list: Vec<Drive>,
}

impl Drives {
    /// All of them.
    #[must_use]
    pub fn all(&self) -> &[Drive] {
        &self.list
    }

    /// The one that decides how to read: a spinning one if there is any, since its seeks cost most.
    #[must_use]
    pub fn deciding(&self) -> &Drive {
        let spinning = self.list.iter().find(|drive| drive.class == Class::Spinning);
        spinning.unwrap_or(&self.list[0])
    }
}

#[cfg(test)]
mod tests;
