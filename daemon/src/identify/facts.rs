//! What is known of a process that was started. Pure; read by [`super::read`].

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::unit::Unit;
use crate::watch::execs::FileId;
use crate::watch::processes::ProcessKey;

/// What a process executes, and how it was called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// The file, as the kernel names it; for a script its interpreter. `None` for a thread of the kernel, and for a
    /// process that is ending.
    pub exe: Option<PathBuf>,
    /// Which file that is.
    pub file: Option<FileId>,
    /// The name it was called by, then its arguments; only the first [`super::read::MOST_ARGUMENTS`] bytes.
    pub argv: Vec<OsString>,
}

/// An ancestor of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ancestor {
    /// Which.
    pub key: ProcessKey,
    /// What it executes.
    pub image: Image,
    /// Its unit of systemd.
    pub unit: Option<Unit>,
}

/// What the environment says about where a process comes from. All of it is handed on to children, so none of it
/// decides by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// `GIO_LAUNCHED_DESKTOP_FILE`: the desktop entry.
    pub desktop_file: Option<PathBuf>,
    /// `GIO_LAUNCHED_DESKTOP_FILE_PID`: the process that was started from it.
    pub desktop_file_pid: Option<i32>,
    /// `FLATPAK_ID`.
    pub flatpak: Option<String>,
    /// `SNAP_INSTANCE_NAME`, or `SNAP_NAME`.
    pub snap: Option<String>,
    /// `APPIMAGE`: the file.
    pub app_image: Option<PathBuf>,
}

/// What is known of a process that was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Which process.
    pub key: ProcessKey,
    /// Its parent's number.
    pub parent: i32,
    /// Its real user.
    pub uid: u32,
    /// The watched file whose execution was reported, if any: that of a script, or of a wrapper that has gone on to
    /// execute another since.
    pub opened: Option<FileId>,
    /// What it executes.
    pub image: Image,
    /// Its working directory.
    pub cwd: Option<PathBuf>,
    /// Whether its paths are not ours: it has another root, or mounts of its own.
    pub foreign_root: bool,
    /// Its unit of systemd, of those that apps have.
    pub unit: Option<Unit>,
    /// What its environment says.
    pub hints: Hints,
    /// Its ancestors, its parent first; only the nearest.
    pub ancestors: Vec<Ancestor>,
}

impl Image {
    /// The name it was called by, without folders.
    #[must_use]
    pub fn called(&self) -> Option<&OsStr> {
        Path::new(self.argv.first()?).file_name()
    }
}
