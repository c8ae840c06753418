//! Where a file is that was opened in whatever mount namespace, below whatever root.
//!
//! The name that the kernel gives for a mount of ours is a path of ours, also when its opener lives in a `chroot(2)`.
//! For another mount it is a path from the root of the namespace that the mount is in, and only a process in there
//! knows what is mounted where; nor does its table stay as it is (`pivot_root(2)` renames all of it). So the path inside
//! the file system is worked out at once: that stays.
//!
//! A process may be gone before its open is heard of. So one table of each namespace is kept open, which also keeps the
//! namespace: read again, it has what was mounted since (`mountinfo` in `proc(5)`). And where nobody of a namespace was
//! met in time, or its mounts are gone again, the open file itself is asked: its handle is looked up through a mount of
//! ours of the same file system ([`Namespaces::ours`]), which depends on nobody's being alive.
//!
//! The kernel uses the number of a mount again once that is gone, and namespaces come and go in a run. So a foreign mount
//! is kept under a number of our own, and what is known of one is learned again when a number that is never used again
//! (`STATX_MNT_ID_UNIQUE`, Linux 6.8; before that there is none) says that it is another one.
//!
//! What remains is a file system that only the run sees, such as an overlay, and that is gone before anything of its
//! namespace was heard of: its opens are not heard, and what it reads counts as pages without a name.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags, openat, statx};

use super::opens::{Found, find, name};
use crate::mounts::{Kind, Mount, Mounts};
use crate::roots::Roots;
use crate::sys::handle::FileHandle;

/// One process's table of mounts, kept open.
#[derive(Debug)]
struct Table {
    /// The process's root, in its namespace: its table speaks of paths below that, the names of open files do not.
    root: PathBuf,
    /// The same, open: what is mounted there can be reached by it also when the process is gone.
    folder: Option<Arc<OwnedFd>>,
    file: File,
}

/// Where a file is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// A path of ours if the mount is, and else the path inside the file system.
    pub(super) path: PathBuf,
    /// One of our mounts, or a foreign one by the number that we gave it.
    pub(super) mount: u64,
}

/// The numbers that foreign mounts are given begin here, beyond those of the kernel.
const FIRST_FOREIGN: u64 = 1 << 32;

/// A foreign mount and the root that its mount point is below.
#[derive(Debug)]
pub(super) struct Fresh {
    root: Option<Arc<OwnedFd>>,
    pub(super) mount: Mount,
}

impl Fresh {
    /// Opens its mount point to be looked at. `None` if another mount hides it, or it is gone.
    pub(super) fn open(&self) -> Option<OwnedFd> {
        let below = match self.mount.mount_point.strip_prefix("/") {
            Ok(below) if !below.as_os_str().is_empty() => below,
            _ => Path::new("."),
        };
        let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = openat(self.root.as_deref()?, below, flags, Mode::empty()).ok()?;
        (mount_of(&file)? == self.mount.id).then_some(file)
    }
}

impl Table {
    /// The table of a process, and the name of its namespace. `None` if it is gone.
    fn of(process: &Path) -> Option<(PathBuf, Self)> {
        let whereabouts = || {
            let link = |name| std::fs::read_link(process.join(name)).ok();
            Some((link("ns/mnt")?, link("root")?))
        };
        let mut before = whereabouts()?;
        loop {
            let file = File::open(process.join("mountinfo")).ok()?;
            let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::DIRECTORY;
            let folder = openat(CWD, process.join("root"), flags, Mode::empty()).ok().map(Arc::new);
            let after = whereabouts()?;
            // It may have moved meanwhile, and then these do not belong together.
            if after == before {
                let (namespace, root) = after;
                return Some((namespace, Self { root, folder, file }));
            }
            before = after;
        }
    }

    fn read(&self) -> Option<Mounts> {
        let mut text = Vec::new();
        let mut file = &self.file;
        file.rewind().ok()?;
        file.read_to_end(&mut text).ok()?;
        Mounts::parse(&text).ok()
    }
}

/// The namespaces met.
#[derive(Debug)]
pub(super) struct Namespaces {
    roots: Roots,
    ours: Mounts,
    own: HashSet<u64>,
    /// Mounts that are not ours, by the number that we give them, with their places from the root of their namespace.
    foreign: HashMap<u64, Mount>,
    /// Which of them the kernel's number is that of, for now.
    numbers: HashMap<u64, u64>,
    next: u64,
    /// The foreign mounts that files were opened through, by the numbers that are not used again.
    met: HashSet<u64>,
    /// A table of each namespace met, by the name that the kernel gives the namespace.
    tables: HashMap<PathBuf, Table>,
    /// Of the foreign mounts, what was not yet asked for with [`Namespaces::take_fresh`].
    fresh: Vec<Fresh>,
}

impl Namespaces {
    /// Knows `ours` only, and numbers what it meets from `known` on, the number of foreign mounts known already.
    pub(super) fn new(ours: &Mounts, roots: &Roots, known: usize) -> Self {
        let own = ours.iter().map(|mount| mount.id).collect();
        let mut new = Self {
            roots: roots.clone(),
            ours: ours.clone(),
            own,
            foreign: HashMap::new(),
            numbers: HashMap::new(),
            next: FIRST_FOREIGN + known as u64,
            met: HashSet::new(),
            tables: HashMap::new(),
            fresh: Vec::new(),
        };
        // Our own too, for what is mounted in it from now on.
        new.look(rustix::thread::gettid().as_raw_nonzero().get());
        new
    }

