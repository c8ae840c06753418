//! What starts need, learned from what runs touched. Pure: a profile and a recording in, a profile out.
//!
//! # History
//! Each range keeps which of the last [`REMEMBERED`] runs used it. Ranges are cut page-exactly where histories
//! differ, and neighbours with the same history whose first need lies within [`NEAR`] are one range. Equal runs
//! therefore cost no more ranges than one recording has touches, runs that differ fewer than twice the touches of all
//! that are remembered, and the cuts of an odd run heal when it is forgotten.
//!
//! What none of the last [`FORGET_AFTER`] runs used is dropped, and a file or device without ranges with it. That loses
//! nothing: by then a use in the next run would not make it wanted either ([`is_wanted`]).
//!
//! # What is no sign of disuse
//! A history shifts only with a run that could have shown the use. Otherwise the run counts together with the run
//! before it: what it shows used is marked, what it does not show stays as it was. [`Evidence`] says when.
//!
//! # First need
//! The earliest time, leaking: an earlier one is taken at once, a later one moves the remembered time a quarter of the
//! way. Late costs a start the wait for the page and early costs it almost nothing, so the earliest is the right bias,
//! and a median, which is late in half of the runs, is not. But an earliest that is never forgotten keeps one odd run
//! for ever; this one has forgotten nine tenths of it after eight runs. All runs of a range scale alike (a prefetched
//! start is faster throughout), and the rule commutes with scaling, so the order among ranges is kept.
//!
//! # Changed files
//! A file that is no longer the one recorded loses its ranges and no other's. That starts need it is not forgotten
//! ([`FileProfile::earlier`]), so that an upgrade does not cost a frequently used library its place. Files that the
//! runs themselves write are invalidated the same way, one by one, each time.

mod evidence;
pub mod exclusions;
mod limit;
pub mod ranges;
mod wanted;

use headstart_shared::run::AppId;
use headstart_shared::units::Nanos;

use crate::profile::{
    DeviceProfile, FileProfile, History, MAX_NEED, Profile, RangeUse, file_pages, last, max_pages, path_flaw,
};
use crate::recording::{RecordedDevice, RecordedFile, Recording, Touch};

pub use evidence::Evidence;
pub use wanted::{
    RECENT, Wanted, WantedDevice, WantedFile, WantedRange, is_wanted, is_wanted_structure, wanted,
};

/// Runs that a history remembers. More would show nothing that a plan uses, and keep every odd run's cuts longer.
pub const REMEMBERED: u32 = 8;
const _: () = assert!(RECENT <= REMEMBERED, "what counts must be remembered");

/// What was not used in this many runs that could tell is dropped.
pub const FORGET_AFTER: u32 = RECENT;

/// Neighbouring pages whose first needs are closer than this are needed together. A drive reads 10 to 300 MB in it, so
/// an order finer than this would be lost in what is in flight at once.
pub const NEAR: Nanos = Nanos(100_000_000);

/// Learns from one more run. A profile of another app or page size is not continued.
///
/// With a valid app and page size the result keeps every invariant of [`Profile::verify`], whatever the recording
/// holds; what would not fit its limits is left out, the least used first.
///
/// Whether the run was one to learn from (it was not stopped half-way, nor handed to a running instance) is for the
/// caller to know.
#[must_use]
pub fn learn(previous: Option<Profile>, app: &AppId, recording: &Recording) -> Profile {
    let previous = previous.filter(|p| p.app == *app && p.page_size == recording.page_size);
    let mut profile = previous.unwrap_or_else(|| Profile {
        app: app.clone(),
        page_size: recording.page_size,
        runs: 0,
        files: Vec::new(),
        devices: Vec::new(),
    });
    let judge = evidence::Judge::new(&profile, recording);
    profile.files = learn_files(std::mem::take(&mut profile.files), recording, &judge);
    profile.devices = learn_devices(std::mem::take(&mut profile.devices), recording, &judge);
    profile.runs = profile.runs.saturating_add(1);
    limit::limit(&mut profile);
    profile
}

/// Pairs what is known with what was recorded, by path.
fn learn_files(known: Vec<FileProfile>, recording: &Recording, judge: &evidence::Judge) -> Vec<FileProfile> {
    let mut recorded: Vec<&RecordedFile> = recording.files.iter().filter(|f| may_enter(f)).collect();
    recorded.sort_by(|a, b| a.path.cmp(&b.path));
    recorded.dedup_by(|later, first| later.path == first.path);
    let mut recorded = recorded.into_iter().peekable();
    let mut files = Vec::with_capacity(known.len().max(recorded.len()));
    for file in known.into_iter().filter(|f| exclusions::excluded(&f.path).is_none()) {
        while let Some(new) = recorded.next_if(|r| r.path < file.path) {
            files.push(new_file(new, History(0), recording.page_size));
        }
        let seen = recorded.next_if(|r| r.path == file.path);
        files.push(match seen {
            Some(seen) if seen.identity != file.identity => {
                let used = file.ranges.iter().fold(file.earlier, |all, r| all | r.history);
                new_file(seen, History((used.0 << 1) & last(REMEMBERED)), recording.page_size)
            }
            Some(seen) => again(file, &touches(seen, recording.page_size), judge.file_seen()),
            None => {
                let evidence = judge.file_not_seen(&file);
                again(file, &[], evidence)
            }
        });
    }
    files.extend(recorded.map(|new| new_file(new, History(0), recording.page_size)));
    files.retain(|f| !f.ranges.is_empty());
    files
}

