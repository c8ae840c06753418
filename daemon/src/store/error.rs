//! What can go wrong with the store, in words that name the place and the cure.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{ErrorCode, ffi};

use super::blob::BlobError;

/// Failures to read that lie in the file: what it says of its length is not so, or the drive cannot read it.
const UNREADABLE: [i32; 3] =
    [ffi::SQLITE_IOERR_SHORT_READ, ffi::SQLITE_IOERR_READ, ffi::SQLITE_IOERR_CORRUPTFS];

/// Why the store could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A newer Headstart has changed the database. It was not touched.
    #[error(
        "the history in {path:?} was written by a newer Headstart (version {found}, this one reads up to {known}): update Headstart, or move the file away to begin anew"
    )]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest version that this code knows.
        known: usize,
    },
    /// The database is damaged, and the next opening will set it aside.
    #[error(
        "the history in {path:?} is damaged ({reason}): start Headstart again, and it is set aside and a new one begun"
    )]
    Damaged {
        /// The database.
        path: PathBuf,
        /// What SQLite says.
        reason: String,
    },
    /// The database is damaged, and cannot be set aside because someone has it open.
    #[error(
        "the history in {path:?} is damaged, but another Headstart process has it open: stop it and try again"
    )]
    InUse {
        /// The database.
        path: PathBuf,
    },
    /// Someone else holds the database for too long.
    #[error(
        "the history in {path:?} is locked by another process for too long: try again, or find the process with 'fuser'"
    )]
    Busy {
        /// The database or its folder.
        path: PathBuf,
    },
    /// The disk or the quota is full.
    #[error("cannot write the history in {path:?}: the disk is full; free some space there")]
    Full {
        /// The database or its folder.
        path: PathBuf,
    },
    /// The file system is mounted read-only.
    #[error(
        "cannot write the history in {path:?}: the file system is read-only; remount it, or name another folder"
    )]
    ReadOnly {
        /// The database or its folder.
        path: PathBuf,
    },
    /// Not allowed.
    #[error("cannot open the history in {path:?}: not allowed; run as root, or name a folder of your own")]
    Denied {
        /// The database or its folder.
        path: PathBuf,
    },
    /// Any other failure of the file system.
    #[error("cannot use {path:?} for the history: {source}")]
    Io {
        /// The database or its folder.
        path: PathBuf,
        /// The kernel's word.
        source: io::Error,
    },
    /// Any other failure of SQLite.
    #[error("the history in {path:?} cannot be used: {source}")]
    Sql {
        /// The database.
        path: PathBuf,
        /// SQLite's word.
        source: rusqlite::Error,
    },
    /// A value that must not enter the store.
    #[error("the profile of {app:?} cannot be stored: {source}")]
    Profile {
        /// The app.
        app: String,
        /// Why.
        source: BlobError,
    },
    /// A launch or plan that has no form in bytes.
    #[error("the launch of {app:?} cannot be stored: {source}")]
    Launch {
        /// The app.
        app: String,
        /// Why.
        source: BlobError,
    },
    /// A comparison that has no JSON form.
    #[error("the comparison of {app:?} cannot be stored: {source}")]
    Comparison {
        /// The app.
        app: String,
        /// Why.
        source: serde_json::Error,
    },
}

impl StoreError {
    pub(super) fn io(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { path },
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path },
            io::ErrorKind::PermissionDenied => Self::Denied { path },
            _ => Self::Io { path, source },
        }
    }

    pub(super) fn sql(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        if source.sqlite_error().is_some_and(|e| UNREADABLE.contains(&e.extended_code)) {
            return Self::Damaged { path, reason: source.to_string() };
        }
        match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Damaged { path, reason: source.to_string() }
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::ReadOnly) => Self::ReadOnly { path },
            Some(ErrorCode::PermissionDenied) => Self::Denied { path },
            _ => Self::Sql { path, source },
        }
    }

    /// As [`StoreError::sql`], for statements that fit every sound database: one that they do not fit is damaged.
    pub(super) fn of_schema(path: &Path, source: rusqlite::Error) -> Self {
        let reason = match &source {
            rusqlite::Error::SqlInputError { msg, .. } => Some(msg.clone()),
            rusqlite::Error::SqliteFailure(e, _) if e.code == ErrorCode::Unknown => Some(source.to_string()),
            _ => None,
        };
        match reason {
            Some(reason) => Self::Damaged { path: path.into(), reason },
            None => Self::sql(path, source),
        }
    }
}
