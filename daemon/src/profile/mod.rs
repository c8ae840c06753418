//! A profile: what the starts of an app need. Pure data, and the product of `learn`.

pub mod atomic;
pub mod exchange;
#[cfg(test)]
pub(crate) mod testing;
mod verify;

use std::path::PathBuf;

use headstart_shared::run::AppId;
use headstart_shared::units::{Nanos, Pages};
use serde::{Deserialize, Serialize};

use crate::recording::{DeviceNumber, FileIdentity, PageRange};

pub use verify::{InvalidProfile, MAX_DEVICES, MAX_FILES, MAX_NEED, MAX_RANGES};
pub(crate) use verify::{file_pages, max_pages, path_flaw};

/// Which of the last runs used something: bit 0 is the latest run that could tell, set if it did. What cannot tell
/// (lost events, pages that were cached already) shifts nothing; see [`crate::learn`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct History(pub u32);

impl History {
    /// How many of the last `runs` runs used it.
    #[must_use]
    pub fn among_last(self, runs: u32) -> u32 {
        (self.0 & last(runs)).count_ones()
    }

    /// How many remembered runs used it.
    #[must_use]
    pub fn runs(self) -> u32 {
        self.0.count_ones()
    }

    /// How many runs back the earliest remembered use is; 1 is the latest run, 0 is no use at all.
    #[must_use]
    pub fn reach(self) -> u32 {
        u32::BITS - self.0.leading_zeros()
    }
}

impl std::ops::BitOr for History {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A mask of the last `runs` runs.
pub(crate) fn last(runs: u32) -> u32 {
    1_u32.checked_shl(runs).map_or(u32::MAX, |bit| bit - 1)
}

/// Pages of one file or device that runs need together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeUse {
    /// The pages.
    pub pages: PageRange,
    /// When a run needs the first of them, since its start: the earliest in recent runs.
    pub first_need: Nanos,
    /// The runs that used them.
    pub history: History,
}

/// One file of a profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileProfile {
    /// Where it is. Absolute, no links, not necessarily UTF-8.
    #[serde(with = "crate::path_text")]
    pub path: PathBuf,
    /// Which file it was when it was last seen: another one there has lost its ranges.
    pub identity: FileIdentity,
    /// The runs that used what was at this path before it became this file. An upgrade takes a file's ranges, but not
    /// the knowledge that starts need the file.
    pub earlier: History,
    /// The ranges needed: sorted by page, disjoint.
    pub ranges: Vec<RangeUse>,
}

/// File-system structures of a profile, as pages of the block device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceProfile {
    /// The device when it was last seen.
    pub device: DeviceNumber,
    /// The file system on it: another one there has lost its ranges.
    pub filesystem: u64,
    /// The ranges needed: sorted by page, disjoint.
    pub ranges: Vec<RangeUse>,
}

/// What the starts of one app need.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// The app.
    pub app: AppId,
    /// Bytes in a page; a profile from a kernel with another page size is of no use.
    pub page_size: u64,
    /// Runs it was learned from, in all.
    pub runs: u32,
    /// The files, sorted by path.
    pub files: Vec<FileProfile>,
    /// The block devices, sorted by file system, then by number.
    pub devices: Vec<DeviceProfile>,
}

impl Profile {
    /// Pages of file content in the profile, whatever their history.
    #[must_use]
    pub fn pages(&self) -> Pages {
        self.files.iter().flat_map(|f| &f.ranges).map(|r| Pages(r.pages.len())).sum()
    }
}
