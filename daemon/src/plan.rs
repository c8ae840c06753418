//! A plan: what a profile needs, in the order that suits one drive, within a budget.
//!
//! Pure: wanted pages and the drive's properties go in, a list of steps comes out, which can be printed, stored and
//! compared. Carrying it out is [`crate::replay`]'s business.
//!
//! Order, and why:
//!
//! * File-system structures first: opening 413 cold files costs a spinning drive 0.9 s before a byte of data is read.
//! * Flash: by the time of first need. There is nothing to gain from place, and the program is reading beside us.
//! * Spinning: by place on the drive, within bins of need time, holes read through when that is cheaper than a seek.
//!
//! Invariants of every plan: it covers each wanted page once, unless cut by the budget; what it reads beside these is
//! only holes between them; nothing is beyond the end of a file; the bytes of all steps are within the budget; and a cut
//! plan has lost what is needed last.

use std::fmt;
use std::path::PathBuf;

use headstart_shared::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use crate::drive::{Class, Drive};
use crate::path_text;
use crate::recording::{DeviceNumber, FileIdentity, PageRange};
use crate::sys::fiemap::Extent;

mod budget;
pub mod group;
pub mod locate;
mod order;
mod ranges;
mod tuning;
mod used;

pub use tuning::{MetadataOrder, Order, Tuning};
pub use used::used;

/// Pages that are wanted together, and when the first of them is first needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Need {
    /// The pages.
    pub pages: PageRange,
    /// When they are first needed, since the start of the run.
    pub at: Nanos,
}

/// A file of which pages are wanted. Without ranges it is only opened: its inode is what is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedFile {
    /// Where it is.
    pub path: PathBuf,
    /// Which file it was.
    pub identity: FileIdentity,
    /// What of it is wanted: sorted by page, disjoint.
    pub ranges: Vec<Need>,
    /// When the file itself is first needed; of a file with ranges no later than the first of them.
    pub first_need: Nanos,
    /// Where it is on its drive, for drives on which that matters; empty where it is not known ([`locate`] asks).
    pub extents: Vec<Extent>,
}

/// A block device of which pages with file-system structures are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedDevice {
    /// The device.
    pub device: DeviceNumber,
    /// The file system on it.
    pub filesystem: u64,
    /// Where it begins on the drive, in bytes; 0 where that is not known.
    pub base: u64,
    /// What of it is wanted: sorted by page, disjoint.
    pub ranges: Vec<Need>,
}

/// What is wanted from one drive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The files.
    pub files: Vec<WantedFile>,
    /// The devices.
    pub devices: Vec<WantedDevice>,
}

/// The drive that a plan is for, as far as the plan depends on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The drive's name.
    pub name: String,
    /// What it is made of.
    pub class: Class,
    /// The most that one request may ask for.
    pub max_readahead: Bytes,
}

impl From<&Drive> for Target {
    fn from(drive: &Drive) -> Self {
        Self { name: drive.name.clone(), class: drive.class, max_readahead: drive.max_readahead() }
    }
}

/// A file of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedFile {
    /// Where it is.
    #[serde(with = "crate::path_text")]
    pub path: PathBuf,
    /// Which file it has to be.
    pub identity: FileIdentity,
}

/// A block device of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedDevice {
    /// The device.
    pub device: DeviceNumber,
    /// The file system that has to be on it.
    pub filesystem: u64,
}

/// One thing to do. Indices are into the plan's lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Read pages of a block device.
    Metadata {
        /// The device.
        device: u32,
        /// The pages, of one request.
        pages: PageRange,
    },
    /// Open a file, which brings in its folders' entries and its inode.
    Open {
        /// The file.
        file: u32,
    },
    /// Read pages of a file.
    Read {
        /// The file.
        file: u32,
        /// The pages, of one request.
        pages: PageRange,
        /// When the first of them is needed.
        at: Nanos,
    },
}

impl Step {
    /// The pages that the step reads.
    #[must_use]
    pub fn pages(&self) -> u64 {
        match self {
            Self::Open { .. } => 0,
            Self::Metadata { pages, .. } | Self::Read { pages, .. } => pages.len(),
        }
    }
}

/// What to read ahead from one drive, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Bytes in a page.
    pub page_size: u64,
    /// The drive it is for.
    pub target: Target,
    /// How it was ordered, and how it is to be carried out.
    pub tuning: Tuning,
    /// The files, in the order in which they are first needed.
    pub files: Vec<PlannedFile>,
    /// The devices.
    pub devices: Vec<PlannedDevice>,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// What was wanted and is not in the plan, for want of budget.
    pub left_out: Bytes,
}

impl Plan {
    /// Orders what is wanted from one drive, within a budget.
    #[must_use]
    pub fn new(wanted: &Wanted, page_size: u64, target: Target, tuning: Tuning, budget: Bytes) -> Self {
        order::plan(wanted, page_size, target, tuning, budget)
    }

    /// Bytes of file content that it reads, bridged holes included.
    #[must_use]
    pub fn data(&self) -> Bytes {
        self.sum(|step| matches!(step, Step::Read { .. }))
    }

    /// Bytes of file-system structures that it reads, bridged holes included.
    #[must_use]
    pub fn metadata(&self) -> Bytes {
        self.sum(|step| matches!(step, Step::Metadata { .. }))
    }

    fn sum(&self, which: impl Fn(&&Step) -> bool) -> Bytes {
        let pages = self.steps.iter().filter(which).map(Step::pages).sum::<u64>();
        Bytes(pages.saturating_mul(self.page_size))
    }
}

/// Orders what is wanted from several drives within one budget, which is cut by what is needed last anywhere.
#[must_use]
pub fn plans(wanted: Vec<(Wanted, Target, Tuning)>, page_size: u64, budget: Bytes) -> Vec<Plan> {
    budget::share(wanted, page_size, budget)
}

impl fmt::Display for Plan {
    /// A head line, then a line for each step.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Target { name, class, .. } = &self.target;
        write!(
            f,
            "{name}, {class}: {} files, {} of data in {} requests, {} of metadata; {}",
            self.files.len(),
            self.data(),
            self.steps.iter().filter(|step| matches!(step, Step::Read { .. })).count(),
            self.metadata(),
            self.tuning,
        )?;
        if self.left_out != Bytes(0) {
            write!(f, "; {} left out for want of memory", self.left_out)?;
        }
        for step in &self.steps {
            writeln!(f)?;
            self.fmt_step(step, f)?;
        }
        Ok(())
    }
}

impl Plan {
    fn fmt_step(&self, step: &Step, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = |file: u32| self.files.get(file as usize).map(|file| path_text::to_text(&file.path));
        match step {
            Step::Metadata { device, pages } => {
                let device =
                    self.devices.get(*device as usize).map(|d| d.device.to_string()).unwrap_or_default();
                write!(f, "  metadata  {:>12}  device {device} pages {}..{}", "", pages.start, pages.end)
            }
            Step::Open { file } => match path(*file) {
                Some(path) => write!(f, "  open      {:>12}  {path}", ""),
                None => write!(f, "  open      {:>12}  file {file}, which is not in the plan", ""),
            },
            Step::Read { file, pages, at } => {
                let at = at.to_string();
                match path(*file) {
                    Some(path) => {
                        write!(f, "  read      {at:>12}  {path} pages {}..{}", pages.start, pages.end)
                    }
                    None => write!(f, "  read      {at:>12}  file {file}, which is not in the plan"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
