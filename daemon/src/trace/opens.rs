//! Which files are opened while a recording goes on: fanotify marks on every file system that may be read
//! (`fanotify(7)`). Programs are never held up: events only tell, and the queue has no limit.
//!
//! The kernel hands over each opened file itself, so its name is that at this very moment, and its mount is known by
//! number, in whatever namespace it was opened.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::fanotify::{EventFFlags, Fanotify, InitFlags, MarkFlags, MaskFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, StatxFlags, statx};
use rustix::io::Errno;

use super::namespaces::{Fresh, Namespaces, Place};
use crate::mounts::{Mount, Mounts};
use crate::recording::DeviceNumber;
use crate::roots::Roots;
use crate::watch::start::Monotonic;

/// Why opens cannot be listened to.
#[derive(Debug, thiserror::Error)]
pub enum OpensError {
    /// The kernel has no fanotify, or refuses it.
    #[error(
        "cannot listen to opens: {0}; fanotify needs CONFIG_FANOTIFY in the kernel and CAP_SYS_ADMIN in the process"
    )]
    Unavailable(#[source] io::Error),
    /// Not one file system could be marked.
    #[error("no file system can be listened to; the last, {mount_point}, says {source}", mount_point = mount_point.display())]
    NothingMarked {
        /// Where the last one is mounted.
        mount_point: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}

/// One file that was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Its path in our mount namespace; inside the file system if the mount is not ours.
    pub path: PathBuf,
    /// The mount it was opened through: one of ours, or one of [`Opens::foreign`].
    pub mount: u64,
    /// The inode number, as `stat(2)` says.
    pub inode: u64,
    /// The process that opened it first.
    pub pid: i32,
    /// When it was opened first.
    pub at: Monotonic,
}

/// All that was opened, and the mounts of the namespaces it was opened in.
#[derive(Debug, Default)]
pub struct Opens {
    /// Regular files, each once.
    pub files: Vec<Opened>,
    /// Mounts that are not in our namespace, by numbers of our own.
    pub foreign: HashMap<u64, Mount>,
    /// Whether the kernel lost events.
    pub overflowed: bool,
}

/// How long opens are let gather before they are taken. A file keeps its name for that long, nearly always.
const BATCH: Duration = Duration::from_millis(4);

/// The file systems that are listened to. The listening thread adds what it meets.
type Marked = Arc<Mutex<HashSet<DeviceNumber>>>;

/// A thread that listens.
#[derive(Debug)]
pub struct Listener {
    thread: Option<JoinHandle<Opens>>,
    stop: Arc<OwnedFd>,
    marked: Marked,
}

impl Listener {
    /// Listens to every file system of `mounts` that may be touched.
    ///
    /// # Errors
    /// When the kernel refuses, or no file system can be marked.
    pub fn start(mounts: &Mounts, roots: &Roots) -> Result<Self, OpensError> {
        let group = Fanotify::init(
            InitFlags::FAN_CLASS_NOTIF
                | InitFlags::FAN_CLOEXEC
                | InitFlags::FAN_NONBLOCK
                | InitFlags::FAN_UNLIMITED_QUEUE
                | InitFlags::FAN_UNLIMITED_MARKS,
            // Without waiting: the file may be a FIFO by now.
            EventFFlags::O_RDONLY
                | EventFFlags::O_LARGEFILE
                | EventFFlags::O_CLOEXEC
                | EventFFlags::O_NONBLOCK
                | EventFFlags::O_NOATIME,
        )
        .map_err(|errno| OpensError::Unavailable(errno.into()))?;
        let marked = Arc::new(Mutex::new(mark_all(&group, mounts)?));
        let unavailable = |error: io::Error| OpensError::Unavailable(error);
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).map_err(|e| unavailable(e.into()))?);
        let mut state = State {
            group,
            namespaces: Namespaces::new(mounts, roots, 0),
            marked: Arc::clone(&marked),
            known: HashSet::new(),
            files: Vec::new(),
            overflowed: false,
        };
        let thread = std::thread::Builder::new()
            .name("opens".into())
            .spawn({
                let stop = Arc::clone(&stop);
                move || {
                    state.listen(&stop);
                    state.into_opens()
                }
            })
            .map_err(unavailable)?;
        Ok(Self { thread: Some(thread), stop, marked })
    }

    /// Ends, with all that was opened until now.
    #[must_use]
    pub fn finish(mut self) -> Opens {
        self.join().unwrap_or_default()
    }

    /// Whether opens on the file system with this super block are heard. One that a run mounts itself is heard from a
    /// moment later on.
    #[must_use]
    pub fn hears(&self, device: DeviceNumber) -> bool {
        self.marked.lock().unwrap_or_else(PoisonError::into_inner).contains(&device)
    }

    fn join(&mut self) -> Option<Opens> {
        let thread = self.thread.take()?;
        let _ = rustix::io::write(&*self.stop, &1_u64.to_ne_bytes());
        thread.join().ok()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.join();
    }
}

