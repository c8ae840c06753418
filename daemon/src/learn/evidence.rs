//! What a recording proves. A page that it does not show may have been unused, or used unseen; taking the second for
//! the first would make a profile forget, run by run, just what prefetching does well.
//!
//! | run | files it shows | files it does not show | devices |
//! |---|---|---|---|
//! | `Touched` | full | full | full if cold, else use |
//! | `Added`, cold | full | full | full |
//! | `Added`, prefetched or warm | use | use | use |
//! | `Resident`, not prefetched | full | full | full if cold, else use |
//! | `Resident`, prefetched | new use | use | use |
//! | with lost events | at most use | use | use |
//! | with pages that have no name | as above | use, if all its pages could be among them | as above |
//!
//! `Touched` sees pages of files that were cached already; pages of devices, which hold the file system's own
//! structures, are seen only when they are read in, whatever the backend. A recording does not say how warm its run
//! was, but a run that read in as much as a start is known to need was cold enough to tell: at least half the wanted
//! pages, no matter which, so that a file system that moved its structures is still found out. Lost events hide
//! anything, since one event may stand for a burst. Nameless pages cannot be of a file that the recording names, and
//! hide at most their number: a file of which more was used as usual was not among them.

use crate::learn::wanted::{is_wanted, looks};
use crate::learn::{REMEMBERED, ranges};
use crate::profile::{DeviceProfile, FileProfile, History, Profile, RangeUse, last};
use crate::recording::{Backend, Recording, Touch};

/// What a recording proves about some pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// What it shows was used, and what it does not show was not.
    Full,
    /// What it shows was used; that it does not show something means nothing.
    Use,
    /// What it shows and was not known was used. What was known had been read ahead, and is there for that.
    NewUse,
}

impl Evidence {
    /// The history after this run of pages with the history `known`.
    #[must_use]
    pub fn next(self, known: Option<History>, seen: bool) -> History {
        let latest = u32::from(seen);
        History(match (self, known) {
            (_, None) => latest,
            (Self::Full, Some(h)) => (h.0 << 1 | latest) & last(REMEMBERED),
            (Self::Use, Some(h)) => h.0 | latest,
            (Self::NewUse, Some(h)) => h.0,
        })
    }
}

/// What one recording proves about a profile's parts.
#[derive(Debug)]
pub(super) struct Judge {
    seen: Evidence,
    not_seen: Evidence,
    device: Evidence,
    unnamed: u64,
    /// How far back the profile reaches.
    looks: u32,
}

impl Judge {
    pub(super) fn new(profile: &Profile, recording: &Recording) -> Self {
        let lossless = recording.lost_events == 0;
        let unprefetched = !recording.prefetched;
        let tells = match recording.backend {
            Backend::Touched => true,
            Backend::Added => unprefetched && brought_in_a_start(profile, recording),
            Backend::Resident => unprefetched,
        };
        let full_if = |yes| if yes { Evidence::Full } else { Evidence::Use };
        let seen = match recording.backend {
            Backend::Resident if recording.prefetched => Evidence::NewUse,
            _ => full_if(tells && lossless),
        };
        Self {
            seen,
            not_seen: full_if(tells && lossless),
            device: full_if(unprefetched && lossless),
            unnamed: recording.unnamed_pages,
            looks: looks(profile.files.iter().flat_map(|f| &f.ranges)),
        }
    }

    pub(super) fn file_seen(&self) -> Evidence {
        self.seen
    }

    pub(super) fn file_not_seen(&self, file: &FileProfile) -> Evidence {
        let usual = wanted_pages(&file.ranges, self.looks).max(1);
        if usual <= self.unnamed { Evidence::Use } else { self.not_seen }
    }

    pub(super) fn device(&self, device: &DeviceProfile, touches: &[Touch]) -> Evidence {
        let usual = wanted_pages(&device.ranges, looks(&device.ranges));
        if ranges::pages(touches) >= usual.div_ceil(2) { self.device } else { Evidence::Use }
    }
}

/// Whether a run of the backend that sees only what is brought in was cold enough to tell.
fn brought_in_a_start(profile: &Profile, recording: &Recording) -> bool {
    let looks = looks(profile.files.iter().flat_map(|f| &f.ranges));
    let usual: u64 = profile.files.iter().map(|f| wanted_pages(&f.ranges, looks)).sum();
    let seen: u64 = recording.files.iter().map(|f| ranges::pages(&f.touches)).sum();
    seen >= usual.div_ceil(2)
}

fn wanted_pages(ranges: &[RangeUse], looks: u32) -> u64 {
    ranges.iter().filter(|r| is_wanted(r.history, looks)).map(|r| r.pages.len()).sum()
}
