//! Which files are opened while a recording goes on: fanotify marks on every file system that may be read
//! (`fanotify(7)`). Programs are never held up: events only tell, and the queue has no limit.
//!
//! The kernel hands over each opened file itself, so its name is that at this very moment in the opener's own mount
//! namespace, and its mount is known by number.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use nix::sys::fanotify::{EventFFlags, Fanotify, InitFlags, MarkFlags, MaskFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, statx};
use rustix::io::Errno;

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
    /// Its name in the opener's mount namespace.
    pub path: PathBuf,
    /// The mount it was opened through.
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
    /// Mounts that are not in our namespace, by number.
    pub foreign: HashMap<u64, Mount>,
    /// Whether the kernel lost events.
    pub overflowed: bool,
}

/// A thread that listens.
#[derive(Debug)]
pub struct Listener {
    thread: Option<JoinHandle<Opens>>,
    stop: Arc<OwnedFd>,
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
        let marked = mark_all(&group, mounts)?;
        let unavailable = |error: io::Error| OpensError::Unavailable(error);
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).map_err(|e| unavailable(e.into()))?);
        let mut state = State {
            group,
            roots: roots.clone(),
            own: mounts.iter().map(|mount| mount.id).collect(),
            marked,
            known: HashSet::new(),
            opens: Opens::default(),
        };
        let thread = std::thread::Builder::new()
            .name("opens".into())
            .spawn({
                let stop = Arc::clone(&stop);
                move || {
                    state.listen(&stop);
                    state.opens
                }
            })
            .map_err(unavailable)?;
        Ok(Self { thread: Some(thread), stop })
    }

    /// Ends, with all that was opened until now.
    #[must_use]
    pub fn finish(mut self) -> Opens {
        self.join().unwrap_or_default()
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

fn mark(group: &Fanotify, at: &Path) -> nix::Result<()> {
    let flags = MarkFlags::FAN_MARK_ADD | MarkFlags::FAN_MARK_FILESYSTEM;
    group.mark(flags, MaskFlags::FAN_OPEN, CWD, Some(at))
}

struct State {
    group: Fanotify,
    roots: Roots,
    own: HashSet<u64>,
    marked: HashSet<DeviceNumber>,
    known: HashSet<(u64, u64)>,
    opens: Opens,
}

impl State {
    fn listen(&mut self, stop: &OwnedFd) {
        loop {
            let group = PollFd::new(&self.group, PollFlags::IN);
            let mut fds = [group, PollFd::new(stop, PollFlags::IN)];
            match poll(&mut fds, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            let stopping = !fds[1].revents().is_empty();
            self.take_all();
            if stopping {
                return;
            }
        }
    }

    fn take_all(&mut self) {
        let own_pid = i32::try_from(std::process::id()).unwrap_or(-1);
        while let Ok(events) = self.group.read_events() {
            let at = Monotonic::now();
            for event in &events {
                if event.mask().contains(MaskFlags::FAN_Q_OVERFLOW) {
                    self.opens.overflowed = true;
                }
                if let Some(fd) = event.fd().filter(|_| event.pid() != own_pid) {
                    self.take(fd, event.pid(), at);
                }
            }
        }
    }

    fn take(&mut self, fd: BorrowedFd<'_>, pid: i32, at: Monotonic) {
        let Some((mount, inode)) = mount_and_inode(fd) else { return };
        if !self.known.insert((mount, inode)) {
            return;
        }
        if !self.own.contains(&mount) && !self.opens.foreign.contains_key(&mount) {
            self.look_at_namespace(pid);
        }
        if let Some(path) = name(fd) {
            self.opens.files.push(Opened { path, mount, inode, pid, at });
        }
    }

    /// Keeps the mounts of another namespace while a process in it is there to be asked, and listens to the file
    /// systems that only it has: a run may mount some itself, and opens its next file through a mount unknown so far.
    fn look_at_namespace(&mut self, pid: i32) {
        let Ok(theirs) = Mounts::of(&self.roots, Some(pid.unsigned_abs())) else { return };
        for mount in theirs.iter().filter(|mount| !self.own.contains(&mount.id)) {
            self.opens.foreign.entry(mount.id).or_insert_with(|| mount.clone());
            if mount.kind().is_readable() && !self.marked.contains(&mount.device) {
                let inside = mount.mount_point.strip_prefix("/").unwrap_or(&mount.mount_point);
                let at = self.roots.proc.join(format!("{pid}/root")).join(inside);
                if mark(&self.group, &at).is_ok() {
                    self.marked.insert(mount.device);
                }
            }
        }
    }
}

/// The mount and inode of a regular file.
fn mount_and_inode(fd: BorrowedFd<'_>) -> Option<(u64, u64)> {
    let wanted = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::MNT_ID;
    let stat = statx(fd, c"", AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC, wanted).ok()?;
    let regular = FileType::from_raw_mode(stat.stx_mode.into()) == FileType::RegularFile;
    (regular && stat.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some((stat.stx_mnt_id, stat.stx_ino))
}

/// The name of an open file. A file that has none any more is of no use.
fn name(fd: BorrowedFd<'_>) -> Option<PathBuf> {
    let link = fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok()?;
    let deleted = link.as_os_str().as_encoded_bytes().ends_with(b" (deleted)");
    (link.is_absolute() && !(deleted && fs::symlink_metadata(&link).is_err())).then_some(link)
}

/// What processes have mapped or open that nobody opened during the recording: inherited, or opened before.
///
/// Looks only for `wanted` inodes, in the processes of `pids` that still live.
#[must_use]
pub(super) fn held_by(pids: &HashSet<u32>, wanted: &HashSet<u64>, roots: &Roots) -> Vec<Opened> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for &pid in pids {
        for folder in ["map_files", "fd"] {
            let Ok(entries) = fs::read_dir(roots.proc.join(format!("{pid}/{folder}"))) else { continue };
            for entry in entries.flatten() {
                let Ok(file) = rustix::fs::open(
                    entry.path(),
                    rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC,
                    rustix::fs::Mode::empty(),
                ) else {
                    continue;
                };
                let Some((mount, inode)) = mount_and_inode(file.as_fd()) else { continue };
                if wanted.contains(&inode)
                    && seen.insert((mount, inode))
                    && let Some(path) = name(file.as_fd())
                {
                    let pid = i32::try_from(pid).unwrap_or_default();
                    found.push(Opened { path, mount, inode, pid, at: Monotonic::now() });
                }
            }
        }
    }
    found
}
