//! The loop device that makes a block device of the drive's file.
//!
//! It bypasses the page cache on its way to the file (direct I/O), so a block is cached once, by the file system that
//! is mounted from it, as with a real drive. The device is released by the kernel when the last user is gone: this
//! process, dead or alive, or a mount.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Error;
use super::parameters::Kind;

/// A loop device, set up as a drive of some kind.
#[derive(Debug)]
pub(super) struct LoopDevice {
    path: PathBuf,
    /// Keeps the device: once detached it lasts as long as it is open or mounted.
    _open: File,
}

impl LoopDevice {
    pub(super) fn attach(file: &Path) -> Result<Self, Error> {
        let output = run(Command::new("losetup").args(["--find", "--show", "--direct-io=on"]).arg(file))?;
        let path = PathBuf::from(output.trim_end());
        let open = File::open(&path).map_err(|source| Error::Io { path: path.clone(), source });
        // Detaching an open device leaves it in place and marks it for release on the last close.
        run(Command::new("losetup").arg("--detach").arg(&path))?;
        Ok(Self { _open: open?, path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The kernel's name of the device: `loop3`.
    pub(super) fn name(&self) -> &Path {
        self.path.file_name().map_or(self.path.as_path(), Path::new)
    }

    /// Gives the request queue the attributes that a drive of this kind has.
    pub(super) fn dress(&self, kind: Kind) -> Result<(), Error> {
        let queue = Path::new("/sys/block").join(self.name()).join("queue");
        let set = |attribute: &str, value: &str| {
            let path = queue.join(attribute);
            std::fs::write(&path, value).map_err(|source| Error::Io { path, source })
        };
        set("rotational", if kind.rotational() { "1" } else { "0" })?;
        set("scheduler", kind.scheduler())?;
        set("read_ahead_kb", "128")
    }

    /// Forgets what the kernel has cached of the device itself. A mounted file system must be unmounted first.
    pub(super) fn forget(&self) -> Result<(), Error> {
        run(Command::new("blockdev").arg("--flushbufs").arg(&self.path)).map(drop)
    }

    /// Opens the device for reads that bypass the page cache.
    pub(super) fn open_direct(&self) -> Result<File, Error> {
        let flags = i32::try_from(rustix::fs::OFlags::DIRECT.bits()).unwrap_or_default();
        let open = OpenOptions::new().read(true).custom_flags(flags).open(&self.path);
        open.map_err(|source| Error::Io { path: self.path.clone(), source })
    }
}

fn run(command: &mut Command) -> Result<String, Error> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|source| Error::Tool { name: name.clone(), source })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::Tool { name, source: std::io::Error::other(message) })
}
