//! Opening the block devices whose file-system structures a plan reads.
//!
//! Reading a block device ahead helps only file systems that read their structures through the device's own page cache:
//! ext2, ext3 and ext4, and the simple ones. XFS and btrfs keep theirs elsewhere, so nothing is read for them.
//!
//! Only a device with such a file system mounted, and the one that was learned from, is opened. Its number may have
//! changed since; the file system's has not.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::{FileType, Mode, OFlags, fstat, fstatvfs, major, minor};
use thiserror::Error;

use crate::mounts::{Kind, Mount, Mounts};
use crate::plan::PlannedDevice;
use crate::recording::DeviceNumber;
use crate::roots::Roots;
use crate::sys::readahead;

/// File systems whose structures are in the page cache of their device.
const THROUGH_THE_DEVICE: [&str; 7] = ["ext2", "ext3", "ext4", "vfat", "exfat", "iso9660", "udf"];

/// Why the structures of a file system are not read ahead.
#[derive(Debug, Error)]
pub(super) enum DeviceRefusal {
    #[error(
        "The inodes and folders of the file system on {0} were not read ahead: it is not mounted any more, or of a type for which that does not help."
    )]
    NotMounted(DeviceNumber),
    #[error(
        "The inodes and folders of a file system were not read ahead, its files were: {} ({device}) cannot be opened: {source}.",
        path.display()
    )]
    Open { device: DeviceNumber, path: PathBuf, source: std::io::Error },
    #[error(
        "The inodes and folders of a file system were not read ahead, its files were: {} is not device {device}.",
        path.display()
    )]
    Other { device: DeviceNumber, path: PathBuf },
}

pub(super) fn open(
    planned: &PlannedDevice,
    mounts: &Mounts,
    roots: &Roots,
) -> Result<OwnedFd, DeviceRefusal> {
    let mut candidates: Vec<&Mount> = mounts.iter().filter(|mount| can_help(mount, mounts)).collect();
    candidates.sort_by_key(|mount| mount.device != planned.device);
    let mount = candidates.into_iter().find(|mount| file_system_at(mount) == Some(planned.filesystem));
    let device = mount.ok_or(DeviceRefusal::NotMounted(planned.device))?.device;
    let path = node(device, roots);
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let failed =
        |errno: rustix::io::Errno| DeviceRefusal::Open { device, path: path.clone(), source: errno.into() };
    let fd = rustix::fs::open(&path, flags, Mode::empty()).map_err(failed)?;
    let stat = fstat(&fd).map_err(failed)?;
    let is_block = FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice;
    if !is_block || (major(stat.st_rdev), minor(stat.st_rdev)) != (device.major, device.minor) {
        return Err(DeviceRefusal::Other { device, path });
    }
    // As for files: waiting for a page must not bring in others.
    let _ = readahead::expect_random(&fd);
    Ok(fd)
}

fn can_help(mount: &Mount, mounts: &Mounts) -> bool {
    mount.kind() == Kind::Drive
        && THROUGH_THE_DEVICE.iter().any(|name| mount.fs_type == *name)
        && mounts.at(&mount.mount_point).is_some_and(|at| at.id == mount.id)
}

/// The file system at a mount point. Its superblock and root are in memory as long as it is mounted.
fn file_system_at(mount: &Mount) -> Option<u64> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let root = rustix::fs::open(&mount.mount_point, flags, Mode::empty()).ok()?;
    Some(fstatvfs(root).ok()?.f_fsid)
}

/// The device's node by the name that the kernel gives it, which udev keeps and devtmpfs makes.
fn node(device: DeviceNumber, roots: &Roots) -> PathBuf {
    let uevent = roots.sys.join("dev/block").join(device.to_string()).join("uevent");
    let text = std::fs::read_to_string(uevent).unwrap_or_default();
    match text.lines().find_map(|line| line.strip_prefix("DEVNAME=")) {
        Some(name) => roots.dev.join(name),
        None => roots.dev.join("block").join(device.to_string()),
    }
}
