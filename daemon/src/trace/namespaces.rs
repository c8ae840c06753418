//! Where a file is that was opened in whatever mount namespace, below whatever root.
//!
//! The name that the kernel gives for a mount of ours is a path of ours, also when its opener lives in a `chroot(2)`.
//! For another mount it is a path from the root of the namespace that the mount is in, and only a process in there
//! knows what is mounted where; nor does its table stay as it is (`pivot_root(2)` renames all of it). So the path inside
//! the file system is worked out at once: that stays.
//!
//! A process may be gone before its open is heard of. So one table of each namespace is kept open, which also keeps the
//! namespace: read again, it has what was mounted since (`mountinfo` in `proc(5)`).

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{Read, Seek};
use std::path::PathBuf;

use crate::mounts::{Mount, Mounts};
use crate::roots::Roots;

/// One process's table of mounts, kept open.
#[derive(Debug)]
struct Table {
    pid: i32,
    /// The process's root, in its namespace: its table speaks of paths below that, the names of open files do not.
    root: PathBuf,
    file: File,
}

impl Table {
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
    own: HashSet<u64>,
    /// Mounts that are not ours, by number, with their places from the root of their namespace.
    foreign: HashMap<u64, Mount>,
    /// A table of each namespace met, by the name that the kernel gives the namespace.
    tables: HashMap<PathBuf, Table>,
    /// Of the foreign mounts, what was not yet asked for with [`Namespaces::take_fresh`], with its place as a process sees it.
    fresh: Vec<(i32, Mount)>,
}

impl Namespaces {
    pub(super) fn new(ours: &Mounts, roots: &Roots) -> Self {
        let own = ours.iter().map(|mount| mount.id).collect();
        let mut new = Self {
            roots: roots.clone(),
            own,
            foreign: HashMap::new(),
            tables: HashMap::new(),
            fresh: Vec::new(),
        };
        // Our own too, for what is mounted in it from now on.
        new.look(rustix::thread::gettid().as_raw_nonzero().get());
        new
    }

    /// The path to keep of a file on this mount, that the kernel calls `name` and process `pid` has opened: for a mount
    /// of ours the name, for another one the path inside its file system. `None` if there is nobody left to ask.
    pub(super) fn place(&mut self, mount: u64, name: PathBuf, pid: i32) -> Option<PathBuf> {
        if self.own.contains(&mount) {
            return Some(name);
        }
        let inside = |all: &HashMap<u64, Mount>| all.get(&mount)?.inside(&name);
        inside(&self.foreign).or_else(|| {
            self.look(pid);
            inside(&self.foreign)
        })
    }

    /// Learns what is mounted where the process is, or, if it is gone, in all namespaces met.
    fn look(&mut self, pid: i32) {
        let process = self.roots.proc.join(pid.to_string());
        if let Ok(file) = File::open(process.join("mountinfo")) {
            let root = std::fs::read_link(process.join("root")).unwrap_or_else(|_| "/".into());
            let table = Table { pid, root, file };
            self.learn(&table);
            if let Ok(namespace) = std::fs::read_link(process.join("ns/mnt")) {
                self.tables.insert(namespace, table);
            }
            return;
        }
        self.learn_again(|_| true);
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
            if self.foreign.insert(mount.id, Mount { mount_point, ..mount.clone() }).is_none() {
                self.fresh.push((table.pid, mount.clone()));
            }
        }
    }

    /// Foreign mounts that were not there when this was last asked.
    pub(super) fn take_fresh(&mut self) -> Vec<(i32, Mount)> {
        std::mem::take(&mut self.fresh)
    }

    /// All foreign mounts.
    pub(super) fn into_foreign(self) -> HashMap<u64, Mount> {
        self.foreign
    }
}
