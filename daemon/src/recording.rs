//! What one run touched: the output of `trace`, the input of `learn`. Pure data.

use std::path::PathBuf;

use headstart_shared::units::Nanos;
use serde::{Deserialize, Serialize};

/// A half-open range of page numbers within one file or block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PageRange {
    /// The first page.
    pub start: u64,
    /// The page after the last one; always greater than `start`.
    pub end: u64,
}

impl PageRange {
    /// The number of pages.
    #[must_use]
    pub fn len(self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Whether the range holds no page. Ranges in recordings and profiles never are.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }
}

/// A kernel device number, as `major:minor` in mountinfo and sysfs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DeviceNumber {
    /// The major number.
    pub major: u32,
    /// The minor number.
    pub minor: u32,
}

impl std::fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// Which file this is, beyond its name: replaced, truncated or rewritten content never matches.
///
/// `filesystem` is `statfs(2)`'s `f_fsid`: on ext4 and btrfs it comes from the UUID (and the subvolume), so it
/// survives a reboot that renumbers devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileIdentity {
    /// The file system, from `statfs(2)`.
    pub filesystem: u64,
    /// The inode number.
    pub inode: u64,
    /// The size in bytes.
    pub size: u64,
    /// The time of the last change of content, nanoseconds since 1970.
    pub mtime: i64,
}

/// Pages touched together, and when the first of them was first needed, since the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Touch {
    /// The pages.
    pub pages: PageRange,
    /// When they were first needed.
    pub at: Nanos,
}

/// One regular file of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedFile {
    /// Where it is in the daemon's own mount namespace. Absolute, no links, not necessarily UTF-8.
    #[serde(with = "crate::path_text")]
    pub path: PathBuf,
    /// Which file it was at the end of the recording.
    pub identity: FileIdentity,
    /// What of it was touched: sorted by page, disjoint.
    pub touches: Vec<Touch>,
}

/// File-system structures (inode tables, directories, extent trees) that a run had read, as pages of the block device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedDevice {
    /// The device at the time of the recording.
    pub device: DeviceNumber,
    /// The file system on it, as in [`FileIdentity::filesystem`].
    pub filesystem: u64,
    /// What of it was touched: sorted by page, disjoint.
    pub touches: Vec<Touch>,
}

/// How a recording was made; the finest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// `filemap` tracepoints including fault, `get_pages` and `map_pages` (Linux 6.10 and later).
    Touched,
    /// `mm_filemap_add_to_page_cache` alone: what was brought in, the kernel's own read-ahead included.
    Added,
    /// No tracefs: opens by fanotify, then what of these files is resident.
    Resident,
}

/// Everything one run touched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    /// Bytes in a page.
    pub page_size: u64,
    /// How it was made.
    pub backend: Backend,
    /// Whether the run was prefetched: what was not read because it was there already is then no sign of disuse.
    pub prefetched: bool,
    /// Regular files, sorted by path.
    pub files: Vec<RecordedFile>,
    /// Block devices whose file-system structures were read.
    pub devices: Vec<RecordedDevice>,
    /// Events that the kernel dropped for want of buffer space.
    pub lost_events: u64,
    /// Touched pages whose file could not be named, and are therefore missing.
    pub unnamed_pages: u64,
}
