//! Writing a file so that it is there whole or not at all.
//!
//! A temporary file in the same folder is written and flushed, renamed over the target, and the folder flushed: after a
//! power cut there is the old file or the new one. Whatever fails before the rename leaves nothing behind.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Why a file could not be written. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// What is there is a folder, a link, a pipe or a device, and must not be replaced by a file.
    #[error("{path:?} exists and is no regular file: choose another name")]
    NotAFile {
        /// The target.
        path: PathBuf,
    },
    /// The path names no file.
    #[error("{path:?} is not the name of a file: give the file to write, not its folder")]
    NoName {
        /// The target.
        path: PathBuf,
    },
    /// The folder is missing.
    #[error("cannot write {path:?}: its folder does not exist; create it or choose another")]
    NoFolder {
        /// The target.
        path: PathBuf,
    },
    /// The disk or the quota is full.
    #[error("cannot write {path:?}: the disk is full; free {size} bytes there or choose another place")]
    Full {
        /// The target.
        path: PathBuf,
        /// Bytes to be written.
        size: usize,
        /// The kernel's word.
        source: io::Error,
    },
    /// The file system is mounted read-only.
    #[error("cannot write {path:?}: the file system is read-only; choose a place that can be written")]
    ReadOnly {
        /// The target.
        path: PathBuf,
        /// The kernel's word.
        source: io::Error,
    },
    /// Not allowed.
    #[error("cannot write {path:?}: not allowed; choose a folder of your own or run as its owner")]
    Denied {
        /// The target.
        path: PathBuf,
        /// The kernel's word.
        source: io::Error,
    },
    /// Anything else.
    #[error("cannot write {path:?}: {source}")]
    Io {
        /// The target.
        path: PathBuf,
        /// The kernel's word.
        source: io::Error,
    },
}

/// Writes a file, readable as the umask says, replacing a regular file of that name.
///
/// # Errors
/// [`WriteError`], with nothing changed; only a failure to flush the folder at the very end leaves the new file.
pub fn write(path: &Path, contents: &[u8]) -> Result<(), WriteError> {
    let failed = |source| WriteError::new(path, contents.len(), source);
    let name = path.file_name().ok_or_else(|| WriteError::NoName { path: path.into() })?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => return Err(WriteError::NotAFile { path: path.into() }),
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed(e)),
        _ => {}
    }
    let (mut file, temporary) = Temporary::create(folder, name).map_err(failed)?;
    file.write_all(contents).and_then(|()| file.sync_all()).map_err(failed)?;
    fs::rename(&temporary.path, path).map_err(failed)?;
    std::mem::forget(temporary);
    sync_folder(folder).map_err(failed)
}

/// Makes what was created, renamed or removed in a folder last.
///
/// # Errors
/// The kernel's, but not that the file system has no such notion.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder)?.sync_all() {
        Err(e) if matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        done => done,
    }
}

/// A file that is removed again unless it is forgotten.
struct Temporary {
    path: PathBuf,
}

impl Temporary {
    fn create(folder: &Path, name: &OsStr) -> io::Result<(File, Self)> {
        loop {
            let mut hidden = OsString::from(".");
            // Room for the random part in the 255 bytes of a name.
            hidden.push(if name.len() > 200 { OsStr::new("headstart") } else { name });
            hidden.push(format!(".{:016x}", rand::random::<u64>()));
            let path = folder.join(hidden);
            match OpenOptions::new().write(true).create_new(true).mode(0o666).open(&path) {
                Ok(file) => return Ok((file, Self { path })),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Nothing more can be done than to try.
        let _ = fs::remove_file(&self.path);
    }
}

impl WriteError {
    fn new(path: &Path, size: usize, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { path, size, source },
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path, source },
            io::ErrorKind::PermissionDenied => Self::Denied { path, source },
            io::ErrorKind::NotFound => Self::NoFolder { path },
            _ => Self::Io { path, source },
        }
    }
}
