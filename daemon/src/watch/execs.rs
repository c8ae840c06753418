//! Which watched programs are executed: a fanotify group with a mark on the inode of each (`fanotify(7)`,
//! `FAN_OPEN_EXEC`). No other program is slowed down by it, and none is ever held up: events only tell.
//!
//! An event comes when the kernel has opened the file for `execve(2)`: the process still is what it was before, for some
//! 100 µs more. Whoever needs to know what it became waits for it ([`crate::identify::await_exec`]). A script is
//! opened so itself, before its interpreter, which is opened so as well. What an interpreter reads as its argument
//! (`python3 FILE`) and what the dynamic loader maps is not.
//!
//! A mark is on the inode and keeps it in memory, not on the name, and goes with the file: when the last name of a file
//! is removed, or its file system is unmounted. So after an upgrade or a mount the files are to be watched anew
//! ([`Execs::watch`]). Files are told apart by what `fstat(2)` says of them, both when they are marked and when an event
//! hands over the opened file: so the numbers agree on btrfs and on overlays too, where those of tracepoints differ.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

use nix::sys::fanotify::{EventFFlags, Fanotify, FanotifyEvent, InitFlags, MarkFlags, MaskFlags};
use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, open};
use rustix::io::Errno;

use super::start::Monotonic;

/// The most files that are watched. Each mark keeps an inode in memory, of about 1 KiB with all that hangs on it.
pub const MOST: usize = 8192;

/// A file, whatever its name: `st_dev` and `st_ino` of `stat(2)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// `st_dev`.
    pub device: u64,
    /// `st_ino`.
    pub inode: u64,
}

impl From<&Stat> for FileId {
    fn from(stat: &Stat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino }
    }
}

/// A watched file that was opened to be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exec {
    /// The file.
    pub file: FileId,
    /// The process that becomes it.
    pub pid: i32,
    /// When the event was read.
    pub at: Monotonic,
}

/// What the kernel reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A program starts.
    Exec(Exec),
    /// Starts went by unseen: more than the kernel keeps, or this process has no descriptor left to take one with.
    Lost,
}

/// Why programs cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum ExecsError {
    /// The kernel has no fanotify, or refuses it.
    #[error(
        "cannot watch for programs to be executed: {0}; it needs CONFIG_FANOTIFY and Linux 5.0 or later, and \
         CAP_SYS_ADMIN in the process"
    )]
    Unavailable(#[source] std::io::Error),
    /// One file cannot be watched.
    #[error("cannot watch {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is a folder, a device or the like.
    #[error("cannot watch {}: it is not a regular file", path.display())]
    NotAFile {
        /// What is not one.
        path: PathBuf,
    },
    /// There are more than [`MOST`].
    #[error("cannot watch {}: {MOST} files are watched already", path.display())]
    TooMany {
        /// The one too many.
        path: PathBuf,
    },
}

/// The watched files.
#[derive(Debug)]
pub struct Execs {
    group: Fanotify,
    /// The file that each path led to when it was marked.
    paths: BTreeMap<PathBuf, FileId>,
    /// How many paths lead to each marked file.
    files: HashMap<FileId, u32>,
}

