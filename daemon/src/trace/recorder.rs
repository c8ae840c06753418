//! Recording one run: what is set up before it, and what is made of it afterwards.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use headstart_shared::units::Nanos;

use super::event::{ADDED, CacheKey, Decoder, PageEvent, TOUCHED};
use super::format::{FormatError, PageLayout};
use super::names::{self, Names};
use super::opens::{self, Listener, Opens, OpensError};
use super::pipes::{Collector, Pages};
use super::ring::{Missed, Page};
use super::touched::{self, FileTouches};
use super::tracefs::{Counts, Instance, TraceError, Tracefs};
use crate::mounts::{Mounts, MountsError};
use crate::opening::identity_of;
use crate::recording::{Backend, PageRange, RecordedDevice, RecordedFile, Recording, Touch};
use crate::roots::Roots;
use crate::sys::residency::{page_size, resident_ranges};
use crate::watch::processes;
use crate::watch::start::Monotonic;

/// Why a run cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Tracing does not work.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The kernel's descriptions cannot be used.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// Opens cannot be listened to.
    #[error(transparent)]
    Opens(#[from] OpensError),
    /// The table of mounts cannot be read.
    #[error(transparent)]
    Mounts(#[from] MountsError),
    /// Announcing a number to the filter failed.
    #[error("cannot restrict tracing to the run: {0}")]
    Filter(#[source] std::io::Error),
}

/// The part of a recorder that only tracing has.
#[derive(Debug)]
struct Tracing {
    // Before the instance: it must have closed its files when that is removed.
    collector: Collector,
    filter: File,
    decoder: Decoder,
    layout: PageLayout,
    instance: Instance,
}

/// A recorder, ready or at work.
#[derive(Debug)]
pub struct Recorder {
    tracing: Option<Tracing>,
    listener: Listener,
    backend: Backend,
    mounts: Mounts,
    roots: Roots,
    began: SystemTime,
}

/// The run that was recorded.
#[derive(Clone, Copy, Debug)]
pub struct Recorded {
    /// When it executed.
    pub started: Monotonic,
    /// The process that all of the run descend from.
    pub keeper: i32,
    /// Whether it was prefetched.
    pub prefetched: bool,
}

impl Recorder {
    /// Makes everything ready. Nothing is recorded before a thread's number is written to the files of
    /// [`Recorder::announce_to`].
    ///
    /// # Errors
    /// When the kernel lacks or refuses what `backend` needs.
    pub fn prepare(backend: Backend, roots: &Roots) -> Result<Self, RecordError> {
        let mounts = Mounts::of(roots, None)?;
        let listener = Listener::start(&mounts, roots)?;
        let tracing = match backend {
            Backend::Touched => Some(Tracing::start(roots, &[ADDED, TOUCHED[0], TOUCHED[1], TOUCHED[2]])?),
            Backend::Added => Some(Tracing::start(roots, &[ADDED])?),
            Backend::Resident => None,
        };
        Ok(Self { tracing, listener, backend, mounts, roots: roots.clone(), began: SystemTime::now() })
    }

    /// The files that must get the number of the run's first thread before it executes.
    #[must_use]
    pub fn announce_to(&self) -> Vec<BorrowedFd<'_>> {
        self.tracing.iter().map(|tracing| tracing.filter.as_fd()).collect()
    }

    /// A counter of page events so far, to tell quiet by; `None` without tracing.
    #[must_use]
    pub fn counter(&self) -> Option<Box<dyn FnMut() -> Option<u64> + Send>> {
        let instance = self.tracing.as_ref()?.instance.counter();
        Some(Box::new(move || instance.counts().ok().map(|counts| counts.written + counts.lost)))
    }

    /// Ends the recording and works out what it holds. Call it while the run's processes are still there: what they hold
    /// open without having opened it is asked from them.
    ///
    /// # Errors
    /// When the kernel's counts cannot be read.
    pub fn finish(self, run: Recorded) -> Result<Recording, RecordError> {
        let Self { tracing, listener, backend, mounts, roots, began } = self;
        // Mounts that the run has added to our namespace belong to it.
        let mounts = Mounts::of(&roots, None).unwrap_or(mounts);
        let (events, lost_events) = match tracing {
            Some(tracing) => tracing.finish()?,
            None => (Vec::new(), 0),
        };
        let opens = listener.finish();
        let files = Files { mounts: &mounts, roots: &roots, began, run };
        Ok(match backend {
            Backend::Resident => files.resident(&opens),
            Backend::Touched | Backend::Added => files.traced(backend, events, opens, lost_events),
        })
    }
}

impl Tracing {
    fn start(roots: &Roots, events: &[&str]) -> Result<Self, RecordError> {
        let tracefs = Tracefs::find(roots)?;
        let instance = Instance::create(&tracefs)?;
        for event in events {
            instance.enable(event)?;
        }
        let decoder = Decoder::load(tracefs.root(), events)?;
        let layout = PageLayout::load(tracefs.root())?;
        let collector = Collector::start(&instance, layout.size)?;
        let filter = instance.pid_filter()?;
        // An empty filter lets all threads through. The collector's own touches no file, and closes it to all others.
        let seed = collector.id().to_string();
        rustix::io::write(&filter, seed.as_bytes()).map_err(|errno| RecordError::Filter(errno.into()))?;
        instance.start()?;
        Ok(Self { collector, filter, decoder, layout, instance })
    }

    fn finish(self) -> Result<(Vec<PageEvent>, u64), RecordError> {
        self.instance.stop()?;
        let pages = self.collector.finish();
        let counts = self.instance.counts()?;
        Ok(decode(&pages, &self.layout, &self.decoder, counts))
    }
}

/// All events of the pages, and how many are missing.
fn decode(pages: &Pages, layout: &PageLayout, decoder: &Decoder, counts: Counts) -> (Vec<PageEvent>, u64) {
    let mut events = Vec::new();
    let mut missing = 0;
    for bytes in pages.processors.iter().flat_map(|processor| processor.chunks(pages.size.max(1))) {
        let Some(mut page) = Page::new(layout, bytes) else { continue };
        missing += match page.missed {
            Missed::Nothing => 0,
            Missed::Events(count) => count,
            Missed::Unknown => 1,
        };
        events.extend(page.by_ref().filter_map(|event| decoder.decode(&event)));
        missing += u64::from(page.damaged());
    }
    // The kernel's own count covers what the pages say, except for what was thrown away here.
    (events, missing.max(counts.lost).max(u64::from(pages.cut)))
}

/// What a recording's end needs to know.
struct Files<'a> {
    mounts: &'a Mounts,
    roots: &'a Roots,
    began: SystemTime,
    run: Recorded,
}

