//! Walking down `/sys` from a file system's device to the drives under it.
//!
//! Each block device has a folder there. A partition's is inside its disk's; a mapped device's (LVM, dm-crypt, md,
//! bcache) has links in `slaves/` to what it is made of; a loop device's names its file.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::{Class, Drive, DriveError, Drives, Flash, Layer};
use crate::mounts::{Kind, Mount, Mounts};
use crate::recording::DeviceNumber;
use crate::roots::Roots;

/// Deeper than any real stack of layers.
const DEEPEST: usize = 16;

/// What btrfs reads ahead where it does not say.
const BTRFS_READ_AHEAD_KB: u64 = 128;

impl Drives {
    /// The drives under the file system that is mounted here. Those of an overlay are those of its layers.
    ///
    /// # Errors
    /// When the file system is on no block device, or sysfs does not tell which.
    pub fn of(mount: &Mount, mounts: &Mounts, roots: &Roots) -> Result<Self, DriveError> {
        let mut walk = Walk { roots, mounts, found: Vec::new() };
        walk.mount(mount, &[])?;
        Ok(Self { list: walk.found })
    }

    /// The drives under a block device.
    ///
    /// # Errors
    /// When sysfs knows no such device, or it is memory.
    pub fn of_device(device: DeviceNumber, mounts: &Mounts, roots: &Roots) -> Result<Self, DriveError> {
        let mut walk = Walk { roots, mounts, found: Vec::new() };
        walk.device(device, &[])?;
        Ok(Self { list: walk.found })
    }
}

/// A device's folder in sysfs.
struct Node {
    folder: PathBuf,
}

impl Node {
    fn at(path: &Path) -> Option<Self> {
        fs::canonicalize(path).ok().filter(|folder| folder.is_dir()).map(|folder| Self { folder })
    }

