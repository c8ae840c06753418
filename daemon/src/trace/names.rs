//! Which file is which: from the page cache's (super block, inode) to a path in our own mount namespace.
//!
//! What `stat(2)` says of a file and what the page cache calls it differ on btrfs (a subvolume has a device number of its
//! own) and overlayfs (the pages belong to the file in the layer below). The mount that a file was opened through knows:
//! mountinfo has the super block's number, and the layers.

use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::event::CacheKey;
use super::opens::{Opened, Opens};
use crate::mounts::{Kind, Mount, Mounts};
use crate::recording::DeviceNumber;

/// How deep overlays may lie on overlays; the kernel allows two.
const MAX_STACK: u8 = 3;

/// A file that was opened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Named {
    /// Its path in our mount namespace, when it was opened.
    pub path: PathBuf,
    /// The inode number that `stat(2)` gives for it there: another file may have got the name since.
    pub inode: u64,
}

/// Files in our mount namespace, by what the page cache calls them.
///
/// More than one file may have the same key: on btrfs inode numbers are those of a subvolume, the device number is
/// that of all of them.
#[derive(Debug, Default)]
pub struct Names {
    files: HashMap<CacheKey, Vec<Named>>,
}

impl Names {
    /// Works out the names of what was opened, as far as it may have one of these inode numbers: all of the machine's
    /// opens are heard. Only files that are on file systems that may be touched are looked at.
    #[must_use]
    pub fn resolve(opens: &Opens, ours: &Mounts, inodes: &HashSet<u64>) -> Self {
        let mut names = Self::default();
        // An overlay's inode numbers are its own.
        let may_be = |opened: &&Opened| {
            inodes.contains(&opened.inode)
                || opens
                    .foreign
                    .get(&opened.mount)
                    .or_else(|| ours.by_id(opened.mount))
                    .is_some_and(|mount| mount.kind() == Kind::Overlay)
        };
        for opened in opens.files.iter().filter(may_be) {
            if let Some((key, named)) = name(opened, opens, ours) {
                let files = names.files.entry(key).or_default();
                if !files.contains(&named) {
                    files.push(named);
                }
            }
        }
        names
    }

    /// The files that `key` may be.
    #[must_use]
    pub fn of(&self, key: CacheKey) -> &[Named] {
        self.files.get(&key).map_or(&[], Vec::as_slice)
    }
}

/// What the page cache calls an opened file, and its name; `None` if it has none here or must not be touched.
pub(super) fn name(opened: &Opened, opens: &Opens, ours: &Mounts) -> Option<(CacheKey, Named)> {
    let foreign = opens.foreign.get(&opened.mount);
    if let Some(mount) = foreign.filter(|mount| is_overlay_elsewhere(mount, ours)) {
        let seen = mount.outside(&opened.path)?;
        let (key, path) = below_overlay(mount, &seen, ours, MAX_STACK)?;
        return Some((key, Named { path, inode: key.inode }));
    }
    let path = own_path(opened, opens, ours)?;
    let key = match foreign.or_else(|| ours.by_id(opened.mount))? {
        mount if mount.kind() == Kind::Overlay => below_overlay(ours.at(&path)?, &path, ours, MAX_STACK)?.0,
        mount => CacheKey { device: mount.device, inode: opened.inode },
    };
    Some((key, Named { path, inode: opened.inode }))
}

/// Whether this is an overlay that only another namespace sees, a container's for instance. Its layers may be seen here:
/// its files are then known by their names there.
fn is_overlay_elsewhere(mount: &Mount, ours: &Mounts) -> bool {
    mount.kind() == Kind::Overlay && ours.by_device(mount.device).next().is_none()
}

/// An opened file's path in our own mount namespace, if it has one there and is on a file system that may be touched.
fn own_path(opened: &Opened, opens: &Opens, ours: &Mounts) -> Option<PathBuf> {
    let path = match opens.foreign.get(&opened.mount) {
        Some(mount) => ours.find(mount.device, &opened.path)?,
        None => ours.by_id(opened.mount).map(|_| opened.path.clone())?,
    };
    ours.untouchable(&path).is_none().then_some(path)
}

