//! What is mounted where, from `/proc/PID/mountinfo` (`proc(5)`, `Documentation/filesystems/proc.rst` 3.5).
//!
//! Everything here is decided from the text of that file. No path is looked up, opened or statted, because on a
//! mount whose server has gone away any of these hangs, and on an autofs mount it starts one.
//!
//! Three facts shape the interface:
//!
//! * The device of a mount is its superblock's (`s_dev`), the number that tracepoints and fanotify's `fdinfo` mean.
//!   On btrfs `stat(2)` gives another number for each subvolume, so the mount of a file is found by its path
//!   ([`Mounts::at`]) or its mount ID ([`Mounts::by_id`], from `statx(2)` or `fdinfo`), never by `st_dev`.
//! * A path only means something within one mount namespace. Between two, (device, path inside the file system) is
//!   what stays the same ([`Mounts::host_path`]).
//! * Mounts hide each other. [`Mounts::at`] walks the tree of mounts as the kernel's path walk does, so the answer is
//!   the mount that an `open(2)` would meet.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::recording::DeviceNumber;
use crate::roots::Roots;

mod kind;
mod overlay;

pub use kind::Kind;
pub use overlay::Layers;

/// Why the mounts are not known.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MountsError {
    /// The file cannot be read: the process is gone, or procfs is not mounted.
    #[error("cannot read the table of mounts {}: {source}; is the process still running and /proc mounted?", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// A line is not as documented.
    #[error("line {line} of the table of mounts is not in the kernel's format: {text}")]
    Format {
        /// The line, from 1.
        line: usize,
        /// What stands there.
        text: String,
    },
}

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The mount ID, as in `fdinfo` (`mnt_id`) and `statx(2)` (`STATX_MNT_ID`). Reused after an unmount.
    pub id: u64,
    /// The mount it is mounted on; one that is not in the table is outside the process's root.
    pub parent: u64,
    /// The superblock's device: major 0 where no single block device is behind it (btrfs, overlay, NFS).
    pub device: DeviceNumber,
    /// The directory of the file system that is seen at the mount point: `/` unless bound or a subvolume.
    pub root: PathBuf,
    /// Where it is seen, relative to the root of the process whose table this is.
    pub mount_point: PathBuf,
    /// `ext4`, `fuse.sshfs`.
    pub fs_type: OsString,
    /// What was mounted: a device node, `server:/export`, or any word.
    pub source: OsString,
    /// Options of this mount (`ro,noatime`).
    pub options: OsString,
    /// Options of the file system, as the kernel escaped them; [`Mount::super_option`] takes them apart.
    pub super_options: OsString,
}

impl Mount {
    /// Where `path`, as seen under this mount's mount point, is inside the file system: what stays the same in every
    /// mount namespace. `None` if the path is not under the mount point.
    #[must_use]
    pub fn inside(&self, path: &Path) -> Option<PathBuf> {
        let rest = below(&self.mount_point, path)?;
        Some(join(&self.root, rest))
    }

    /// Where `inside`, a path inside the file system, is seen through this mount; `None` if it is outside the part
    /// that is mounted here.
    #[must_use]
    pub fn outside(&self, inside: &Path) -> Option<PathBuf> {
        let rest = below(&self.root, inside)?;
        Some(join(&self.mount_point, rest))
    }

    /// The values of the file system's option `name`, in order, unescaped. An option without a value gives `""`.
    pub fn super_option<'a>(&'a self, name: &'a str) -> impl Iterator<Item = OsString> + 'a {
        self.super_options.as_bytes().split(|&b| b == b',').filter_map(move |option| {
            let rest = option.strip_prefix(name.as_bytes())?;
            match rest {
                [] => Some(OsString::new()),
                [b'=', value @ ..] => Some(unescape(value)),
                _ => None,
            }
        })
    }

    /// What kind of file system this is, and with it whether it may be touched.
    #[must_use]
    pub fn kind(&self) -> Kind {
        Kind::of(&self.fs_type, self.device)
    }
}

