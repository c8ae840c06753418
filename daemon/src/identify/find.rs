//! Where a program is: looked up in `$PATH` and followed through links step by step, without ever touching a file system
//! that can keep us waiting.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, lstat, readlink};

use crate::mounts::{Kind, Mounts};
use crate::watch::execs::FileId;

/// Links that are followed, as many as the kernel follows.
const MOST_LINKS: u32 = 40;

/// A program's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Every path that it has on the way through its links, the one asked for first, the real one last.
    pub(super) names: Vec<PathBuf>,
    /// Which file.
    pub(super) file: FileId,
    /// Its length in bytes.
    pub(super) length: u64,
}

impl Found {
    /// The path without links.
    pub(super) fn real(&self) -> &Path {
        self.names.last().map_or(Path::new(""), PathBuf::as_path)
    }
}

/// Looks for programs.
#[derive(Debug)]
pub(super) struct Finder {
    path: Vec<PathBuf>,
    /// Where file systems that can hang are mounted.
    hanging: Vec<PathBuf>,
}

impl Finder {
    /// Programs are looked for in the folders of `path`.
    pub(super) fn new(path: &[PathBuf], mounts: &Mounts) -> Self {
        let can_hang = |at: &Path| {
            matches!(mounts.untouchable(at), Some(Kind::Network | Kind::Fuse | Kind::Autofs | Kind::Unknown))
        };
        let points = mounts.iter().map(|mount| mount.mount_point.as_path());
        let hanging = points.filter(|at| *at != Path::new("/") && can_hang(at)).map(PathBuf::from).collect();
        let mut finder = Self { path: Vec::new(), hanging };
        finder.path = path.iter().filter(|dir| finder.walk(dir).is_some()).cloned().collect();
        finder
    }

    /// The folders that programs are looked for in.
    pub(super) fn path(&self) -> &[PathBuf] {
        &self.path
    }

    /// Whether there is something at a path that can be touched.
    pub(super) fn reaches(&self, path: &Path) -> bool {
        self.walk(path).is_some()
    }

    /// The program of this name, or at this absolute path.
    pub(super) fn program(&self, name: &OsStr) -> Option<Found> {
        if name.as_bytes().contains(&b'/') {
            return Path::new(name).is_absolute().then(|| self.file(Path::new(name), true))?;
        }
        self.path.iter().find_map(|dir| self.file(&dir.join(name), true))
    }

    /// The regular file at this path.
    pub(super) fn file(&self, path: &Path, executable: bool) -> Option<Found> {
        let (names, stat) = self.walk(path)?;
        let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let allowed = !executable || stat.st_mode & 0o111 != 0;
        let length = u64::try_from(stat.st_size).unwrap_or(0);
        (regular && allowed).then(|| Found { names, file: FileId::from(&stat), length })
    }

    /// Follows a path, as the kernel does, but stops where a file system begins that can hang.
    fn walk(&self, path: &Path) -> Option<(Vec<PathBuf>, rustix::fs::Stat)> {
        let mut rest: VecDeque<OsString> = steps(path).collect();
        let mut names = vec![path.components().collect()];
        let mut at = PathBuf::from("/");
        let mut links = 0;
        let mut stat = lstat(&at).ok()?;
        while let Some(step) = rest.pop_front() {
            if step == ".." {
                at.pop();
                continue;
            }
            let next = at.join(step);
            if self.hanging.contains(&next) {
                return None;
            }
            stat = lstat(&next).ok()?;
            if rest.is_empty() && names.last() != Some(&next) {
                names.push(next.clone());
            }
            if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
                at = next;
                continue;
            }
            links += 1;
            if links > MOST_LINKS {
                return None;
            }
            let target = readlink(&next, Vec::new()).ok()?;
            let target = Path::new(OsStr::from_bytes(target.as_bytes()));
            if target.is_absolute() {
                at = PathBuf::from("/");
            }
            for step in steps(target).collect::<Vec<_>>().into_iter().rev() {
                rest.push_front(step);
            }
        }
        Some((names, stat))
    }
}

fn steps(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    })
}

#[cfg(test)]
#[path = "find_tests.rs"]
mod tests;
