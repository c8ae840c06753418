//! The file through which `headstartctl` hands its last result to the window.
//!
//! Anything may be in its place: nothing, a folder, a pipe, gigabytes, half a document. Reading it happens off the main
//! thread and every outcome is a value.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use headstart_shared::comparison::{Comparison, FormatError};

/// Fifty thousand starts; more was not written by `headstartctl`.
const LARGEST: u64 = 8 << 20;

/// `O_NONBLOCK`, the same on every Linux: opening a pipe that nobody writes to must not wait.
const O_NONBLOCK: i32 = 0o4000;

/// What was found.
#[derive(Debug)]
pub(crate) enum Loaded {
    /// No file: nothing was measured yet.
    Nothing,
    /// A result.
    Result(Box<Comparison>),
    /// A file that cannot be shown.
    Failed(LoadError),
}

/// Why a file cannot be shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// It could not be read.
    #[error("cannot be read: {0}")]
    Unreadable(#[source] io::Error),
    /// A folder, pipe or device.
    #[error("not a regular file")]
    NotAFile,
    /// Larger than any result.
    #[error("too large for a result ({0} bytes)")]
    TooLarge(u64),
    /// Not a comparison that this version can show.
    #[error(transparent)]
    Format(#[from] FormatError),
}

/// Where the last result is: `headstart/last-try.json` in the state folder of the user.
pub(crate) fn default_path(state_home: Option<OsString>, home: Option<OsString>) -> PathBuf {
    // The specification has relative paths ignored.
    let state_home = state_home.map(PathBuf::from).filter(|path| path.is_absolute());
    let fallback = || PathBuf::from(home.unwrap_or_else(|| "/".into())).join(".local/state");
    state_home.unwrap_or_else(fallback).join("headstart/last-try.json")
}

/// Reads a result. Blocks on the disk: not for the main thread.
pub(crate) fn load(path: &Path) -> Loaded {
    match read(path) {
        Ok(comparison) => Loaded::Result(Box::new(comparison)),
        Err(LoadError::Unreadable(error)) if error.kind() == io::ErrorKind::NotFound => Loaded::Nothing,
        Err(error) => Loaded::Failed(error),
    }
}

fn read(path: &Path) -> Result<Comparison, LoadError> {
    let mut options = File::options();
    let file = options.read(true).custom_flags(O_NONBLOCK).open(path).map_err(LoadError::Unreadable)?;
    let metadata = file.metadata().map_err(LoadError::Unreadable)?;
    if !metadata.is_file() {
        return Err(LoadError::NotAFile);
    }
    if metadata.len() > LARGEST {
        return Err(LoadError::TooLarge(metadata.len()));
    }
    let mut json = Vec::new();
    file.take(LARGEST).read_to_end(&mut json).map_err(LoadError::Unreadable)?;
    Ok(Comparison::from_json(&json)?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use headstart_shared::sample;

    #[test]
    fn the_place_follows_the_base_directory_specification() {
        let place = |state: Option<&str>, home: Option<&str>| {
            default_path(state.map(Into::into), home.map(Into::into)).display().to_string()
        };
        assert_eq!(place(Some("/s"), Some("/h")), "/s/headstart/last-try.json");
        assert_eq!(place(Some("relative"), Some("/h")), "/h/.local/state/headstart/last-try.json");
        assert_eq!(place(None, None), "/.local/state/headstart/last-try.json");
    }

    #[test]
    fn whatever_is_in_its_place_becomes_a_value() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("last-try.json");
        assert!(matches!(load(&path), Loaded::Nothing));
        fs::write(&path, sample::faster().to_json().unwrap()).unwrap();
        assert!(matches!(load(&path), Loaded::Result(_)));
        fs::write(&path, "").unwrap();
        assert!(matches!(load(&path), Loaded::Failed(LoadError::Format(FormatError::NotJson(_)))));
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(LARGEST + 1).unwrap();
        assert!(matches!(load(&path), Loaded::Failed(LoadError::TooLarge(_))));
        assert!(matches!(load(dir.path()), Loaded::Failed(LoadError::NotAFile)));
        assert!(matches!(load(Path::new("/dev/zero")), Loaded::Failed(LoadError::NotAFile)));
        let fifo = dir.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        assert!(
            matches!(load(&fifo), Loaded::Failed(LoadError::NotAFile)),
            "and it does not wait for a writer"
        );
    }
}
