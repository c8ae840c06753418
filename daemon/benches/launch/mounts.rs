//! Mounts that are undone when dropped.
//!
//! The benchmark works in a mount namespace of its own ([`enter_private`]), so what it mounts is seen by nobody else
//! and vanishes with its last process, even if that is killed.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sched::CloneFlags;
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};
use rustix::mount::{mount, mount_bind, mount_change, unmount};

/// Moves this thread, and all that it starts from now on, into a mount namespace of its own.
pub(crate) fn enter_private() -> Result<()> {
    nix::sched::unshare(CloneFlags::CLONE_NEWNS).context("cannot make a mount namespace: this needs root")?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .context("cannot make the mounts private")
}

/// Where everything is mounted. Not below `/tmp` or `/run`: what an application reads from there is taken for its own
/// temporary files.
const WORKPLACE: &str = "/var/lib/headstart-bench";

/// Mounts an empty file system in memory, in which all temporary files and mount points are made from now on: they go
/// with it.
pub(crate) fn workplace() -> Result<Mounted> {
    let at = Path::new(WORKPLACE);
    std::fs::create_dir_all(at).with_context(|| format!("cannot make {WORKPLACE}"))?;
    let mounted = Mounted::memory(at)?;
    std::fs::set_permissions(at, std::fs::Permissions::from_mode(0o700))
        .with_context(|| format!("cannot close {WORKPLACE} to others"))?;
    // Only fails if done before, and then to the same place.
    let _ = tempfile::env::override_temp_dir(at);
    Ok(mounted)
}

/// Unmounts what an earlier run that was killed has left in this namespace, and says so.
pub(crate) fn clear_workplace() -> Result<()> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").context("cannot read mountinfo")?;
    // Later mounts lie on earlier ones.
    let stale: Vec<_> = mounts
        .lines()
        .rev()
        .filter_map(|line| line.split(' ').nth(4))
        .filter(|at| Path::new(at).starts_with(WORKPLACE))
        .collect();
    if !stale.is_empty() {
        eprintln!("Unmounting what an earlier run has left in {WORKPLACE}");
    }
    for at in stale {
        unmount(at, UnmountFlags::DETACH).with_context(|| format!("cannot unmount {at}"))?;
    }
    Ok(())
}

/// Something mounted.
#[derive(Debug)]
pub(crate) struct Mounted {
    at: PathBuf,
    lazily: bool,
}

impl Mounted {
    /// Mounts a file system from a device, without access times.
    pub(crate) fn filesystem(device: &Path, at: &Path, kind: &str) -> Result<Self> {
        mount(device, at, kind, MountFlags::NOATIME, None)
            .with_context(|| format!("cannot mount {} ({kind}) on {}", device.display(), at.display()))?;
        Ok(Self { at: at.to_owned(), lazily: false })
    }

    /// Shows a directory, without what is mounted in it, in another place.
    pub(crate) fn bind(from: &Path, at: &Path) -> Result<Self> {
        mount_bind(from, at)
            .with_context(|| format!("cannot bind {} to {}", from.display(), at.display()))?;
        Ok(Self { at: at.to_owned(), lazily: true })
    }

    /// An empty file system in memory.
    pub(crate) fn memory(at: &Path) -> Result<Self> {
        mount("headstart-bench", at, "tmpfs", MountFlags::NOSUID, None)
            .with_context(|| format!("cannot mount a tmpfs on {}", at.display()))?;
        Ok(Self { at: at.to_owned(), lazily: true })
    }

    /// Where it is.
    pub(crate) fn at(&self) -> &Path {
        &self.at
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.lazily {
            let _ = unmount(&self.at, UnmountFlags::DETACH);
            return;
        }
        // The kernel closes the files of killed processes a moment after they are gone.
        for _ in 0..500 {
            if unmount(&self.at, UnmountFlags::empty()) != Err(Errno::BUSY) {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        eprintln!("{} is still in use: it is unmounted when that ends", self.at.display());
        let _ = unmount(&self.at, UnmountFlags::DETACH);
    }
}
