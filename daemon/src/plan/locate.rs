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

#[cfg(test)]
mod tests {
    use std::fs::File;

    use headstart_shared::units::Nanos;

    use super::*;
    use crate::opening::identity_of;
    use crate::plan::{Need, WantedDevice, WantedFile};
    use crate::recording::PageRange;
    use crate::sys::loop_images::{LoopImage, own_mounts};

    fn wanted(path: PathBuf) -> WantedFile {
        let identity = identity_of(File::open(&path).unwrap()).unwrap();
        let ranges = vec![Need { pages: PageRange { start: 0, end: 2 }, at: Nanos(0) }];
        WantedFile { path, identity, ranges, first_need: Nanos(0), extents: Vec::new() }
    }

    #[test]
    fn places_are_counted_from_the_beginning_of_the_drive() {
        let Some(image) = LoopImage::new("ext4", 32) else { return };
        let mounts = own_mounts();
        let device = mounts.at(&image.path()).unwrap().device;
        let file = wanted(image.file("file", 8192));
        let changed = wanted(image.file("changed", 8192));
        std::fs::write(&changed.path, "another content").unwrap();
        let devices = vec![WantedDevice { device, filesystem: 0, base: 0, ranges: Vec::new() }];
        let mut whole = Wanted { files: vec![file, changed.clone()], devices };
        let mut partition = whole.clone();
        let refused = [(changed.path, Refusal::Changed)];
        assert_eq!(locate(&mut whole, &Roots::default(), &mounts), refused);

        // The same file system, were it on a partition that begins at sector 2048.
        let sys = tempfile::tempdir().unwrap();
        let folder = sys.path().join("dev/block").join(device.to_string());
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("start"), "2048\n").unwrap();
        let roots = Roots { sys: sys.path().into(), ..Roots::default() };
        assert_eq!(locate(&mut partition, &roots, &mounts), refused);

        let place = |wanted: &Wanted| wanted.files[0].extents[0].physical.unwrap();
        assert_eq!(place(&partition), place(&whole) + (1 << 20));
        assert_eq!((whole.devices[0].base, partition.devices[0].base), (0, 1 << 20));
        assert_eq!(whole.files[1].extents, []);
    }
}
