//! Opening the files of a profile, which is a list of names that somebody else may have changed since.
//!
//! Invariant: nothing but a regular file is ever opened for reading, and no link is followed on the way to it. The
//! name is first resolved to a handle that can neither read nor wait (`O_PATH`, with `openat2(2)`'s `RESOLVE_NO_SYMLINKS`),
//! so that a FIFO or device put in a file's place is not even touched; only when the handle turns out to be the very file
//! meant is that same file opened through it.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fcntl_setfl, fstat, fstatvfs, openat2};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::recording::FileIdentity;
use crate::sys::identity::FileUser;

/// Why a file of a profile is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Error, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Refusal {
    /// Nothing has that name any more.
    #[error("is not there any more")]
    Missing,
    /// Another file, or another content.
    #[error("has changed since it was learned")]
    Changed,
    /// A folder, FIFO, socket or device has that name now.
    #[error("is not a regular file any more")]
    NotRegular,
    /// The name now leads over a link.
    #[error("leads over a symbolic link now")]
    Link,
    /// The owner of the profile may not read it.
    #[error("may not be read by the owner of the profile")]
    Permission,
    /// Its file system must not be touched, or is not the one learned from.
    #[error("is on a file system that is not read ahead")]
    FileSystem,
    /// Only what is cached was to be looked at, and its name is not.
    #[error("its name is not in memory")]
    NotCached,
    /// The kernel said something else, with this error number.
    #[error("{}", io::Error::from_raw_os_error(*.0))]
    Other(i32),
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG | Errno::STALE => Self::Missing,
            Errno::LOOP | Errno::MLINK => Self::Link,
            Errno::ACCESS | Errno::PERM => Self::Permission,
            Errno::AGAIN => Self::NotCached,
            Errno::NXIO | Errno::NODEV | Errno::ISDIR => Self::NotRegular,
            other => Self::Other(other.raw_os_error()),
        }
    }
}

/// The identity of an open file.
///
/// # Errors
/// What `fstat(2)` and `fstatfs(2)` say.
pub fn identity_of(fd: impl AsFd) -> io::Result<FileIdentity> {
    Ok(identity(&fstat(&fd)?, file_system_of(&fd)?))
}

/// `f_fsid` as one number, its first word the low one.
///
/// # Errors
/// What `fstatfs(2)` says.
pub fn file_system_of(fd: impl AsFd) -> io::Result<u64> {
    Ok(fstatvfs(fd)?.f_fsid)
}

#[expect(
    clippy::cast_possible_wrap,
    clippy::unnecessary_cast,
    reason = "the types differ between architectures"
)]
fn identity(stat: &Stat, filesystem: u64) -> FileIdentity {
    let seconds = stat.st_mtime as i64;
    let mtime = seconds.saturating_mul(1_000_000_000).saturating_add(stat.st_mtime_nsec as i64);
    FileIdentity { filesystem, inode: stat.st_ino, size: stat.st_size.cast_unsigned(), mtime }
}

/// Opens files and remembers which devices are which file system, so that each is asked for only once. One a thread.
#[derive(Debug)]
pub struct Opener {
    /// `/proc/self/fd`, through which a handle becomes an open file.
    handles: PathBuf,
    /// With whose eyes files are looked for; `None` for the thread's own.
    user: Option<FileUser>,
    /// How names are looked up.
    resolve: ResolveFlags,
    /// (`st_dev`, `f_fsid`): on btrfs each subvolume has its own of both.
    file_systems: Vec<(u64, u64)>,
}

impl Opener {
    /// Opens with the thread's own permissions. procfs is at `proc`.
    #[must_use]
    pub fn new(proc: &Path) -> Self {
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        Self { handles: proc.join("self/fd"), user: None, resolve, file_systems: Vec::new() }
    }

    /// Opens only files whose names are cached, so that no drive is touched (`RESOLVE_CACHED`, Linux 5.12). Of others it
    /// says [`Refusal::NotCached`].
    #[must_use]
    pub fn of_what_is_cached(self) -> Self {
        Self { resolve: self.resolve | ResolveFlags::CACHED, ..self }
    }

    /// Opens with a user's permissions.
    #[must_use]
    pub fn with_eyes_of(self, user: FileUser) -> Self {
        Self { user: Some(user), ..self }
    }

    /// Opens `path` for reading if it is still the file that `expected` says.
    ///
    /// # Errors
    /// Why it is not read.
    pub fn open(&mut self, path: &CStr, expected: &FileIdentity) -> Result<OwnedFd, Refusal> {
        let Some(user) = self.user.take() else { return self.open_as_is(path, expected) };
        let result = user.during(|| self.open_as_is(path, expected));
        self.user = Some(user);
        let fd = result?;
        // A user may not leave the time of access of another's file alone; the daemon may. If not, no harm is done.
        let _ = fcntl_setfl(&fd, OFlags::NONBLOCK | OFlags::NOATIME);
        Ok(fd)
    }

    fn open_as_is(&mut self, path: &CStr, expected: &FileIdentity) -> Result<OwnedFd, Refusal> {
        let handle = resolve(path, self.resolve)?;
        let stat = fstat(&handle)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Symlink => return Err(Refusal::Link),
            _ => return Err(Refusal::NotRegular),
        }
        let filesystem = self.file_system(&handle, stat.st_dev)?;
        if identity(&stat, filesystem) != *expected {
            return Err(Refusal::Changed);
        }
        self.reopen(&handle)
    }

    fn file_system(&mut self, handle: &OwnedFd, device: u64) -> Result<u64, Refusal> {
        if let Some((_, known)) = self.file_systems.iter().find(|(known, _)| *known == device) {
            return Ok(*known);
        }
        let filesystem = fstatvfs(handle)?.f_fsid;
        self.file_systems.push((device, filesystem));
        Ok(filesystem)
    }

    fn reopen(&self, handle: &OwnedFd) -> Result<OwnedFd, Refusal> {
        let through = self.handles.join(handle.as_raw_fd().to_string());
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        // Only the owner and root may leave the time of access alone.
        match rustix::fs::open(&through, flags | OFlags::NOATIME, Mode::empty()) {
            Err(Errno::PERM) => Ok(rustix::fs::open(&through, flags, Mode::empty())?),
            result => Ok(result?),
        }
    }
}

fn resolve(path: &CStr, how: ResolveFlags) -> Result<OwnedFd, Refusal> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat2(CWD, path, flags, Mode::empty(), how)?)
}