    /// Where an open file is, that process `pid` has opened. `None` if it has no name any more, or there is nobody left
    /// to ask.
    pub(super) fn place(&mut self, fd: BorrowedFd<'_>, found: Found, pid: i32) -> Option<Place> {
        let name = name(fd)?;
        let mount = found.mount;
        if self.own.contains(&mount) {
            return Some(Place { path: name, mount });
        }
        if self.met.insert(found.unique) {
            self.meet(mount, pid);
        }
        self.known(found, &name).or_else(|| self.ours(fd, found))
    }

    /// Learns of a foreign mount that is met for the first time: what is known by its number may be of another one that
    /// is gone.
    fn meet(&mut self, mount: u64, pid: i32) {
        self.numbers.remove(&mount);
        self.look(pid);
        if !self.numbers.contains_key(&mount) {
            // Opened by way of another namespace.
            self.learn_again(|_| true);
        }
    }

    /// Where a file is by what is known of foreign mounts.
    fn known(&self, found: Found, name: &Path) -> Option<Place> {
        let mount = *self.numbers.get(&found.mount)?;
        let known = self.foreign.get(&mount).filter(|known| may_have(known, found))?;
        Some(Place { path: known.inside(name)?, mount })
    }

    /// Where an open file is seen through a mount of ours of its file system: of several the one of the smallest part,
    /// as in [`Mounts::find`].
    fn ours(&self, fd: BorrowedFd<'_>, found: Found) -> Option<Place> {
        let handle = FileHandle::of(fd).ok()?;
        let mut mounts: Vec<_> =
            self.ours.iter().filter(|mount| mount.kind().is_readable() && may_have(mount, found)).collect();
        mounts.sort_by_key(|mount| std::cmp::Reverse(mount.root.as_os_str().len()));
        mounts.into_iter().find_map(|mount| {
            let path = through(mount, &handle)?;
            // Outside of what the mount shows, or hidden by another one, it is something else that has this path.
            let at = openat(CWD, &path, OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty());
            let at = find(at.ok()?)?;
            ((at.mount, at.device, at.inode) == (mount.id, found.device, found.inode))
                .then_some(Place { path, mount: mount.id })
        })
    }

    /// Learns what is mounted where the process is.
    fn look(&mut self, pid: i32) {
        let process = self.roots.proc.join(pid.to_string());
        if let Some((namespace, table)) = Table::of(&process) {
            self.learn(&table);
            self.tables.insert(namespace, table);
        }
    }

    /// The tables, to be waited for: the kernel says `POLLPRI` when something is mounted (`proc_pid_mountinfo(5)`).
    pub(super) fn tables(&self) -> impl Iterator<Item = &File> {
        self.tables.values().map(|table| &table.file)
    }

    /// Reads those tables again that `changed` says so of, by their place in [`Namespaces::tables`].
    pub(super) fn learn_again(&mut self, changed: impl Fn(usize) -> bool) {
        let tables = std::mem::take(&mut self.tables);
        for (_, table) in tables.values().enumerate().filter(|(place, _)| changed(*place)) {
            self.learn(table);
        }
        self.tables = tables;
    }

    fn learn(&mut self, table: &Table) {
        let Some(theirs) = table.read() else { return };
        for mount in theirs.iter().filter(|mount| !self.own.contains(&mount.id)) {
            let below = mount.mount_point.strip_prefix("/").unwrap_or(&mount.mount_point);
            // Joining nothing would add a slash.
            let mount_point =
                if below.as_os_str().is_empty() { table.root.clone() } else { table.root.join(below) };
            let seen = Mount { mount_point, ..mount.clone() };
            let known = self.numbers.get(&mount.id).and_then(|number| self.foreign.get(number));
            if known != Some(&seen) {
                self.numbers.insert(mount.id, self.next);
                self.foreign.insert(self.next, seen);
                self.next += 1;
                self.fresh.push(Fresh { root: table.folder.clone(), mount: mount.clone() });
            }
        }
    }

    /// Foreign mounts that were not there when this was last asked.
    pub(super) fn take_fresh(&mut self) -> Vec<Fresh> {
        std::mem::take(&mut self.fresh)
    }

    /// All foreign mounts.
    pub(super) fn into_foreign(self) -> HashMap<u64, Mount> {
        self.foreign
    }
}

/// Whether the file may be on this mount's file system. What `stat(2)` calls a file's device is the super block's, but
/// on btrfs each subvolume has a number of its own, and an overlay may have one for each layer.
fn may_have(mount: &Mount, found: Found) -> bool {
    let same = (mount.device.major, mount.device.minor) == found.device;
    same || mount.fs_type == "btrfs" || mount.kind() == Kind::Overlay
}

/// The name of a handle's file as it is seen through `mount`.
fn through(mount: &Mount, handle: &FileHandle) -> Option<PathBuf> {
    // It may be a file that is mounted, a FIFO for instance: never waited for.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOATIME | OFlags::NOFOLLOW;
    let at =
        openat(CWD, &mount.mount_point, OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty());
    // One that another mount hides, which may be one that must not be touched, is not opened.
    if mount_of(&at.ok()?)? != mount.id {
        return None;
    }
    let root = openat(CWD, &mount.mount_point, flags, Mode::empty()).ok()?;
    name(handle.open(root).ok()?)
}

fn mount_of(fd: impl std::os::fd::AsFd) -> Option<u64> {
    let stat = statx(fd, c"", AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC, StatxFlags::MNT_ID).ok()?;
    (stat.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(stat.stx_mnt_id)
}
