//! Where desktop entries are: the base directories of a session's environment (XDG Base Directory Specification).

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::watch::session::Environment;

/// Exports that a session normally lists in `$XDG_DATA_DIRS` and a service or a `sudo` does not.
pub(crate) const SYSTEM_EXPORTS: [&str; 2] = ["/var/lib/flatpak/exports/share", "/var/lib/snapd/desktop"];

/// The `applications` folders of a session, the one that wins first, each once.
#[must_use]
pub fn application_dirs(env: &Environment, home: &Path) -> Vec<PathBuf> {
    let var = |name: &str| env.get(OsStr::new(name)).filter(|value| !value.is_empty());
    // Relative paths are invalid there and to be ignored.
    let data_home = var("XDG_DATA_HOME")
        .map(PathBuf::from)
        .filter(|dir| dir.is_absolute())
        .unwrap_or_else(|| home.join(".local/share"));
    let default_dirs = OsString::from("/usr/local/share:/usr/share");
    let listed = var("XDG_DATA_DIRS").unwrap_or(&default_dirs);
    let bases = [data_home]
        .into_iter()
        .chain(std::env::split_paths(listed))
        .chain([home.join(".local/share/flatpak/exports/share")])
        .chain(SYSTEM_EXPORTS.map(PathBuf::from))
        .filter(|dir| dir.is_absolute());
    let mut dirs: Vec<PathBuf> = Vec::new();
    for base in bases {
        let dir: PathBuf = base.join("applications").components().collect();
        if !dirs.contains(&dir) {
            dirs.push(dir);
        }
    }
    dirs
}
