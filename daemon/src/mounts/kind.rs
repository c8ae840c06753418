//! Which file systems may be touched, decided by their type's name alone.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;

use crate::recording::DeviceNumber;

/// What kind of file system is mounted. Only [`Kind::is_readable`] ones are ever opened, statted or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// On a block device of this machine (or several): what reading ahead is for.
    Drive,
    /// Layers of other file systems (overlayfs); as readable as its layers are.
    Overlay,
    /// Another machine answers, or the host of this virtual machine: a read can hang for ever.
    Network,
    /// A process answers: a read can hang, and asks that process to work. A block device whose content comes from
    /// such a process is no such mount and is fine, a waiting block device being what drivers are made for.
    Fuse,
    /// ZFS keeps a cache of its own; asking `mincore(2)` about its files has corrupted reads.
    Zfs,
    /// Touching it mounts something.
    Autofs,
    /// Kernel interfaces, where reading is an act.
    Virtual,
    /// Memory already: nothing to read.
    Memory,
    /// Not known to this version. Left alone.
    Unknown,
}

impl Kind {
    /// The kind of a mount with this type and superblock device.
    #[must_use]
    pub fn of(fs_type: &OsStr, device: DeviceNumber) -> Self {
        let name = fs_type.as_bytes();
        let Ok(name) = std::str::from_utf8(name) else { return Self::Unknown };
        // `fuse.sshfs` and `fuseblk.ntfs`: the part after the dot is whatever the server calls itself.
        let family = name.split('.').next().unwrap_or(name);
        match family {
            "fuse" | "fuseblk" | "fusectl" | "virtiofs" if name != "fusectl" => Self::Fuse,
            "nfs" | "nfs4" | "cifs" | "smb3" | "smbfs" | "9p" | "ceph" | "afs" | "coda" | "lustre"
            | "gfs2" | "ocfs2" | "gpfs" | "orangefs" | "pvfs2" | "ncpfs" | "beegfs" | "glusterfs"
            | "davfs" | "vboxsf" | "vmhgfs" | "prl_fs" | "hostfs" => Self::Network,
            "zfs" => Self::Zfs,
            "autofs" => Self::Autofs,
            "proc" | "sysfs" | "tracefs" | "debugfs" | "cgroup" | "cgroup2" | "devpts" | "devtmpfs"
            | "securityfs" | "selinuxfs" | "smackfs" | "configfs" | "bpf" | "mqueue" | "pstore"
            | "efivarfs" | "binfmt_misc" | "fusectl" | "nsfs" | "rpc_pipefs" | "nfsd" | "resctrl"
            | "binder" | "functionfs" | "pidfs" | "sockfs" | "pipefs" | "anon_inodefs" | "usbfs"
            | "xenfs" | "dax" => Self::Virtual,
            "tmpfs" | "ramfs" | "rootfs" | "hugetlbfs" | "secretmem" => Self::Memory,
            "overlay" => Self::Overlay,
            // Known to be on drives of this machine even where their superblock has no single device.
            "btrfs" | "bcachefs" | "ubifs" | "jffs2" => Self::Drive,
            // The superblock of every file system on one block device carries that device's number.
            _ if device.major != 0 => Self::Drive,
            _ => Self::Unknown,
        }
    }

    /// Whether files of it may be opened and read ahead.
    #[must_use]
    pub fn is_readable(self) -> bool {
        matches!(self, Self::Drive | Self::Overlay)
    }
}

impl fmt::Display for Kind {
    /// Fits after "is on".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Drive => "a drive",
            Self::Overlay => "an overlay",
            Self::Network => "a network file system",
            Self::Fuse => "a file system served by a program (FUSE)",
            Self::Zfs => "ZFS, which has a cache of its own",
            Self::Autofs => "an automount point",
            Self::Virtual => "a kernel interface",
            Self::Memory => "a file system in memory",
            Self::Unknown => "a file system of an unknown type",
        })
    }
}
