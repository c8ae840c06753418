//! Notes of the launches that go on, in a folder that a boot empties: what a killed daemon saw begin is counted by the next
//! one, as interrupted.
//!
//! A note is one file, whole or not there, and goes when its launch is in the history. A daemon killed between the two leaves
//! the note of a launch that is stored already; such a one is told by its app and the moment it began.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use headstart_shared::launch::Launch;
use serde::{Deserialize, Serialize};

use crate::watch::processes::ProcessKey;

/// How a note's name ends.
const EXTENSION: &str = "launch";

/// The folder of the notes.
#[derive(Clone, Debug)]
pub struct Notes {
    folder: PathBuf,
}

/// The note of one launch.
#[derive(Debug)]
pub struct Note {
    path: PathBuf,
}

/// What a note says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Noted {
    /// Whose.
    pub uid: u32,
    /// As it began.
    pub launch: Launch,
}

/// Why there is no folder for notes.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the folder {}: {source}; it is to be a folder of root's, on a file system in memory such as /run", folder.display())]
pub struct NotesError {
    folder: PathBuf,
    source: io::Error,
}

impl Notes {
    /// The notes in a folder, which is made if need be, for its owner's eyes only.
    ///
    /// # Errors
    /// There cannot be such a folder.
    pub fn open(folder: &Path) -> Result<Self, NotesError> {
        match DirBuilder::new().recursive(true).mode(0o700).create(folder) {
            Ok(()) => Ok(Self { folder: folder.into() }),
            Err(source) => Err(NotesError { folder: folder.into(), source }),
        }
    }

    /// Notes that a launch begins.
    ///
    /// # Errors
    /// What the system says.
    pub fn begin(&self, first: ProcessKey, noted: &Noted) -> io::Result<Note> {
        let name = format!("{}-{}", first.pid, first.started);
        let (unfinished, path) = (self.folder.join(&name), self.folder.join(name + "." + EXTENSION));
        let file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
        serde_json::to_writer(file, noted)?;
        fs::rename(unfinished, &path)?;
        Ok(Note { path })
    }

    /// The notes that are there: those a daemon left that was killed. One that cannot be read is removed.
    ///
    /// # Errors
    /// What the system says.
    pub fn left(&self) -> io::Result<Vec<(Note, Noted)>> {
        let mut left = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let noted = (path.extension() == Some(OsStr::new(EXTENSION)))
                .then(|| fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Noted>(&text).ok()));
            match noted.flatten() {
                Some(noted) => left.push((Note { path }, noted)),
                None => fs::remove_file(&path)?,
            }
        }
        Ok(left)
    }
}

impl Note {
    /// The launch is in the history, or is none.
    pub fn done(self) {
        // If it stays, the next daemon finds that the launch is stored.
        let _ = fs::remove_file(self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::service::launches::testing::launch;

    const FIRST: ProcessKey = ProcessKey { pid: 7, started: 99 };

    #[test]
    fn what_was_noted_is_left_until_it_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("new");
        let notes = Notes::open(&folder).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        let noted = Noted { uid: 1000, launch: launch("org.example.Test") };
        notes.begin(FIRST, &noted).unwrap();
        notes.begin(ProcessKey { pid: 8, ..FIRST }, &Noted { uid: 1001, ..noted.clone() }).unwrap().done();
        let [(note, found)] = <[_; 1]>::try_from(Notes::open(&folder).unwrap().left().unwrap()).unwrap();
        assert_eq!(found, noted);
        note.done();
        assert!(notes.left().unwrap().is_empty());
    }

    #[test]
    fn what_is_half_written_or_no_note_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let notes = Notes::open(folder.path()).unwrap();
        fs::write(folder.path().join("7-99"), "{").unwrap();
        fs::write(folder.path().join("8-99.launch"), "{\"uid\":1}").unwrap();
        assert!(notes.left().unwrap().is_empty());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_in_the_folders_place_is_an_error_that_names_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = Notes::open(file.path()).unwrap_err().to_string();
        assert!(error.contains(&*file.path().to_string_lossy()), "{error}");
    }
}