impl Execs {
    /// Watches nothing yet.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn new() -> Result<Self, ExecsError> {
        // The queue keeps its limit (16,384 unless root chose another): were this process stopped, it would otherwise
        // fill the kernel's memory. What does not fit is reported as lost. The limit of marks is that of all programs
        // of root together, so it is [`MOST`] here instead.
        let flags = InitFlags::FAN_CLASS_NOTIF
            | InitFlags::FAN_CLOEXEC
            | InitFlags::FAN_NONBLOCK
            | InitFlags::FAN_UNLIMITED_MARKS;
        let opened = EventFFlags::O_RDONLY
            | EventFFlags::O_LARGEFILE
            | EventFFlags::O_CLOEXEC
            | EventFFlags::O_NONBLOCK
            | EventFFlags::O_NOATIME;
        let group = Fanotify::init(flags, opened).map_err(|errno| ExecsError::Unavailable(errno.into()))?;
        Ok(Self { group, paths: BTreeMap::new(), files: HashMap::new() })
    }

    /// Watches these as well, and those anew that another file has the place of by now. Gives what could not be.
    ///
    /// Links are followed. The paths are touched, so none may lead to a file system that can hang.
    pub fn watch<P: AsRef<Path>>(&mut self, paths: impl IntoIterator<Item = P>) -> Vec<ExecsError> {
        paths.into_iter().filter_map(|path| self.watch_one(path.as_ref()).err()).collect()
    }

    /// Watches these and no others. Gives what could not be.
    pub fn watch_only<P: AsRef<Path>>(&mut self, paths: impl IntoIterator<Item = P>) -> Vec<ExecsError> {
        let wanted: Vec<PathBuf> = paths.into_iter().map(|path| path.as_ref().to_path_buf()).collect();
        let others: Vec<PathBuf> = self.paths.keys().filter(|path| !wanted.contains(path)).cloned().collect();
        self.unwatch(&others);
        self.watch(&wanted)
    }

    /// Watches these no more.
    pub fn unwatch<P: AsRef<Path>>(&mut self, paths: impl IntoIterator<Item = P>) {
        for path in paths {
            if let Some(file) = self.paths.remove(path.as_ref()) {
                self.release(path.as_ref(), file);
            }
        }
    }

    /// The file that a watched path led to.
    #[must_use]
    pub fn file(&self, path: &Path) -> Option<FileId> {
        self.paths.get(path).copied()
    }

    /// How many files are watched.
    #[must_use]
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether none is watched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Takes what has happened. Never waits; what is left over, under a flood, keeps the descriptor readable.
    pub fn read(&self, events: &mut Vec<Event>) {
        // Each round takes up to 170 events.
        for _ in 0..16 {
            match self.group.read_events() {
                Ok(read) => {
                    let at = Monotonic::now();
                    events.extend(read.iter().filter_map(|event| self.take(event, at)));
                }
                Err(nix::errno::Errno::EINTR) => {}
                Err(nix::errno::Errno::EAGAIN) => return,
                // The kernel has dropped the one event whose file it could not open for us.
                Err(_) => events.push(Event::Lost),
            }
        }
    }

    fn take(&self, event: &FanotifyEvent, at: Monotonic) -> Option<Event> {
        let Some(fd) = event.fd() else {
            return event.mask().contains(MaskFlags::FAN_Q_OVERFLOW).then_some(Event::Lost);
        };
        let file = FileId::from(&fstat(fd).ok()?);
        // A mark on a file that lost the watched name may outlive it by another name.
        self.files.contains_key(&file).then_some(Event::Exec(Exec { file, pid: event.pid(), at }))
    }

    fn watch_one(&mut self, path: &Path) -> Result<(), ExecsError> {
        let failed = |errno: Errno| ExecsError::File { path: path.to_path_buf(), source: errno.into() };
        // A handle that stays on the same file while it is looked at and marked, and opens neither pipe nor device.
        let handle = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(failed)?;
        let stat = fstat(&handle).map_err(failed)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(ExecsError::NotAFile { path: path.to_path_buf() });
        }
        let file = FileId::from(&stat);
        // Marked again also when it is known: the mark is gone if the file was unmounted in between.
        if !self.files.contains_key(&file) && self.files.len() >= MOST {
            return Err(ExecsError::TooMany { path: path.to_path_buf() });
        }
        let by_handle = PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()));
        self.group
            .mark(MarkFlags::FAN_MARK_ADD, MaskFlags::FAN_OPEN_EXEC, CWD, Some(&by_handle))
            .map_err(|errno| ExecsError::File { path: path.to_path_buf(), source: errno.into() })?;
        match self.paths.insert(path.to_path_buf(), file) {
            Some(before) if before == file => {}
            before => {
                *self.files.entry(file).or_default() += 1;
                if let Some(before) = before {
                    self.release(path, before);
                }
            }
        }
        Ok(())
    }

    /// One path less leads to the file.
    fn release(&mut self, path: &Path, file: FileId) {
        let Some(paths) = self.files.get_mut(&file) else { return };
        *paths -= 1;
        if *paths > 0 {
            return;
        }
        self.files.remove(&file);
        // If another file is there by now, the mark went with the old one, or its events are told apart by now.
        let is_it = rustix::fs::stat(path).is_ok_and(|stat| FileId::from(&stat) == file);
        if is_it {
            let _ = self.group.mark(MarkFlags::FAN_MARK_REMOVE, MaskFlags::FAN_OPEN_EXEC, CWD, Some(path));
        }
    }
}

impl AsFd for Execs {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.group.as_fd()
    }
}

#[cfg(test)]
#[path = "execs_tests.rs"]
mod tests;
