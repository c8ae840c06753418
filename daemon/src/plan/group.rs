//! Sorting what is wanted by the drive that it is on, before anything of it is touched.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use headstart_shared::units::Bytes;

use super::{Target, Wanted, WantedFile};
use crate::drive::{Class, Drive, DriveError, Drives};
use crate::mounts::{Kind, Mounts};
use crate::recording::DeviceNumber;
use crate::roots::Roots;
use crate::sys::readahead::MAX_CHUNK;

/// What is wanted, by drive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// Each drive and what is wanted from it, in the order in which files first name them.
    pub drives: Vec<Group>,
    /// Files on file systems that are never touched, and what these are.
    pub untouchable: Vec<(PathBuf, Kind)>,
    /// Why the drives of some file systems are not known. Their files are in a group without a drive.
    pub remarks: Vec<String>,
}

/// What is wanted from one drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The drive, as far as it is known: of a file system on several, the one that decides how to read.
    pub drive: Option<Drive>,
    /// What is wanted from it.
    pub wanted: Wanted,
}

impl Group {
    /// What to plan for, with a class given on the command line in place of the drive's own.
    #[must_use]
    pub fn target(&self, as_if: Option<Class>) -> Target {
        let mut target = match &self.drive {
            Some(drive) => Target::from(drive),
            None => Target { name: "unknown".into(), class: Class::Virtual, max_readahead: Bytes(MAX_CHUNK) },
        };
        target.class = as_if.unwrap_or(target.class);
        target
    }
}

/// Sorts by drive. Only mountinfo and sysfs are read.
#[must_use]
pub fn by_drive(wanted: Wanted, mounts: &Mounts, roots: &Roots) -> Groups {
    let mut sorter = Sorter { mounts, roots, known: HashMap::new(), groups: Groups::default() };
    for file in wanted.files {
        sorter.file(file);
    }
    for device in wanted.devices {
        let group = sorter.group(Key::Device(device.device), |mounts, roots| {
            Drives::of_device(device.device, mounts, roots)
        });
        if let Some(group) = group {
            group.wanted.devices.push(device);
        }
    }
    sorter.groups
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Mount(u64),
    Device(DeviceNumber),
}

struct Sorter<'a> {
    mounts: &'a Mounts,
    roots: &'a Roots,
    /// The group of each mount or device met; `None` for what is not read.
    known: HashMap<Key, Option<usize>>,
    groups: Groups,
}

impl Sorter<'_> {
    fn file(&mut self, file: WantedFile) {
        if let Some(kind) = self.mounts.untouchable(&file.path) {
            self.groups.untouchable.push((file.path, kind));
            return;
        }
        let Some(mount) = self.mounts.at(Path::new(&file.path)) else { return };
        match self.group(Key::Mount(mount.id), |mounts, roots| Drives::of(mount, mounts, roots)) {
            Some(group) => group.wanted.files.push(file),
            None => self.groups.untouchable.push((file.path, Kind::Memory)),
        }
    }

    fn group(
        &mut self,
        key: Key,
        look: impl FnOnce(&Mounts, &Roots) -> Result<Drives, DriveError>,
    ) -> Option<&mut Group> {
        let found = if let Some(found) = self.known.get(&key) {
            *found
        } else {
            let found = match look(self.mounts, self.roots) {
                Ok(drives) => Some(self.index(Some(drives.deciding()))),
                // On a compressed disk in memory: a drive to the kernel, but nothing to read ahead.
                Err(DriveError::Memory { .. }) => None,
                Err(error) => {
                    self.groups.remarks.push(error.to_string());
                    Some(self.index(None))
                }
            };
            self.known.insert(key, found);
            found
        };
        self.groups.drives.get_mut(found?)
    }

    fn index(&mut self, drive: Option<&Drive>) -> usize {
        // The same drive through other layers is one drive: its requests share a queue and its head.
        let device = drive.map(|drive| drive.device);
        let known =
            self.groups.drives.iter().position(|group| group.drive.as_ref().map(|d| d.device) == device);
        known.unwrap_or_else(|| {
            self.groups.drives.push(Group { drive: drive.cloned(), wanted: Wanted::default() });
            self.groups.drives.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use headstart_shared::units::Nanos;

    use super::*;
    use crate::plan::WantedDevice;
    use crate::recording::FileIdentity;

    /// A sysfs with these devices and their rotational flags.
    fn sysfs(devices: &[(&str, &str, &str)]) -> tempfile::TempDir {
        let sys = tempfile::tempdir().unwrap();
        fs::create_dir_all(sys.path().join("dev/block")).unwrap();
        for (name, number, rotational) in devices {
            let folder = sys.path().join("devices").join(name);
            fs::create_dir_all(folder.join("queue")).unwrap();
            fs::write(folder.join("dev"), number).unwrap();
            fs::write(folder.join("queue/rotational"), rotational).unwrap();
            symlink(folder, sys.path().join("dev/block").join(number)).unwrap();
        }
        sys
    }

    fn file(path: &str) -> WantedFile {
        WantedFile {
            path: path.into(),
            identity: FileIdentity { filesystem: 0, inode: 1, size: 1, mtime: 0 },
            ranges: Vec::new(),
            first_need: Nanos(0),
            extents: Vec::new(),
        }
    }

    #[test]
    fn each_drive_gets_what_is_on_it() {
        let sys = sysfs(&[("sda", "8:0", "1"), ("sdb", "8:16", "0"), ("zram0", "253:0", "0")]);
        let mounts = Mounts::parse(
            b"1 0 8:0 / / rw - ext4 /dev/sda rw
2 1 8:16 / /home rw - ext4 /dev/sdb rw
3 1 8:0 /srv /srv rw - ext4 /dev/sda rw
4 1 253:0 / /fast rw - ext4 /dev/zram0 rw
5 1 0:50 / /net rw - nfs4 s:/ rw
6 1 9:9 / /odd rw - ext4 /dev/md9 rw",
        )
        .unwrap();
        let files = ["/home/b", "/usr/a", "/srv/c", "/fast/d", "/net/e", "/odd/f"].map(file).into();
        let device = DeviceNumber { major: 8, minor: 0 };
        let devices = vec![WantedDevice { device, filesystem: 1, base: 0, ranges: Vec::new() }];
        let roots = Roots { sys: sys.path().into(), ..Roots::default() };
        let groups = by_drive(Wanted { files, devices }, &mounts, &roots);

        let shown: Vec<_> = groups
            .drives
            .iter()
            .map(|group| {
                let paths =
                    group.wanted.files.iter().map(|f| f.path.to_str().unwrap()).collect::<Vec<_>>().join(" ");
                (group.target(None).name, group.target(None).class, paths, group.wanted.devices.len())
            })
            .collect();
        let row =
            |name: &str, class, paths: &str, devices| (name.to_owned(), class, paths.to_owned(), devices);
        assert_eq!(
            shown,
            [
                row("sdb", Class::Flash(crate::drive::Flash::Unknown), "/home/b", 0),
                row("sda", Class::Spinning, "/usr/a /srv/c", 1),
                row("unknown", Class::Virtual, "/odd/f", 0),
            ]
        );
        assert_eq!(groups.untouchable, [("/fast/d".into(), Kind::Memory), ("/net/e".into(), Kind::Network)]);
        assert!(groups.remarks[0].contains("9:9"), "{:?}", groups.remarks);
        assert_eq!(groups.drives[0].target(Some(Class::Spinning)).class, Class::Spinning);
    }
}