/// The mounts of one mount namespace, as one process sees them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mounts {
    list: Vec<Mount>,
}

impl Mounts {
    /// The mounts that process `pid` sees, or the calling thread with `None`.
    ///
    /// # Errors
    /// When the table cannot be read or is not in the kernel's format.
    pub fn of(roots: &Roots, pid: Option<u32>) -> Result<Self, MountsError> {
        // A thread may have a mount namespace of its own; `/proc/self` would speak of the process's first thread.
        let thread = || {
            let here = ["thread-self", "self"].into_iter().find(|name| roots.proc.join(name).exists());
            here.unwrap_or("self").to_owned()
        };
        let path = roots.proc.join(pid.map_or_else(thread, |pid| pid.to_string())).join("mountinfo");
        match std::fs::read(&path) {
            Ok(text) => Self::parse(&text),
            Err(source) => Err(MountsError::Read { path, source }),
        }
    }

    /// Reads the text of a `mountinfo` file.
    ///
    /// # Errors
    /// When a line is not in the kernel's format.
    pub fn parse(text: &[u8]) -> Result<Self, MountsError> {
        let lines = text.split(|&b| b == b'\n').enumerate().filter(|(_, line)| !line.is_empty());
        let list = lines
            .map(|(n, line)| {
                parse_line(line).ok_or_else(|| MountsError::Format {
                    line: n + 1,
                    text: String::from_utf8_lossy(line).into_owned(),
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { list })
    }

    /// All mounts, in the kernel's order.
    pub fn iter(&self) -> std::slice::Iter<'_, Mount> {
        self.list.iter()
    }

    /// The mount with this ID.
    #[must_use]
    pub fn by_id(&self, id: u64) -> Option<&Mount> {
        self.list.iter().find(|m| m.id == id)
    }

    /// The mounts of the file system with this superblock device.
    pub fn by_device(&self, device: DeviceNumber) -> impl Iterator<Item = &Mount> {
        self.list.iter().filter(move |m| m.device == device)
    }

    /// The mount that `path` is on: the one that opening it would meet. The path is taken literally, so it must be
    /// absolute and hold no links and no `..`.
    #[must_use]
    pub fn at(&self, path: &Path) -> Option<&Mount> {
        let mut current: Option<&Mount> = None;
        // Each step goes from a mount to one mounted on it; a damaged table must not make that endless.
        for _ in 0..self.list.len() {
            let children = self.list.iter().filter(|m| match current {
                Some(parent) => m.parent == parent.id && m.id != parent.id,
                None => self.is_top(m),
            });
            // Walking down the path, the first mount point met is the one nearest to the root. Of two mounts on the
            // same directory of the same mount, which only a damaged table has, the later one counts.
            let next = children
                .filter(|m| below(&m.mount_point, path).is_some())
                .min_by_key(|m| (m.mount_point.as_os_str().len(), std::cmp::Reverse(m.id)));
            match next {
                Some(_) => current = next,
                None => break,
            }
        }
        current
    }

    /// Where a file of the file system with superblock device `device` is seen in this namespace, given its path
    /// inside the file system. `None` if no mount here shows it, or all that would are hidden by other mounts.
    ///
    /// Of several, the mount of the smallest part of the file system is preferred: it was made for that part.
    #[must_use]
    pub fn find(&self, device: DeviceNumber, inside: &Path) -> Option<PathBuf> {
        let mut candidates: Vec<_> =
            self.by_device(device).filter_map(|m| Some((m, m.outside(inside)?))).collect();
        candidates.sort_by_key(|(m, _)| std::cmp::Reverse(m.root.as_os_str().len()));
        candidates
            .into_iter()
            .find(|(m, path)| self.at(path).is_some_and(|at| at.id == m.id))
            .map(|(_, path)| path)
    }

    /// Where `path`, as seen under the mount `theirs` of another namespace or below another root, is in this one.
    #[must_use]
    pub fn host_path(&self, theirs: &Mount, path: &Path) -> Option<PathBuf> {
        self.find(theirs.device, &theirs.inside(path)?)
    }

    /// Why files at `path` must not be touched, if they must not. Decided without touching them.
    ///
    /// A file of an overlay is really a file of one of its layers: the overlay is as untouchable as the worst of
    /// those that this namespace sees, memory aside (a layer of memory is never waited for).
    #[must_use]
    pub fn untouchable(&self, path: &Path) -> Option<Kind> {
        self.untouchable_within(path, 4)
    }

    fn untouchable_within(&self, path: &Path, depth: u8) -> Option<Kind> {
        let Some(mount) = self.at(path) else { return Some(Kind::Unknown) };
        let kind = mount.kind();
        if kind != Kind::Overlay {
            return (!kind.is_readable()).then_some(kind);
        }
        // The kernel allows two levels of overlays; a table that claims more is not believed.
        let Some(depth) = depth.checked_sub(1) else { return Some(Kind::Unknown) };
        let layers = mount.overlay_layers();
        layers
            .all()
            .filter_map(|layer| self.untouchable_within(layer, depth))
            .find(|kind| *kind != Kind::Memory)
    }

    fn is_top(&self, mount: &Mount) -> bool {
        mount.parent == mount.id || self.by_id(mount.parent).is_none()
    }
}

impl<'a> IntoIterator for &'a Mounts {
    type Item = &'a Mount;
    type IntoIter = std::slice::Iter<'a, Mount>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// What of `path` is below `base`, without a leading slash; `None` if it is not under it. Compares bytes, because the
/// kernel's paths are normal already and `Path`'s comparison by component is slower by an order of magnitude.
fn below<'a>(base: &Path, path: &'a Path) -> Option<&'a [u8]> {
    let rest = path.as_os_str().as_bytes().strip_prefix(base.as_os_str().as_bytes())?;
    match rest {
        [] => Some(rest),
        [b'/', rest @ ..] => Some(rest),
        _ if base == Path::new("/") => Some(rest),
        _ => None,
    }
}

fn join(base: &Path, rest: &[u8]) -> PathBuf {
    if rest.is_empty() { base.to_owned() } else { base.join(OsStr::from_bytes(rest)) }
}

/// `ID PARENT MAJOR:MINOR ROOT MOUNT_POINT OPTIONS [OPTIONAL…] - TYPE SOURCE SUPER_OPTIONS`. The optional fields
/// (`shared:1`, `master:2`) vary in number and end at the lone hyphen.
fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|&b| b == b' ');
    let id = number(fields.next()?)?;
    let parent = number(fields.next()?)?;
    let device = device(fields.next()?)?;
    let root = unescape(fields.next()?).into();
    let mount_point = unescape(fields.next()?).into();
    let options = OsString::from_vec(fields.next()?.to_vec());
    fields.by_ref().find(|field| *field == b"-")?;
    let fs_type = unescape(fields.next()?);
    let source = unescape(fields.next()?);
    // Nothing follows the source of a file system without options on some kernels.
    let super_options = OsString::from_vec(fields.next().unwrap_or_default().to_vec());
    Some(Mount { id, parent, device, root, mount_point, fs_type, source, options, super_options })
}

fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn device(text: &[u8]) -> Option<DeviceNumber> {
    let colon = text.iter().position(|&b| b == b':')?;
    Some(DeviceNumber { major: number(&text[..colon])?, minor: number(&text[colon + 1..])? })
}

/// Undoes the kernel's `mangle_path`: space, tab, newline, hash and backslash are written as three octal digits.
fn unescape(text: &[u8]) -> OsString {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        rest = tail;
        match (first, tail) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = after;
            }
            _ => out.push(*first),
        }
    }
    OsString::from_vec(out)
}

#[cfg(test)]
mod tests;