/// Marks each file system once. A mark is on the file system, not on the mount: it hears opens in every namespace.
fn mark_all(group: &Fanotify, mounts: &Mounts) -> Result<HashSet<DeviceNumber>, OpensError> {
    let mut marked = HashSet::new();
    let mut failure = None;
    for mount in mounts.iter().filter(|mount| mount.kind().is_readable()) {
        if marked.contains(&mount.device) {
            continue;
        }
        match mark(group, &mount.mount_point) {
            Ok(()) => {
                marked.insert(mount.device);
            }
            // Another mount of it may be reachable where this one is hidden.
            Err(errno) => failure = Some((mount.mount_point.clone(), errno)),
        }
    }
    match failure {
        Some((mount_point, errno)) if marked.is_empty() => {
            Err(OpensError::NothingMarked { mount_point, source: errno.into() })
        }
        _ => Ok(marked),
    }
}

/// Marks the file system of another namespace's mount, by way of that namespace.
fn mark_foreign(group: &Fanotify, fresh: &Fresh) -> bool {
    let Some(at) = fresh.open() else { return false };
    mark(group, Path::new(&format!("/proc/self/fd/{}", at.as_raw_fd()))).is_ok()
}

fn mark(group: &Fanotify, at: &Path) -> nix::Result<()> {
    let flags = MarkFlags::FAN_MARK_ADD | MarkFlags::FAN_MARK_FILESYSTEM;
    group.mark(flags, MaskFlags::FAN_OPEN, CWD, Some(at))
}

struct State {
    group: Fanotify,
    namespaces: Namespaces,
    marked: Marked,
    known: HashSet<Found>,
    files: Vec<Opened>,
    overflowed: bool,
}

