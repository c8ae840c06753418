//! The files of a plan while it is carried out: opened once, kept open while there is something left to read in them, and
//! closed after.
//!
//! How many can be kept open is limited. One beyond that is opened for its request alone, and again for the next: its
//! inode is in memory by then, so that costs little.

use std::collections::HashMap;
use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::Skipped;
use crate::mounts::Mounts;
use crate::opening::{Opener, Refusal};
use crate::plan::PlannedFile;
use crate::recording::FileIdentity;
use crate::roots::Roots;
use crate::sys::readahead;

/// More open files than this are of no use to any plan.
const MOST_KEPT: u64 = 4096;

/// Descriptors that are left to the rest of the process.
const RESERVED: u64 = 32;

/// What the kernel says when this process has too many open files.
pub(super) const NO_DESCRIPTOR: Refusal = Refusal::Other(libc::EMFILE);

/// How many descriptors a replay may hold.
#[derive(Clone, Debug)]
pub(super) struct Room {
    /// Files that may still be kept open; shared by all plans of the replay.
    kept: Arc<AtomicI64>,
    /// Requests in flight, each with its file, that a worker may wait for.
    pub(super) ring: usize,
}

impl Room {
    /// Raises the process's limit as far as it goes and shares out what that gives: `windows` requests in flight if
    /// possible, the rest for files kept open.
    pub(super) fn make(roots: &Roots, threads: u32, windows: u32) -> Self {
        let free = raise_limit().saturating_sub(open_descriptors(roots)).saturating_sub(RESERVED);
        // While it opens a file, a thread has two more.
        let free = free.saturating_sub(u64::from(threads) * 3);
        let rings = u64::from(windows).min(free / 2);
        let ring = usize::try_from(rings / u64::from(threads.max(1))).unwrap_or(usize::MAX).max(1);
        let kept = i64::try_from((free - rings).min(MOST_KEPT)).unwrap_or(0);
        Self { kept: Arc::new(AtomicI64::new(kept)), ring }
    }
}

fn raise_limit() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // Beyond what any replay needs there is no point in a larger limit.
    let wanted = maximum.unwrap_or(u64::MAX).min(4 * MOST_KEPT);
    let current = current.unwrap_or(u64::MAX);
    if current >= wanted || setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).is_err() {
        return current;
    }
    wanted
}

fn open_descriptors(roots: &Roots) -> u64 {
    std::fs::read_dir(roots.proc.join("self/fd")).map_or(0, |folder| folder.count() as u64)
}

/// The files of one plan.
#[derive(Debug)]
pub(super) struct Files {
    slots: Vec<Slot>,
    kept: Arc<AtomicI64>,
}

#[derive(Debug)]
struct Slot {
    path: CString,
    identity: FileIdentity,
    /// Requests that are still to be made.
    left: AtomicU32,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Untried,
    /// Has been opened before, but was not kept.
    Closed,
    Kept(Arc<OwnedFd>),
    Refused(Refusal),
}

/// What came of looking for a file.
#[derive(Debug)]
pub(super) enum Found {
    /// Open, and whether for the first time.
    Open(Arc<OwnedFd>, bool),
    /// Refused for the first time.
    Refused(Refusal),
    /// Nothing to do, or refused before.
    Known,
    /// No descriptor is to be had at the moment.
    NoRoom,
}

impl Files {
    /// With the number of requests for each. Files on file systems that must not be touched are refused here and now.
    pub(super) fn new(
        files: &[PlannedFile],
        reads: &HashMap<u32, u32>,
        mounts: &Mounts,
        room: &Room,
    ) -> Self {
        let slot = |(number, file): (u32, &PlannedFile)| {
            let path = CString::new(file.path.as_os_str().as_bytes());
            let refusal = match &path {
                _ if mounts.untouchable(&file.path).is_some() => Some(Refusal::FileSystem),
                // A relative name would depend on where the daemon happens to be.
                Ok(_) if file.path.is_absolute() => None,
                _ => Some(Refusal::Missing),
            };
            Slot {
                path: path.unwrap_or_default(),
                identity: file.identity,
                left: AtomicU32::new(reads.get(&number).copied().unwrap_or(0)),
                state: Mutex::new(refusal.map_or(State::Untried, State::Refused)),
            }
        };
        Self { slots: (0..).zip(files).map(slot).collect(), kept: Arc::clone(&room.kept) }
    }

    /// What was refused so far.
    pub(super) fn excluded(&self, files: &[PlannedFile]) -> Vec<Skipped> {
        let refused = self.slots.iter().zip(files).filter_map(|(slot, file)| match *slot.lock() {
            State::Refused(why) => Some(Skipped { path: file.path.clone(), why }),
            _ => None,
        });
        refused.collect()
    }

    /// The file, opened if it is not. Another worker that opens the same one is waited for.
    pub(super) fn get(&self, file: u32, opener: &mut Opener) -> Found {
        let Some(slot) = self.slots.get(file as usize) else { return Found::Known };
        let mut state = slot.lock();
        let first = match &*state {
            State::Kept(fd) => return Found::Open(Arc::clone(fd), false),
            State::Refused(_) => return Found::Known,
            State::Untried => true,
            State::Closed => false,
        };
        let fd = match opener.open(&slot.path, &slot.identity) {
            Ok(fd) => Arc::new(fd),
            // Nothing is wrong with the file.
            Err(NO_DESCRIPTOR) => return Found::NoRoom,
            Err(why) => {
                *state = State::Refused(why);
                return Found::Refused(why);
            }
        };
        // Waiting for a page that is not there after all must not bring in its neighbours. Without it, it would.
        let _ = readahead::expect_random(&fd);
        *state = State::Closed;
        if slot.left.load(Ordering::Relaxed) > 0 {
            if self.kept.fetch_sub(1, Ordering::Relaxed) > 0 {
                *state = State::Kept(Arc::clone(&fd));
            } else {
                self.kept.fetch_add(1, Ordering::Relaxed);
            }
        }
        Found::Open(fd, first)
    }

    /// Opens a file for the sake of its inode, unless that has been done.
    pub(super) fn touch(&self, file: u32, opener: &mut Opener) -> Found {
        let closed = self.slots.get(file as usize).is_some_and(|slot| matches!(*slot.lock(), State::Closed));
        if closed { Found::Known } else { self.get(file, opener) }
    }

    /// One request for the file less to make; after the last it is closed, as soon as nothing is in flight.
    pub(super) fn done(&self, file: u32) {
        let Some(slot) = self.slots.get(file as usize) else { return };
        if slot.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            let mut state = slot.lock();
            if matches!(*state, State::Kept(_)) {
                *state = State::Closed;
                self.kept.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Slot {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
