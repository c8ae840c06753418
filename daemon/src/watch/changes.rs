//! What changes under the apps: entries and programs that come and go, mounts, package upgrades, and that the machine
//! slept. One descriptor to wait for; nothing happens while nothing changes.
//!
//! Changes come in thousands during an upgrade. So the first one only starts a clock: for [`GATHER`] nothing more is
//! heard, then all that came in the meantime is told at once. While a package manager is at work, what is installed is in
//! pieces: then it is told when that is done, or after [`PATIENCE`].
//!
//! That the machine slept is seen by the clock that goes on while it sleeps (`CLOCK_BOOTTIME`) being ahead of the other.
//! It wakes nobody by itself: it is told by the next [`Changes::take`], before anything else is.

mod databases;
mod folders;

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use headstart_shared::units::Nanos;
use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, clock_gettime, timerfd_create,
    timerfd_settime,
};

pub use databases::Databases;
pub use folders::{Folder, What};
use folders::{Folders, Seen};

use super::start::Monotonic;
use crate::roots::Roots;

/// How long changes are gathered from the first one on.
pub const GATHER: Duration = Duration::from_secs(2);
/// How long what is installed is taken to be in pieces at most, while a package manager holds its lock.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// For how long after the last change of a package database files may still be replaced.
pub const AFTERMATH: Duration = Duration::from_secs(30);
/// The least time asleep that is noticed. The clocks are read one after the other, and do not agree to the nanosecond.
const NAP: Nanos = Nanos(100_000_000);

/// Once, until it is asked for again.
const FOLDERS: EventFlags = EventFlags::IN.union(EventFlags::ONESHOT);
const MOUNTS: EventFlags = EventFlags::PRI.union(EventFlags::ONESHOT);

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Desktop entries, or folders of programs or entries themselves: what is installed is to be read again.
    Entries,
    /// These programs came, went or were replaced.
    Executables(Vec<PathBuf>),
    /// Something was mounted or unmounted.
    Mounts,
    /// The machine slept.
    Resumed,
    /// Packages were installed, upgraded or removed.
    Packages,
}

/// Why changes cannot be noticed.
#[derive(Debug, thiserror::Error)]
pub enum ChangesError {
    /// The kernel refuses what is needed to wait.
    #[error(
        "cannot watch for changes of what is installed: {0}; see that the limit of open files is not reached (ulimit -n, fs.inotify.max_user_instances)"
    )]
    Unavailable(#[from] io::Error),
}

/// Notices changes.
#[derive(Debug)]
pub struct Changes {
    epoll: OwnedFd,
    folders: Folders,
    mounts: Option<File>,
    timer: OwnedFd,
    gathering: Option<Monotonic>,
    pending: Pending,
    databases: Databases,
    packages_at: Option<Monotonic>,
    asleep: Nanos,
}

/// What was gathered.
#[derive(Debug, Default)]
struct Pending {
    entries: bool,
    executables: BTreeSet<PathBuf>,
    mounts: bool,
    packages: bool,
}

/// What the descriptor waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Folders = 0,
    Mounts = 1,
    Timer = 2,
}

