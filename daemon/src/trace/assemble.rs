//! What is made of a run's events and opens: a [`Recording`].

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;

use super::decode::Decoded;
use super::event::CacheKey;
use super::names::{self, Named, Names};
use super::opens::{self, Opens};
use super::recorder::Recorded;
use super::touched::{self, FileTouches};
use crate::mounts::{Kind, Mount, Mounts};
use crate::opening::identity_of;
use crate::recording::{Backend, PageRange, RecordedDevice, RecordedFile, Recording, Touch};
use crate::roots::Roots;
use crate::sys::residency::{page_size, resident_ranges};
use crate::watch::processes;
use crate::watch::start::Monotonic;

/// What a recording's end needs to know.
pub(super) struct Assembly<'a> {
    pub(super) mounts: &'a Mounts,
    pub(super) roots: &'a Roots,
    /// The last tick before the recording began, by the clock of the file systems' time stamps.
    pub(super) began: SystemTime,
    pub(super) run: Recorded,
}

impl Assembly<'_> {
    /// With tracing.
    pub(super) fn traced(&self, backend: Backend, decoded: Decoded, mut opens: Opens) -> Recording {
        let Decoded { events, lost } = decoded;
        let pids: HashSet<u32> = events.iter().map(|event| event.pid).collect();
        let touches = touched::by_file(events);
        let inodes: HashSet<u64> = touches.keys().map(|key| key.inode).collect();
        let mut names = Names::resolve(&opens, self.mounts, &inodes);
        let unnamed: HashSet<u64> =
            touches.keys().filter(|key| self.is_nameless(**key, &names)).map(|key| key.inode).collect();
        if !unnamed.is_empty() {
            opens::add_held(&mut opens, &pids, &unnamed, self.mounts, self.roots);
            names = Names::resolve(&opens, self.mounts, &inodes);
        }
        let mut recording = self.empty(backend, lost + u64::from(opens.overflowed));
        for (key, touches) in touches {
            self.add(&mut recording, key, &touches, &names);
        }
        recording.files.sort_by(|a, b| a.path.cmp(&b.path));
        recording.devices.sort_by_key(|device| device.device);
        recording
    }

    fn empty(&self, backend: Backend, lost_events: u64) -> Recording {
        Recording {
            page_size: page_size(),
            backend,
            prefetched: self.run.prefetched,
            files: Vec::new(),
            devices: Vec::new(),
            lost_events,
            unnamed_pages: 0,
        }
    }

    /// Whether a file is on a file system that is read ahead but has no name yet.
    fn is_nameless(&self, key: CacheKey, names: &Names) -> bool {
        names.of(key).is_empty()
            && self
                .mounts
                .by_device(key.device)
                .any(|mount| mount.kind().is_readable() && !is_tree(key, mount))
    }

    fn add(&self, recording: &mut Recording, key: CacheKey, touches: &FileTouches, names: &Names) {
        if let Some((device, mount)) = names::block_device(key, self.mounts) {
            let whole = [PageRange { start: 0, end: u64::MAX }];
            let touches = touches.added.within(&whole, self.run.started.0);
            if let Ok(filesystem) = file_system_at(&mount.mount_point)
                && !touches.is_empty()
            {
                recording.devices.push(RecordedDevice { device, filesystem, touches });
            }
            return;
        }
        let wanted = match recording.backend {
            Backend::Touched => &touches.touched,
            Backend::Added | Backend::Resident => &touches.added,
        };
        if self.is_nameless(key, names) {
            recording.unnamed_pages += wanted.len();
        }
        let files = names.of(key);
        for named in files {
            let file = self.file(named, |size, resident| {
                let mut kept = resident.to_vec();
                // Of files that share a key, what was brought in and is gone by now may have been the other's.
                if files.len() == 1 {
                    kept.extend(touches.added.ranges().map(|(pages, _)| pages));
                }
                wanted.within(&clipped(kept, size), self.run.started.0)
            });
            recording.files.extend(file);
        }
    }

    /// One file, with the touches that `touches` makes of its size in pages and what of it is resident. `None` for what
    /// is not there any more, was replaced since it was opened, was made by the run itself, or has nothing to read.
    fn file(
        &self,
        named: &Named,
        touches: impl FnOnce(u64, &[PageRange]) -> Vec<Touch>,
    ) -> Option<RecordedFile> {
        let file = open(&named.path)?;
        let metadata = file.metadata().ok()?;
        let made_by_run = metadata.created().is_ok_and(|born| born > self.began);
        let replaced = metadata.ino() != named.inode;
        if !metadata.is_file() || metadata.nlink() == 0 || replaced || made_by_run {
            return None;
        }
        let identity = identity_of(&file).ok()?;
        let pages = identity.size.div_ceil(page_size());
        let resident = resident_ranges(&file, identity.size, page_size()).unwrap_or_default();
        let touches = touches(pages, &resident);
        (!touches.is_empty()).then(|| RecordedFile { path: named.path.clone(), identity, touches })
    }

    /// Without tracing: all that is resident of what the run opened, in the order in which it was opened.
    pub(super) fn resident(&self, opens: &Opens) -> Recording {
        let mut recording = self.empty(Backend::Resident, u64::from(opens.overflowed));
        let mut of_run: HashMap<i32, bool> = HashMap::new();
        let mut firsts: HashMap<Named, Monotonic> = HashMap::new();
        for opened in &opens.files {
            if *of_run.entry(opened.pid).or_insert_with(|| self.may_be_of_run(opened.pid))
                && let Some((_, named)) = names::name(opened, opens, self.mounts)
            {
                firsts.entry(named).or_insert(opened.at);
            }
        }
        for (named, at) in firsts {
            let at = at.since(self.run.started);
            let whole =
                |_, resident: &[PageRange]| resident.iter().map(|&pages| Touch { pages, at }).collect();
            recording.files.extend(self.file(&named, whole));
        }
        recording.files.sort_by(|a, b| a.path.cmp(&b.path));
        recording
    }

    /// A process that is gone by now cannot be asked; during a recording most openers are the run's. One that ends, or
    /// whose parent does, while its ancestors are walked seems to be nobody's, so it is looked at once more.
    fn may_be_of_run(&self, pid: i32) -> bool {
        let is_gone = || processes::key_of(self.roots, pid).is_none();
        let keeper = self.run.keeper;
        let is_of_run = || pid == keeper || processes::is_descendant(self.roots, keeper, pid);
        is_gone() || is_of_run() || is_gone() || is_of_run()
    }
}

/// btrfs caches its structures as the pages of an inode of its own (`BTRFS_BTREE_INODE_OBJECTID`): no file, and nothing
/// that can be read ahead.
fn is_tree(key: CacheKey, mount: &Mount) -> bool {
    mount.kind() == Kind::Drive && mount.fs_type == "btrfs" && key.inode == 1
}

/// Opens a file to look at it: no FIFO is waited for, no link followed, no access time changed.
fn open(path: &Path) -> Option<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOATIME;
    rustix::fs::open(path, flags, Mode::empty()).ok().map(File::from)
}

fn file_system_at(mount_point: &Path) -> std::io::Result<u64> {
    Ok(rustix::fs::statvfs(mount_point)?.f_fsid)
}

/// Sorted and disjoint, and none beyond `size` pages.
fn clipped(mut ranges: Vec<PageRange>, size: u64) -> Vec<PageRange> {
    ranges.sort_unstable();
    let mut kept: Vec<PageRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        let range = PageRange { start: range.start, end: range.end.min(size) };
        match kept.last_mut() {
            _ if range.is_empty() => {}
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => kept.push(range),
        }
    }
    kept
}