impl Files<'_> {
    fn traced(&self, backend: Backend, events: Vec<PageEvent>, mut opens: Opens, lost: u64) -> Recording {
        let pids: HashSet<u32> = events.iter().map(|event| event.pid).collect();
        let touches = touched::by_file(events);
        let mut names = Names::resolve(&opens, self.mounts);
        let unnamed: HashSet<u64> =
            touches.keys().filter(|key| self.is_nameless(**key, &names)).map(|key| key.inode).collect();
        if !unnamed.is_empty() {
            opens.files.extend(opens::held_by(&pids, &unnamed, self.roots));
            names = Names::resolve(&opens, self.mounts);
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
        names.of(key).is_empty() && self.mounts.by_device(key.device).any(|mount| mount.kind().is_readable())
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
        for path in names.of(key) {
            let file = self.file(path, |size, resident| {
                let mut kept = resident.to_vec();
                kept.extend(touches.added.ranges().map(|(pages, _)| pages));
                wanted.within(&clipped(kept, size), self.run.started.0)
            });
            recording.files.extend(file);
        }
    }

    /// One file, with the touches that `touches` makes of its size in pages and what of it is resident. `None` for what
    /// is not there any more, was made by the run itself, or has nothing to read.
    fn file(
        &self,
        path: &Path,
        touches: impl FnOnce(u64, &[PageRange]) -> Vec<Touch>,
    ) -> Option<RecordedFile> {
        let file = open(path)?;
        let metadata = file.metadata().ok()?;
        let made_by_run = metadata.created().is_ok_and(|born| born >= self.began);
        if !metadata.is_file() || metadata.nlink() == 0 || made_by_run {
            return None;
        }
        let identity = identity_of(&file).ok()?;
        let pages = identity.size.div_ceil(page_size());
        let resident = resident_ranges(&file, identity.size, page_size()).unwrap_or_default();
        let touches = touches(pages, &resident);
        (!touches.is_empty()).then(|| RecordedFile { path: path.into(), identity, touches })
    }

    /// Without tracing: all that is resident of what the run opened, in the order in which it was opened.
    fn resident(&self, opens: &Opens) -> Recording {
        let mut recording = self.empty(Backend::Resident, u64::from(opens.overflowed));
        let mut of_run: HashMap<i32, bool> = HashMap::new();
        let names: HashMap<PathBuf, Monotonic> = opens
            .files
            .iter()
            .filter(|opened| {
                *of_run.entry(opened.pid).or_insert_with(|| {
                    // A process that is gone by now cannot be asked; during a recording most openers are the run's.
                    processes::key_of(self.roots, opened.pid).is_none()
                        || processes::is_descendant(self.roots, self.run.keeper, opened.pid)
                })
            })
            .filter_map(|opened| Some((names::own_path(opened, opens, self.mounts)?.1, opened.at)))
            .collect();
        for (path, at) in names {
            let at = Nanos(at.0.saturating_sub(self.run.started.0));
            let whole =
                |_, resident: &[PageRange]| resident.iter().map(|&pages| Touch { pages, at }).collect();
            recording.files.extend(self.file(&path, whole));
        }
        recording.files.sort_by(|a, b| a.path.cmp(&b.path));
        recording
    }
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
