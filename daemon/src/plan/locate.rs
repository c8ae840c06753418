//! Asking the file system where wanted files are on their drive, for drives on which that matters.
//!
//! This opens the files and reads their extent trees, so it is for the time when a plan is made, never for when it is
//! carried out.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::Wanted;
use crate::mounts::Mounts;
use crate::opening::{Opener, Refusal};
use crate::recording::DeviceNumber;
use crate::roots::Roots;
use crate::sys::fiemap;

/// Fills in [`super::WantedFile::extents`] and [`super::WantedDevice::base`], places being counted from the beginning of
/// the drive where the file system is on a partition of it, and from that of the mapped device otherwise. Files that are not what they were, or on a file system that must not be
/// touched or has no addresses, stay without; which and why is the answer, for those that a replay would refuse too.
pub fn locate(wanted: &mut Wanted, roots: &Roots, mounts: &Mounts) -> Vec<(PathBuf, Refusal)> {
    for device in &mut wanted.devices {
        device.base = partition_start(roots, device.device);
    }
    let mut files = Opener::new(&roots.proc);
    let mut refused = Vec::new();
    for file in &mut wanted.files {
        let Some(end) = file.ranges.last().map(|need| need.pages.end) else { continue };
        let base = mounts.at(&file.path).map_or(0, |mount| partition_start(roots, mount.device));
        let answer = if mounts.untouchable(&file.path).is_some() {
            Err(Refusal::FileSystem)
        } else {
            CString::new(file.path.as_os_str().as_bytes())
                .map_err(|_| Refusal::Missing)
                .and_then(|path| files.open(&path, &file.identity))
        };
        match answer {
            Ok(open) => {
                let end = end.saturating_mul(rustix::param::page_size() as u64);
                file.extents = fiemap::extents(&open, 0, end).unwrap_or_default();
                for place in file.extents.iter_mut().filter_map(|extent| extent.physical.as_mut()) {
                    *place = place.saturating_add(base);
                }
            }
            Err(refusal) => refused.push((file.path.clone(), refusal)),
        }
    }
    refused
}

/// Where a partition begins on its drive, in bytes; 0 for what is no partition.
fn partition_start(roots: &Roots, device: DeviceNumber) -> u64 {
    let start = roots.sys.join("dev/block").join(device.to_string()).join("start");
    let sectors = std::fs::read_to_string(start).ok().and_then(|text| text.trim().parse::<u64>().ok());
    sectors.unwrap_or(0).saturating_mul(512)
}
