//! What of a profile the next start will probably need.

use headstart_shared::units::{Nanos, Pages};

use super::coalesce;
use crate::profile::{DeviceProfile, FileProfile, History, Profile, RangeUse};
use crate::recording::PageRange;

/// The runs that count when it is judged what recurs.
pub const RECENT: u32 = 5;

/// Whether pages are wanted, by the runs that used them and how many runs (`looks`) could have shown it.
///
/// One run is noisy, and a union of runs gathers the noise of all: in the measurements of 2007 (`GSoC` prefetch, tests
/// 7 and 8) the union of five traces served worse than that of three. What recurs is what pays. So:
///
/// * after one look, everything it showed: there is nothing to compare with, and most of a start recurs;
/// * after two, what the latest showed: a page of the older one alone has already failed to recur, a page of the latest
///   alone has not had the chance to, and at even odds a page too many costs its share of the drive's bandwidth while a
///   page missed costs a wait;
/// * from three on, what at least two of the last five showed: one use among three or more is noise until it recurs,
///   and what a start needs every other time is still found in five.
///
/// Pages that a prefetched run found in memory are no part of `looks` unless the recording could see them touched, since
/// a replay would otherwise confirm or starve itself (it disturbs the tracing of the runs it serves).
#[must_use]
pub fn is_wanted(history: History, looks: u32) -> bool {
    match looks {
        0 | 1 => history.among_last(RECENT) > 0,
        2 => history.among_last(1) > 0,
        _ => history.among_last(RECENT) >= 2,
    }
}

/// Whether pages of a block device are wanted: if any of the recent runs that could tell read them.
///
/// Unlike file content, a structure that is in memory leaves no trace when it is used, and emptying caches leaves many
/// inodes and names behind. So that a run did not read one says little, that it read one says enough; and they are small.
#[must_use]
pub fn is_wanted_structure(history: History) -> bool {
    history.among_last(RECENT) > 0
}

/// What of a profile to read ahead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// Bytes in a page.
    pub page_size: u64,
    /// The files, in the profile's order: by path.
    pub files: Vec<WantedFile<'a>>,
    /// The block devices, in the profile's order.
    pub devices: Vec<WantedDevice<'a>>,
}

/// What of one file to read ahead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedFile<'a> {
    /// Its place in [`Profile::files`].
    pub index: usize,
    /// Its path and identity.
    pub file: &'a FileProfile,
    /// The pages: sorted, disjoint, never empty.
    pub ranges: Vec<WantedRange>,
}

/// What of one block device to read ahead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedDevice<'a> {
    /// Its place in [`Profile::devices`].
    pub index: usize,
    /// Its number and file system.
    pub device: &'a DeviceProfile,
    /// The pages: sorted, disjoint, never empty.
    pub ranges: Vec<WantedRange>,
}

/// Pages to read ahead together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WantedRange {
    /// The pages.
    pub pages: PageRange,
    /// When a start needs the first of them, since its beginning.
    pub first_need: Nanos,
}

impl Wanted<'_> {
    /// Pages of file content.
    #[must_use]
    pub fn file_pages(&self) -> Pages {
        self.files.iter().flat_map(|f| &f.ranges).map(|r| Pages(r.pages.len())).sum()
    }

    /// Pages of file-system structures.
    #[must_use]
    pub fn device_pages(&self) -> Pages {
        self.devices.iter().flat_map(|d| &d.ranges).map(|r| Pages(r.pages.len())).sum()
    }
}

/// Selects what the next start will probably need, by [`is_wanted`].
///
/// Devices are judged by [`is_wanted_structure`]. A file of which only the
/// latest run is known because it changed is judged as a whole, by the runs that used it before the change.
#[must_use]
pub fn wanted(profile: &Profile) -> Wanted<'_> {
    let all = looks(profile.files.iter().flat_map(|f| &f.ranges));
    let files = profile.files.iter().enumerate().filter_map(|(index, file)| {
        let before = if looks(&file.ranges) == 1 { file.earlier } else { History(0) };
        let ranges = select(&file.ranges, |h| is_wanted(h | before, all));
        (!ranges.is_empty()).then_some(WantedFile { index, file, ranges })
    });
    let devices = profile.devices.iter().enumerate().filter_map(|(index, device)| {
        let ranges = select(&device.ranges, is_wanted_structure);
        (!ranges.is_empty()).then_some(WantedDevice { index, device, ranges })
    });
    Wanted { page_size: profile.page_size, files: files.collect(), devices: devices.collect() }
}

/// How many runs back the knowledge of these ranges goes. Where an upgrade replaced everything, this is 1 again, and
/// the first run after it counts like the first of all.
pub(super) fn looks<'a>(ranges: impl IntoIterator<Item = &'a RangeUse>) -> u32 {
    ranges.into_iter().fold(History(0), |all, r| all | r.history).reach()
}

/// The wanted ranges, neighbours that are needed together joined: their histories no longer matter.
fn select(ranges: &[RangeUse], wanted: impl Fn(History) -> bool) -> Vec<WantedRange> {
    let alike = ranges.iter().filter(|r| wanted(r.history)).map(|r| RangeUse { history: History(1), ..*r });
    let joined = coalesce(alike).into_iter();
    joined.map(|r| WantedRange { pages: r.pages, first_need: r.first_need }).collect()
}