/// The file that an overlay's file really is, and its path: in the first layer that has it.
fn below_overlay(overlay: &Mount, path: &Path, ours: &Mounts, depth: u8) -> Option<(CacheKey, PathBuf)> {
    let depth = depth.checked_sub(1)?;
    overlay.overlay_candidates(path).into_iter().find_map(|candidate| {
        if ours.untouchable(&candidate).is_some() {
            return None;
        }
        let stat = std::fs::symlink_metadata(&candidate).ok().filter(std::fs::Metadata::is_file)?;
        let mount = ours.at(&candidate)?;
        match mount.kind() {
            Kind::Overlay => below_overlay(mount, &candidate, ours, depth),
            _ => Some((CacheKey { device: mount.device, inode: stat.ino() }, candidate)),
        }
    })
}

/// The mount whose block device `key` is: its pages are the file system's own structures.
///
/// A block device's pages belong to an inode of an internal file system; since Linux 5.11 its number is the device's.
#[must_use]
pub fn block_device(key: CacheKey, ours: &Mounts) -> Option<(DeviceNumber, &Mount)> {
    if ours.by_device(key.device).next().is_some() {
        return None;
    }
    let device = super::event::kernel_device(key.inode)?;
    // One that another mount does not hide: something is asked of it.
    let mount = ours.by_device(device).find(|mount| {
        mount.kind() == Kind::Drive && ours.at(&mount.mount_point).is_some_and(|at| at.id == mount.id)
    })?;
    (device.major != 0).then_some((device, mount))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::start::Monotonic;

    fn opened(path: &str, mount: u64, inode: u64) -> Opened {
        Opened { path: path.into(), mount, inode, pid: 1, at: Monotonic(0) }
    }

    fn named(path: &str, inode: u64) -> Named {
        Named { path: path.into(), inode }
    }

    fn key(major: u32, minor: u32, inode: u64) -> CacheKey {
        CacheKey { device: DeviceNumber { major, minor }, inode }
    }

    #[test]
    fn a_path_of_another_namespace_is_translated() {
        let ours = Mounts::parse(b"1 0 8:1 / / rw - ext4 /dev/sda1 rw\n").unwrap();
        let theirs = Mounts::parse(b"90 80 8:1 /var/lib/app/files /app rw - ext4 /dev/sda1 rw\n").unwrap();
        let foreign = theirs.iter().map(|mount| (mount.id, mount.clone())).collect();
        let opens =
            Opens { files: vec![opened("/var/lib/app/files/bin/x", 90, 5)], foreign, overflowed: false };
        let names = Names::resolve(&opens, &ours, &[5, 257].into());
        assert_eq!(names.of(key(8, 1, 5)), [named("/var/lib/app/files/bin/x", 5)]);
    }

    #[test]
    fn subvolumes_share_the_device_and_may_share_inode_numbers() {
        let ours = Mounts::parse(
            b"1 0 0:26 /@ / rw - btrfs /dev/sda1 rw\n2 1 0:26 /@home /home rw - btrfs /dev/sda1 rw\n",
        )
        .unwrap();
        let files = vec![opened("/bin/x", 1, 257), opened("/home/y", 2, 257)];
        let names = Names::resolve(&Opens { files, ..Opens::default() }, &ours, &[257].into());
        assert_eq!(names.of(key(0, 26, 257)), [named("/bin/x", 257), named("/home/y", 257)]);
    }

    #[test]
    fn what_must_not_be_touched_has_no_name() {
        let ours =
            Mounts::parse(b"1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:40 / /net rw - nfs4 server:/ rw\n")
                .unwrap();
        let opens = Opens { files: vec![opened("/net/x", 2, 5), opened("/gone", 99, 6)], ..Opens::default() };
        let names = Names::resolve(&opens, &ours, &[5, 257].into());
        assert!(names.of(key(0, 40, 5)).is_empty() && names.files.is_empty());
    }

    #[test]
    fn a_block_device_is_known_by_its_number() {
        let ours =
            Mounts::parse(b"1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:40 / /net rw - nfs4 server:/ rw\n")
                .unwrap();
        let device = |key| block_device(key, &ours).map(|(device, _)| device);
        assert_eq!(device(key(0, 3, (8 << 20) | 1)), Some(DeviceNumber { major: 8, minor: 1 }));
        assert_eq!(device(key(0, 3, (8 << 20) | 2)), None, "not mounted");
        assert_eq!(device(key(8, 1, (8 << 20) | 1)), None, "a file of the file system itself");
        assert_eq!(device(key(0, 3, 40)), None, "no block device");
    }
}
