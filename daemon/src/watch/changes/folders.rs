//! What happens in folders (`inotify(7)`), and what of it matters.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

/// The most folders that are watched.
pub(super) const MOST_FOLDERS: usize = 512;

/// What is looked for in a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// Desktop entries, service files and folders with such.
    Entries,
    /// All programs.
    Programs,
    /// These files only: programs in a folder where much else may happen.
    Files(BTreeSet<OsString>),
    /// A folder of this name, which is not there yet.
    Coming(OsString),
    /// A package database: these files, or everything if none is named.
    Packages(BTreeSet<OsString>),
}

/// A folder that is watched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Folder {
    /// It.
    pub path: PathBuf,
    /// What for.
    pub what: What,
}

/// Something that matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Entries,
    Executable(PathBuf),
    Packages,
}

/// The watched folders.
#[derive(Debug)]
pub(super) struct Folders {
    inotify: OwnedFd,
    /// By the number that the kernel gave the folder. Two paths may lead to one.
    watched: HashMap<i32, BTreeSet<Folder>>,
}

const MASK: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

impl Folders {
    pub(super) fn new() -> rustix::io::Result<Self> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        Ok(Self { inotify, watched: HashMap::new() })
    }

    /// Watches these folders and no others. Gives how many cannot be.
    pub(super) fn watch(&mut self, wanted: &[Folder]) -> usize {
        let mut by_path: BTreeMap<&Path, BTreeSet<Folder>> = BTreeMap::new();
        for folder in wanted {
            by_path.entry(&folder.path).or_default().insert(folder.clone());
        }
        let mut watched: HashMap<i32, BTreeSet<Folder>> = HashMap::new();
        let mut missed = by_path.len().saturating_sub(MOST_FOLDERS);
        for (path, folders) in by_path.into_iter().take(MOST_FOLDERS) {
            match inotify::add_watch(&self.inotify, path, MASK) {
                Ok(number) => watched.entry(number).or_default().extend(folders),
                Err(_) => missed += 1,
            }
        }
        for number in self.watched.keys().filter(|number| !watched.contains_key(number)) {
            let _ = inotify::remove_watch(&self.inotify, *number);
        }
        self.watched = watched;
        missed
    }

    /// What has happened since. Never waits.
    pub(super) fn read(&mut self) -> Vec<Seen> {
        let mut seen = Vec::new();
        let mut gone = Vec::new();
        let mut buffer = [MaybeUninit::uninit(); 8192];
        let mut reader = inotify::Reader::new(&self.inotify, &mut buffer);
        while let Ok(event) = reader.next() {
            let flags = event.events();
            if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
                seen.extend([Seen::Entries, Seen::Packages]);
                continue;
            }
            let Some(folders) = self.watched.get(&event.wd()) else { continue };
            if flags.intersects(ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::UNMOUNT) {
                seen.push(Seen::Entries);
            }
            if flags.contains(ReadFlags::IGNORED) {
                gone.push(event.wd());
            }
            let Some(name) = event.file_name() else { continue };
            let name = OsStr::from_bytes(name.to_bytes());
            let is_folder = flags.contains(ReadFlags::ISDIR);
            let new: Vec<Seen> =
                folders.iter().filter_map(|folder| matters(folder, name, is_folder)).collect();
            seen.extend(new);
        }
        for number in gone {
            self.watched.remove(&number);
        }
        seen
    }
}

/// What a change of this name in a folder means.
fn matters(folder: &Folder, name: &OsStr, is_folder: bool) -> Option<Seen> {
    let ends = |ending: &[u8]| name.as_bytes().ends_with(ending);
    match &folder.what {
        // `mimeinfo.cache` and what is written before it gets its name are not entries.
        What::Entries => (is_folder || ends(b".desktop") || ends(b".service")).then_some(Seen::Entries),
        What::Programs => {
            let unfinished = ends(b".dpkg-new") || ends(b".dpkg-tmp");
            (!unfinished).then(|| Seen::Executable(folder.path.join(name)))
        }
        What::Files(names) => names.contains(name).then(|| Seen::Executable(folder.path.join(name))),
        What::Coming(awaited) => (name == awaited).then_some(Seen::Entries),
        What::Packages(names) => (names.is_empty() || names.contains(name)).then_some(Seen::Packages),
    }
}

impl AsFd for Folders {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}