impl Changes {
    /// Notices mounts and package upgrades, and changes in folders that are given later.
    ///
    /// # Errors
    /// The process has no descriptor left.
    pub fn new(roots: &Roots, databases: Databases) -> Result<Self, ChangesError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(io::Error::from)?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)
            .map_err(io::Error::from)?;
        let mut folders = Folders::new().map_err(io::Error::from)?;
        folders.watch(&databases.folders());
        // A thread may have mounts of its own.
        let mounts = ["thread-self", "self"]
            .iter()
            .find_map(|who| File::open(roots.proc.join(who).join("mountinfo")).ok());
        let mut changes = Self {
            epoll,
            folders,
            mounts,
            timer,
            gathering: None,
            pending: Pending::default(),
            databases,
            packages_at: None,
            asleep: asleep(),
        };
        changes.register().map_err(io::Error::from)?;
        Ok(changes)
    }

    /// Notices what changes in these folders, and no others. Gives how many of them it cannot watch: what changes there
    /// is found out when what is installed is read for another reason.
    ///
    /// They are touched, so none may be on a file system that can hang.
    pub fn watch(&mut self, folders: &[Folder]) -> usize {
        let databases = self.databases.folders();
        self.folders.watch(&databases.into_iter().chain(folders.iter().cloned()).collect::<Vec<_>>())
    }

    /// Takes what has changed, when the descriptor is readable or before something depends on it. Never waits.
    pub fn take(&mut self) -> Vec<Change> {
        let mut due = false;
        for source in self.ready() {
            match source {
                Source::Folders => self.gather(),
                Source::Mounts => self.pending.mounts = true,
                Source::Timer => {
                    due = rustix::io::read(&self.timer, &mut [0_u8; 8]).is_ok();
                    continue;
                }
            }
            if self.gathering.is_none() {
                self.gathering = Some(Monotonic::now());
                self.start_clock();
            }
        }
        let mut changes = Vec::new();
        let asleep = asleep();
        if slept(self.asleep, asleep) {
            changes.push(Change::Resumed);
        }
        self.asleep = asleep;
        if due {
            self.gather();
            self.tell(&mut changes);
        }
        changes
    }

    /// Whether packages are being installed or upgraded, or were a moment ago: a few short reads.
    #[must_use]
    pub fn is_upgrading(&self) -> bool {
        let recent = self.packages_at.is_some_and(|at| Monotonic::now() < at.after(AFTERMATH));
        recent || self.databases.are_locked()
    }

    /// Which sources have something. One that had is not heard again until [`Changes::listen`].
    fn ready(&self) -> Vec<Source> {
        let mut events: Vec<Event> = Vec::with_capacity(4);
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let waited = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&now));
        if waited.is_err() {
            return Vec::new();
        }
        let sources = [Source::Folders, Source::Mounts, Source::Timer];
        let is_ready = |source: &Source| events.iter().any(|event| event.data.u64() == *source as u64);
        sources.into_iter().filter(is_ready).collect()
    }

    fn gather(&mut self) {
        for seen in self.folders.read() {
            match seen {
                Seen::Entries => self.pending.entries = true,
                Seen::Executable(path) => {
                    self.pending.executables.insert(path);
                }
                Seen::Packages => {
                    self.pending.packages = true;
                    self.packages_at = Some(Monotonic::now());
                }
            }
        }
    }

    fn tell(&mut self, changes: &mut Vec<Change>) {
        let Pending { entries, executables, mounts, packages } = std::mem::take(&mut self.pending);
        if packages {
            changes.push(Change::Packages);
        }
        if mounts {
            changes.push(Change::Mounts);
        }
        let waited = self.gathering.map(|since| Monotonic::now().since(since));
        let patient = waited.is_some_and(|waited| Duration::from(waited) < PATIENCE);
        if (entries || !executables.is_empty()) && patient && self.databases.are_locked() {
            self.pending.entries = entries;
            self.pending.executables = executables;
        } else {
            self.gathering = None;
            if entries {
                changes.push(Change::Entries);
            }
            if !executables.is_empty() {
                changes.push(Change::Executables(executables.into_iter().collect()));
            }
        }
        if self.gathering.is_some() {
            self.start_clock();
        } else {
            self.listen();
        }
    }

    fn start_clock(&self) {
        let once = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec::try_from(GATHER).unwrap_or(Timespec { tv_sec: 2, tv_nsec: 0 }),
        };
        // It fails only for times that are none.
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once);
    }

    fn register(&mut self) -> rustix::io::Result<()> {
        let add = |fd: BorrowedFd<'_>, source: Source, flags| {
            epoll::add(&self.epoll, fd, EventData::new_u64(source as u64), flags)
        };
        add(self.timer.as_fd(), Source::Timer, EventFlags::IN)?;
        add(self.folders.as_fd(), Source::Folders, FOLDERS)?;
        // A folder of captured files has no table that tells of changes.
        let table = self.mounts.as_ref().map(|table| add(table.as_fd(), Source::Mounts, MOUNTS));
        if table.is_none_or(|added| added.is_err()) {
            self.mounts = None;
        }
        Ok(())
    }

    /// Hears the next change of folders and of mounts, once. That fails only for descriptors that are not ours.
    fn listen(&self) {
        let modify = |fd: BorrowedFd<'_>, source: Source, flags| {
            let _ = epoll::modify(&self.epoll, fd, EventData::new_u64(source as u64), flags);
        };
        modify(self.folders.as_fd(), Source::Folders, FOLDERS);
        if let Some(table) = &self.mounts {
            modify(table.as_fd(), Source::Mounts, MOUNTS);
        }
    }
}

impl AsFd for Changes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

/// How long the machine has slept since it was switched on.
fn asleep() -> Nanos {
    let nanos = |clock| {
        let now = clock_gettime(clock);
        Nanos(now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs())
    };
    nanos(ClockId::Boottime) - nanos(ClockId::Monotonic)
}

fn slept(before: Nanos, now: Nanos) -> bool {
    now - before > NAP
}

#[cfg(test)]
#[path = "changes_tests.rs"]
mod tests;
