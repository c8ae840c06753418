//! The databases of package managers: whether one is at work.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::process::{Flock, FlockType, fcntl_getlk};

use super::folders::{Folder, What};

/// Where they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Databases {
    /// dpkg's folder.
    pub dpkg: PathBuf,
    /// rpm's folders; older and newer systems have it in different places.
    pub rpm: Vec<PathBuf>,
    /// pacman's folder.
    pub pacman: PathBuf,
}

impl Default for Databases {
    fn default() -> Self {
        Self {
            dpkg: "/var/lib/dpkg".into(),
            rpm: vec!["/usr/lib/sysimage/rpm".into(), "/var/lib/rpm".into()],
            pacman: "/var/lib/pacman".into(),
        }
    }
}

impl Databases {
    /// Whether a package manager holds a lock: dpkg and rpm lock a file that stays (`fcntl(2)`), pacman makes one.
    #[must_use]
    pub fn are_locked(&self) -> bool {
        let dpkg = ["lock", "lock-frontend"].into_iter().map(|name| self.dpkg.join(name));
        let rpm = self.rpm.iter().map(|folder| folder.join(".rpm.lock"));
        dpkg.chain(rpm).any(|file| is_locked(&file)) || self.pacman.join("db.lck").exists()
    }

    /// What is watched: the files that an installation changes, not those that a mere query touches.
    pub(super) fn folders(&self) -> Vec<Folder> {
        let of = |path: &Path, names: &[&str]| {
            let names: BTreeSet<_> = names.iter().map(Into::into).collect();
            Folder { path: path.to_path_buf(), what: What::Packages(names) }
        };
        let rpm = self.rpm.iter().map(|path| of(path, &["rpmdb.sqlite", "Packages", "Packages.db"]));
        let all = [of(&self.dpkg, &["status"]), of(&self.pacman.join("local"), &[])];
        // Only the package manager of this system has one, and none of them comes later.
        all.into_iter().chain(rpm).filter(|folder| folder.path.is_dir()).collect()
    }
}

fn is_locked(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    // Asks only. Closing gives up no lock, as we have none.
    fcntl_getlk(&file, &Flock::from(FlockType::WriteLock)).is_ok_and(|lock| lock.is_some())
}