    fn name(&self) -> String {
        self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    fn text(&self, file: &str) -> Option<String> {
        let text = fs::read_to_string(self.folder.join(file)).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    fn number(&self, file: &str) -> Option<u64> {
        self.text(file)?.parse().ok()
    }

    fn rotational(&self) -> Option<bool> {
        Some(self.number("queue/rotational")? != 0)
    }

    fn device(&self) -> Option<DeviceNumber> {
        let text = self.text("dev")?;
        let (major, minor) = text.split_once(':')?;
        Some(DeviceNumber { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }

    /// A partition has no queue of its own: its folder is inside its disk's.
    fn disk_of_partition(&self) -> Option<Self> {
        self.folder.join("partition").exists().then(|| self.folder.parent())?.and_then(Self::at)
    }

    fn slaves(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.folder.join("slaves")) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// What a layer is, in words.
    fn layer(&self) -> Layer {
        let mapped = || {
            let (uuid, name) = (self.text("dm/uuid").unwrap_or_default(), self.text("dm/name"));
            let what = match uuid.split('-').next().unwrap_or_default() {
                "CRYPT" => "encryption",
                "LVM" => "LVM volume",
                "mpath" => "multipath",
                _ => "mapping",
            };
            name.map_or_else(|| what.to_owned(), |name| format!("{what} {name}"))
        };
        let what = match () {
            () if self.folder.join("partition").exists() => "partition".to_owned(),
            () if self.folder.join("dm").exists() => mapped(),
            () if self.folder.join("md").exists() => {
                self.text("md/level").unwrap_or_else(|| "RAID".to_owned())
            }
            () if self.folder.join("bcache").exists() => "cache".to_owned(),
            () if self.folder.join("loop").exists() => {
                format!("file {}", self.text("loop/backing_file").unwrap_or_default())
            }
            () => "layer".to_owned(),
        };
        Layer { name: self.name(), what }
    }
}

struct Walk<'a> {
    roots: &'a Roots,
    mounts: &'a Mounts,
    found: Vec<Drive>,
}

impl Walk<'_> {
    fn mount(&mut self, mount: &Mount, path: &[Layer]) -> Result<(), DriveError> {
        let unknown = |why: &str| DriveError::NoBlockDevice {
            source_name: mount.source.to_string_lossy().into_owned(),
            fs_type: mount.fs_type.to_string_lossy().into_owned(),
            why: why.to_owned(),
        };
        if path.len() > DEEPEST {
            return Err(DriveError::TooDeep { name: mount.source.to_string_lossy().into_owned() });
        }
        match mount.kind() {
            Kind::Drive if mount.device.major != 0 => self.device(mount.device, path),
            Kind::Drive => {
                let members = self.members(mount);
                if members.is_empty() {
                    return Err(unknown("/sys does not tell which devices it is on"));
                }
                let (first, found) = (self.found.len(), members.len());
                for member in members {
                    self.node(&member, path)?;
                }
                self.btrfs_read_ahead(mount, first, found);
                Ok(())
            }
            Kind::Overlay => {
                self.layers_of(mount, path).map_err(|()| unknown("none of its layers is on a drive"))
            }
            kind => Err(unknown(&format!("it is {kind}"))),
        }
    }

    /// Overlays say where their layers are; those that are not on drives (an upper layer in memory) do not count.
    fn layers_of(&mut self, overlay: &Mount, path: &[Layer]) -> Result<(), ()> {
        let mut path = path.to_vec();
        path.push(Layer { name: overlay.mount_point.display().to_string(), what: "overlay".to_owned() });
        let before = self.found.len();
        for layer in overlay.overlay_layers().all() {
            if let Some(mount) = self.mounts.at(layer) {
                let _ = self.mount(mount, &path);
            }
        }
        if self.found.len() > before { Ok(()) } else { Err(()) }
    }

    /// The devices of a file system that spreads over several, by the one that was named when it was mounted.
    fn members(&self, mount: &Mount) -> Vec<Node> {
        // bcachefs names them all.
        let sources = mount.source.as_bytes().split(|&b| b == b':');
        let named: Vec<Node> = sources.filter_map(|source| self.named(source)).collect();
        let Some(folder) = self.btrfs_folder(&named) else { return named };
        let entries = fs::read_dir(folder.join("devices")).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        let members: Vec<Node> = paths.iter().filter_map(|path| Node::at(path)).collect();
        if members.is_empty() { named } else { members }
    }

    /// `/sys/fs/btrfs/UUID` of the file system with this device.
    fn btrfs_folder(&self, named: &[Node]) -> Option<PathBuf> {
        let entries = fs::read_dir(self.roots.sys.join("fs/btrfs")).ok()?.flatten();
        entries
            .map(|entry| entry.path())
            .find(|folder| named.iter().any(|node| folder.join("devices").join(node.name()).exists()))
    }

    /// Btrfs reads ahead by a setting of its own, not by that of its devices.
    fn btrfs_read_ahead(&mut self, mount: &Mount, first: usize, members: usize) {
        if mount.fs_type != "btrfs" || members == 0 {
            return;
        }
        let named: Vec<Node> = self.named(mount.source.as_bytes()).into_iter().collect();
        let own = self.btrfs_folder(&named).and_then(|folder| Node { folder }.number("bdi/read_ahead_kb"));
        for drive in self.found.iter_mut().skip(first) {
            drive.read_ahead_kb = own.or(Some(BTRFS_READ_AHEAD_KB));
            drive.max_sectors_kb = None;
        }
    }

    /// The device with this node, by its name alone: `/dev/sda2`, `/dev/mapper/NAME`.
    fn named(&self, source: &[u8]) -> Option<Node> {
        let source = Path::new(std::ffi::OsStr::from_bytes(source));
        let class = self.roots.sys.join("class/block");
        if let Ok(mapped) = source.strip_prefix("/dev/mapper") {
            let name = mapped.to_string_lossy();
            let entries = fs::read_dir(&class).ok()?.flatten();
            let mut nodes = entries.filter_map(|entry| Node::at(&entry.path()));
            return nodes.find(|node| node.text("dm/name").as_deref() == Some(&*name));
        }
        source.starts_with("/dev").then_some(())?;
        Node::at(&class.join(source.file_name()?))
    }

    fn device(&mut self, device: DeviceNumber, path: &[Layer]) -> Result<(), DriveError> {
        let link = self.roots.sys.join("dev/block").join(device.to_string());
        match Node::at(&link) {
            Some(node) => self.node(&node, path),
            None => Err(DriveError::NoDevice { device, path: link }),
        }
    }

    fn node(&mut self, node: &Node, path: &[Layer]) -> Result<(), DriveError> {
        let name = node.name();
        if path.len() > DEEPEST {
            return Err(DriveError::TooDeep { name });
        }
        let is_numbered = |prefix: &str| {
            name.strip_prefix(prefix)
                .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
        };
        if is_numbered("zram") || is_numbered("ram") {
            return Err(DriveError::Memory { name });
        }
        let mut below = path.to_vec();
        below.push(node.layer());
        if let Some(disk) = node.disk_of_partition() {
            return self.node(&disk, &below);
        }
        let first = self.found.len();
        let slaves = node.slaves();
        if slaves.is_empty() {
            if !self.below_loop(node, &below) {
                self.add(drive(node, path));
            }
        } else {
            for slave in slaves {
                let link = node.folder.join("slaves").join(&slave);
                let found =
                    Node::at(&link).or_else(|| Node::at(&self.roots.sys.join("class/block").join(&slave)));
                let missing =
                    || DriveError::NoDevice { device: DeviceNumber { major: 0, minor: 0 }, path: link };
                self.node(&found.ok_or_else(missing)?, &below)?;
            }
        }
        // How far a call reads ahead is a setting of the topmost device, which is set last.
        for drive in self.found.iter_mut().skip(first) {
            drive.read_ahead_kb = node.number("queue/read_ahead_kb").or(drive.read_ahead_kb);
            drive.max_sectors_kb = node.number("queue/max_sectors_kb").or(drive.max_sectors_kb);
        }
        Ok(())
    }

    /// Goes on below a loop device, to the drive of its file; `false` if the loop device itself counts as the drive.
    ///
    /// The kernel gives a loop device the rotational flag of what is under it. Where the two differ, somebody has set
    /// it, and means this device to be taken for a drive of that kind. Where its file is not on a drive that can be
    /// told (on FUSE, in memory, in another mount namespace), there is only the loop device's own word.
    fn below_loop(&mut self, node: &Node, below: &[Layer]) -> bool {
        let Some(file) = node.text("loop/backing_file") else { return false };
        let Some(mount) = self.mounts.at(Path::new(&file)) else { return false };
        let mut inner = Walk { roots: self.roots, mounts: self.mounts, found: Vec::new() };
        if inner.mount(mount, below).is_err() {
            return false;
        }
        let as_below = |drive: &Drive| {
            let link = self.roots.sys.join("dev/block").join(drive.device.to_string());
            Node::at(&link).and_then(|node| node.rotational()) == node.rotational()
        };
        if !inner.found.iter().all(as_below) {
            return false;
        }
        inner.found.into_iter().for_each(|drive| self.add(drive));
        true
    }

    fn add(&mut self, drive: Drive) {
        if self.found.iter().all(|known| known.device != drive.device) {
            self.found.push(drive);
        }
    }
}

fn drive(node: &Node, path: &[Layer]) -> Drive {
    let model = node.text("device/model").or_else(|| node.text("device/name"));
    Drive {
        name: node.name(),
        device: node.device().unwrap_or(DeviceNumber { major: 0, minor: 0 }),
        class: class(node, model.as_deref()),
        model,
        scheduler: node.text("queue/scheduler").map(|text| active_scheduler(&text)),
        read_ahead_kb: node.number("queue/read_ahead_kb"),
        max_sectors_kb: node.number("queue/max_sectors_kb"),
        requests: node.number("queue/nr_requests").and_then(|n| n.try_into().ok()),
        queue_depth: node.number("device/queue_depth").and_then(|n| n.try_into().ok()),
        path: path.to_vec(),
    }
}

/// `mq-deadline kyber [bfq] none`: the one in brackets. A driver with none of its own shows a bare `none`.
fn active_scheduler(text: &str) -> String {
    let bracketed = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    bracketed.map_or(text, |(active, _)| active).to_owned()
}

/// Models under which virtual machines present their drives.
const VIRTUAL_MODELS: [&str; 7] =
    ["QEMU", "VBOX", "VMware", "Virtual", "PersistentDisk", "Amazon Elastic Block Store", "BHYVE"];

fn class(node: &Node, model: Option<&str>) -> Class {
    let name = node.name();
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    let model_is_virtual =
        model.is_some_and(|model| VIRTUAL_MODELS.iter().any(|known| model.contains(known)));
    // Network block devices and persistent memory are no less unknown than a virtual machine's.
    if model_is_virtual || starts(&["vd", "xvd", "nbd", "rbd", "drbd", "ublk", "pmem", "nullb"]) {
        return Class::Virtual;
    }
    let has_parent = |prefix: &str| {
        let components = node.folder.components();
        components.map(|c| c.as_os_str().as_bytes()).any(|part| {
            part.strip_prefix(prefix.as_bytes())
                .is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_digit))
        })
    };
    match node.rotational() {
        None => Class::Virtual,
        Some(true) => Class::Spinning,
        Some(false) if starts(&["nvme"]) => Class::Flash(Flash::Nvme),
        Some(false) if starts(&["mmcblk"]) => Class::Flash(Flash::Emmc),
        Some(false) if has_parent("usb") => Class::Flash(Flash::Unknown),
        Some(false) if has_parent("ata") || node.text("device/vendor").as_deref() == Some("ATA") => {
            Class::Flash(Flash::Sata)
        }
        Some(false) => Class::Flash(Flash::Unknown),
    }
}