/// Whether a recorded file may be part of a profile at all.
fn may_enter(file: &RecordedFile) -> bool {
    path_flaw(&file.path).is_none() && exclusions::excluded(&file.path).is_none()
}

/// What was touched of a file, within what it held at the end of the run.
fn touches(file: &RecordedFile, page_size: u64) -> Vec<Touch> {
    ranges::normalise(&file.touches, file_pages(file.identity.size, page_size))
}

fn new_file(file: &RecordedFile, earlier: History, page_size: u64) -> FileProfile {
    let ranges = merge(&[], &touches(file, page_size), Evidence::Full);
    FileProfile { path: file.path.clone(), identity: file.identity, earlier, ranges }
}

fn again(mut file: FileProfile, touches: &[Touch], evidence: Evidence) -> FileProfile {
    file.ranges = merge(&file.ranges, touches, evidence);
    if evidence == Evidence::Full {
        file.earlier = History((file.earlier.0 << 1) & last(REMEMBERED));
    }
    file
}

/// Pairs devices by file system, since numbers change between boots. A number that another file system now has takes
/// the ranges with it: nothing but the number says what these pages are.
fn learn_devices(
    known: Vec<DeviceProfile>,
    recording: &Recording,
    judge: &evidence::Judge,
) -> Vec<DeviceProfile> {
    let pages = max_pages(recording.page_size);
    let mut recorded: Vec<&RecordedDevice> = recording.devices.iter().collect();
    recorded.sort_by_key(|d| (d.filesystem, d.device));
    recorded.dedup_by_key(|d| (d.filesystem, d.device));
    let mut devices: Vec<DeviceProfile> = Vec::with_capacity(known.len().max(recorded.len()));
    for mut device in known {
        let same = recorded
            .iter()
            .position(|r| (r.filesystem, r.device) == (device.filesystem, device.device))
            .or_else(|| recorded.iter().position(|r| r.filesystem == device.filesystem));
        let seen = same.map(|at| recorded.remove(at));
        if seen.is_none() && recording.devices.iter().any(|r| r.device == device.device) {
            continue;
        }
        let touches = seen.map(|s| ranges::normalise(&s.touches, pages)).unwrap_or_default();
        device.device = seen.map_or(device.device, |s| s.device);
        device.ranges = merge(&device.ranges, &touches, judge.device(&device, &touches));
        devices.push(device);
    }
    devices.extend(recorded.into_iter().map(|new| DeviceProfile {
        device: new.device,
        filesystem: new.filesystem,
        ranges: merge(&[], &ranges::normalise(&new.touches, pages), Evidence::Full),
    }));
    devices.retain(|d| !d.ranges.is_empty());
    devices.sort_by_key(|d| (d.filesystem, d.device));
    devices.dedup_by_key(|d| (d.filesystem, d.device));
    devices
}

/// Lays what one run touched over what is known.
fn merge(known: &[RangeUse], touches: &[Touch], evidence: Evidence) -> Vec<RangeUse> {
    let merged = ranges::overlay(known, touches).into_iter().filter_map(|segment| {
        let history = evidence.next(segment.left.map(|k| k.history), segment.right.is_some());
        let first_need = match (segment.left, segment.right) {
            (Some(known), Some(touch)) => leak(known.first_need, touch.at),
            (Some(known), None) => known.first_need,
            (None, touch) => touch?.at,
        };
        let first_need = first_need.min(MAX_NEED);
        (history.among_last(FORGET_AFTER) > 0).then_some(RangeUse {
            pages: segment.pages,
            first_need,
            history,
        })
    });
    coalesce(merged)
}

/// The earliest need, leaking: see the module's documentation.
fn leak(remembered: Nanos, now: Nanos) -> Nanos {
    Nanos(if now < remembered { now.0 } else { remembered.0 + (now.0 - remembered.0) / 4 })
}

/// Joins neighbours with the same history that are needed together, the whole within [`NEAR`].
fn coalesce(ranges: impl Iterator<Item = RangeUse>) -> Vec<RangeUse> {
    let mut out: Vec<RangeUse> = Vec::new();
    let mut latest = Nanos(0);
    for range in ranges {
        if let Some(open) = out.last_mut()
            && open.pages.end == range.pages.start
            && open.history == range.history
            && latest.max(range.first_need) - open.first_need.min(range.first_need) <= NEAR
        {
            open.pages.end = range.pages.end;
            open.first_need = open.first_need.min(range.first_need);
            latest = latest.max(range.first_need);
        } else {
            latest = range.first_need;
            out.push(range);
        }
    }
    out
}

#[cfg(test)]
mod tests;
