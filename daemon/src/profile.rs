//! A profile: what the starts of an app need. Pure data, and the product of `learn`.

use std::path::PathBuf;

use headstart_shared::run::AppId;
use headstart_shared::units::{Nanos, Pages};
use serde::{Deserialize, Serialize};

use crate::recording::{DeviceNumber, FileIdentity, PageRange};

/// Which of the last 32 runs used something: bit 0 is the latest run, set if it did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct History(pub u32);

/// Pages of one file or device that runs need together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeUse {
    /// The pages.
    pub pages: PageRange,
    /// When a run needs the first of them, since its start: the earliest of the runs in the history.
    pub first_need: Nanos,
    /// The runs that used them.
    pub history: History,
}

/// One file of a profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileProfile {
    /// Where it is. Absolute, no links, not necessarily UTF-8.
    pub path: PathBuf,
    /// Which file it was when it was last seen: another one there has lost its ranges.
    pub identity: FileIdentity,
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
    /// The block devices.
    pub devices: Vec<DeviceProfile>,
}

impl Profile {
    /// Pages of file content in the profile, whatever their history.
    #[must_use]
    pub fn pages(&self) -> Pages {
        self.files.iter().flat_map(|f| &f.ranges).map(|r| Pages(r.pages.len())).sum()
    }
}