impl State {
    fn listen(&mut self, stop: &OwnedFd) {
        loop {
            let mut fds = vec![PollFd::new(&self.group, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
            fds.extend(self.namespaces.tables().map(|table| PollFd::new(table, PollFlags::PRI)));
            match poll(&mut fds, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            let stopping = !fds[1].revents().is_empty();
            let mounted: Vec<bool> = fds[2..].iter().map(|fd| !fd.revents().is_empty()).collect();
            drop(fds);
            if mounted.contains(&true) {
                self.namespaces.learn_again(|place| mounted[place]);
                self.mark_fresh();
            }
            self.take_all();
            if stopping {
                return;
            }
            // Opens come in hundreds: taking each by itself would switch to this thread as often.
            std::thread::sleep(BATCH);
        }
    }

    fn take_all(&mut self) {
        let own_pid = i32::try_from(std::process::id()).unwrap_or(-1);
        while let Ok(events) = self.group.read_events() {
            let at = Monotonic::now();
            for event in &events {
                if event.mask().contains(MaskFlags::FAN_Q_OVERFLOW) {
                    self.overflowed = true;
                }
                if let Some(fd) = event.fd().filter(|_| event.pid() != own_pid) {
                    self.take(fd, event.pid(), at);
                }
            }
        }
    }

    fn take(&mut self, fd: BorrowedFd<'_>, pid: i32, at: Monotonic) {
        let Some(found) = find(fd) else { return };
        if !self.known.insert(found) {
            return;
        }
        let place = self.namespaces.place(fd, found, pid);
        self.mark_fresh();
        if let Some(Place { path, mount }) = place {
            self.files.push(Opened { path, mount, inode: found.inode, pid, at });
        }
    }

    /// Listens also to the file systems that only another namespace has: a run may mount some itself.
    fn mark_fresh(&mut self) {
        for fresh in self.namespaces.take_fresh() {
            let device = fresh.mount.device;
            if fresh.mount.kind().is_readable()
                && !self.is_marked(device)
                && mark_foreign(&self.group, &fresh)
            {
                self.marked.lock().unwrap_or_else(PoisonError::into_inner).insert(device);
            }
        }
    }

    fn is_marked(&self, device: DeviceNumber) -> bool {
        self.marked.lock().unwrap_or_else(PoisonError::into_inner).contains(&device)
    }

    fn into_opens(self) -> Opens {
        Opens { files: self.files, foreign: self.namespaces.into_foreign(), overflowed: self.overflowed }
    }
}

/// A regular file, as seen through a mount. The inode number alone does not say which: below one mount of btrfs there
/// may be several subvolumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Found {
    pub(super) mount: u64,
    /// The mount's number that is not used again, from Linux 6.8 on; before that the other one.
    pub(super) unique: u64,
    /// As `stat(2)` says, not the super block's.
    pub(super) device: (u32, u32),
    pub(super) inode: u64,
}

pub(super) fn find(fd: impl AsFd) -> Option<Found> {
    let ask = |wanted| statx(&fd, c"", AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC, wanted).ok();
    let stat = ask(StatxFlags::TYPE | StatxFlags::INO | StatxFlags::MNT_ID)?;
    let regular = FileType::from_raw_mode(stat.stx_mode.into()) == FileType::RegularFile;
    if !regular || stat.stx_mask & StatxFlags::MNT_ID.bits() == 0 {
        return None;
    }
    // A kernel that does not know of it passes over it.
    let unique = ask(MNT_ID_UNIQUE).filter(|stat| stat.stx_mask & MNT_ID_UNIQUE.bits() != 0);
    Some(Found {
        mount: stat.stx_mnt_id,
        unique: unique.map_or(stat.stx_mnt_id, |stat| stat.stx_mnt_id),
        device: (stat.stx_dev_major, stat.stx_dev_minor),
        inode: stat.stx_ino,
    })
}

/// `STATX_MNT_ID_UNIQUE` (`linux/stat.h`).
const MNT_ID_UNIQUE: StatxFlags = StatxFlags::from_bits_retain(0x4000);

/// The name of an open file. A file that has none any more is of no use.
pub(super) fn name(fd: impl AsFd) -> Option<PathBuf> {
    let link = fs::read_link(format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd())).ok()?;
    let deleted = link.as_os_str().as_encoded_bytes().ends_with(b" (deleted)");
    (link.is_absolute() && !(deleted && fs::symlink_metadata(&link).is_err())).then_some(link)
}

/// Adds what processes have mapped or open that nobody opened during the recording: inherited, or opened before.
///
/// Looks only for `wanted` inodes, in the processes of `pids` that still live.
pub(super) fn add_held(
    opens: &mut Opens,
    pids: &HashSet<u32>,
    wanted: &HashSet<u64>,
    ours: &Mounts,
    roots: &Roots,
) {
    let mut namespaces = Namespaces::new(ours, roots, opens.foreign.len());
    let mut seen = HashSet::new();
    let folders = pids.iter().flat_map(|pid| ["map_files", "fd"].map(|folder| (*pid, folder)));
    for (pid, folder) in folders {
        let Ok(entries) = fs::read_dir(roots.proc.join(format!("{pid}/{folder}"))) else { continue };
        let pid = i32::try_from(pid).unwrap_or_default();
        for entry in entries.flatten() {
            let Some(file) = handle(&entry.path()) else { continue };
            let Some(found) = find(file.as_fd()) else { continue };
            let inode = found.inode;
            if !wanted.contains(&inode) || !seen.insert(found) {
                continue;
            }
            if let Some(Place { path, mount }) = namespaces.place(file.as_fd(), found, pid) {
                opens.files.push(Opened { path, mount, inode, pid, at: Monotonic::now() });
            }
        }
    }
    opens.foreign.extend(namespaces.into_foreign());
}

/// A file to look at without opening it.
fn handle(path: &Path) -> Option<OwnedFd> {
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()
}
