//! The layers of an overlay, from its options (`Documentation/filesystems/overlayfs.rst`).
//!
//! The paths in the options are those that whoever mounted it gave: they mean something in that process's namespace
//! and at that time. They are candidates to be checked, not facts.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::{Mount, below, join};

/// The directories that an overlay is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layers {
    /// Where changes go, if it is writable.
    pub upper: Option<PathBuf>,
    /// The layers below, the topmost first; data-only layers last.
    pub lower: Vec<PathBuf>,
}

impl Layers {
    /// All of them, in the order in which the overlay looks for a file.
    pub fn all(&self) -> impl Iterator<Item = &Path> {
        self.upper.iter().chain(&self.lower).map(PathBuf::as_path)
    }
}

impl Mount {
    /// The layers of an overlay; none if this is not one.
    #[must_use]
    pub fn overlay_layers(&self) -> Layers {
        if self.fs_type != "overlay" {
            return Layers::default();
        }
        let upper = self.super_option("upperdir").next().map(PathBuf::from);
        let joined = self.super_option("lowerdir").flat_map(|value| split_layers(&value));
        // Since Linux 6.8 each layer may be an option of its own.
        let single = self.super_option("lowerdir+").map(PathBuf::from);
        let data = self.super_option("datadir+").map(PathBuf::from);
        Layers { upper, lower: joined.chain(single).chain(data).collect() }
    }

    /// Where the file `path`, as seen under this overlay's mount point, may really be: the first of these that exists
    /// and is not a whiteout, unless a directory above was renamed within the overlay.
    #[must_use]
    pub fn overlay_candidates(&self, path: &Path) -> Vec<PathBuf> {
        let Some(inside) = self.inside(path) else { return Vec::new() };
        let Some(rest) = below(Path::new("/"), &inside) else { return Vec::new() };
        self.overlay_layers().all().map(|layer| join(layer, rest)).collect()
    }
}

/// Layers are separated by colons (data-only ones by two); a colon or backslash within a name has a backslash before it.
fn split_layers(value: &OsStr) -> Vec<PathBuf> {
    let mut layers = vec![Vec::new()];
    let mut bytes = value.as_bytes().iter();
    while let Some(&byte) = bytes.next() {
        match (byte, layers.last_mut()) {
            (b':', _) => layers.push(Vec::new()),
            (b'\\', Some(layer)) => layer.extend(bytes.next()),
            (_, Some(layer)) => layer.push(byte),
            (_, None) => {}
        }
    }
    layers
        .into_iter()
        .filter(|layer| !layer.is_empty())
        .map(|layer| OsString::from_vec(layer).into())
        .collect()
}
