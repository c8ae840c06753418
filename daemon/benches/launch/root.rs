//! The image's file system, mounted and furnished so that applications can run in it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::mounts::Mounted;
use crate::process;

/// The home directory inside, with the applications' settings in it.
pub(crate) const HOME: &str = "/home/bench";

/// A root to start applications in.
#[derive(Debug)]
pub(crate) struct Root {
    device: PathBuf,
    directory: TempDir,
    // The last one mounted is the first one to go.
    mounts: Vec<Mounted>,
}

impl Root {
    /// Mounts the ext4 file system of a device.
    pub(crate) fn mount(device: &Path) -> Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("headstart-root-")
            .tempdir()
            .context("no directory to mount on")?;
        let mut root = Self { device: device.to_owned(), directory, mounts: Vec::new() };
        root.attach()?;
        Ok(root)
    }

    /// Where the image's `/` is.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Ends what runs inside.
    pub(crate) fn end_inside(&self) -> Result<()> {
        process::end_inside(self.path())
    }

    /// Forgets everything that is cached of the file system: unmounts it, lets `between` forget the device, and mounts
    /// it again. The rest of the machine keeps its caches.
    pub(crate) fn remount(&mut self, between: impl FnOnce() -> Result<()>) -> Result<()> {
        self.detach();
        between()?;
        self.attach()
    }

    fn attach(&mut self) -> Result<()> {
        let path = self.directory.path().to_owned();
        self.mounts.push(Mounted::filesystem(&self.device, &path, "ext4")?);
        for outside in ["dev", "proc", "sys"] {
            self.mounts.push(Mounted::bind(&Path::new("/").join(outside), &path.join(outside))?);
        }
        for empty in ["dev/shm", "tmp", "run"] {
            let at = path.join(empty);
            fs::create_dir_all(&at).with_context(|| format!("cannot make {}", at.display()))?;
            self.mounts.push(Mounted::memory(&at)?);
        }
        let (sockets, at) = (Path::new("/tmp/.X11-unix"), path.join("tmp/.X11-unix"));
        if sockets.is_dir() {
            fs::create_dir(&at).with_context(|| format!("cannot make {}", at.display()))?;
            self.mounts.push(Mounted::bind(sockets, &at)?);
        }
        Ok(())
    }

    fn detach(&mut self) {
        if let Err(error) = self.end_inside() {
            eprintln!("{error:#}");
        }
        while self.mounts.pop().is_some() {}
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        self.detach();
    }
}
