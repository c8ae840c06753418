//! `FS_IOC_FIEMAP`: where on its device a file's content is (`Documentation/filesystems/fiemap.rst`).
//!
//! Addresses are those of the file system's device: on btrfs of its logical address space, below LVM or md of the
//! mapped device. As an order to read in they are right as long as the layers in between keep order, which linear
//! mappings do.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// A piece of a file that is in one piece on the device. Everything in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Where it begins in the file.
    pub offset: u64,
    /// How long it is.
    pub length: u64,
    /// Where it begins on the device; `None` where it has no place of its own there: inline in the inode, packed with
    /// others, not written out yet, or of unknown place. A compressed extent has one, though its length there differs.
    pub physical: Option<u64>,
    /// Allocated but reads as zeros: nothing is read from the drive.
    pub unwritten: bool,
}

const LAST: u32 = 0x1;
const UNKNOWN: u32 = 0x2;
const DELALLOC: u32 = 0x4;
const NOT_ALIGNED: u32 = 0x100;
const DATA_INLINE: u32 = 0x200;
const DATA_TAIL: u32 = 0x400;
const UNWRITTEN: u32 = 0x800;
const WITHOUT_PLACE: u32 = UNKNOWN | DELALLOC | NOT_ALIGNED | DATA_INLINE | DATA_TAIL;

/// `struct fiemap_extent`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// How many extents are asked for at a time.
const BATCH: usize = 128;

/// `struct fiemap` with room for [`BATCH`] extents behind it.
#[repr(C)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [RawExtent; BATCH],
}

/// `_IOWR('f', 11, struct fiemap)`, where the structure's size is that of the header alone.
const FS_IOC_FIEMAP: libc::Ioctl = libc::_IOWR::<[u64; 4]>(b'f' as u32, 11);

/// The extents of a file that hold bytes of `start..end`, in order. Holes are left out.
///
/// # Errors
/// What the kernel says: `EOPNOTSUPP` where the file system has no such addresses (overlayfs before 5.16, FUSE, tmpfs).
pub fn extents(fd: impl AsFd, start: u64, end: u64) -> io::Result<Vec<Extent>> {
    let mut found = Vec::new();
    let mut from = start;
    while from < end {
        let batch = query(&fd, from, end - from)?;
        let Some(last) = batch.last() else { break };
        let next = last.logical.saturating_add(last.length);
        let done = last.flags & LAST != 0;
        found.extend(batch.iter().filter(|raw| raw.logical < end).map(|raw| Extent {
            offset: raw.logical,
            length: raw.length,
            physical: (raw.flags & WITHOUT_PLACE == 0).then_some(raw.physical),
            unwritten: raw.flags & UNWRITTEN != 0,
        }));
        // An answer that leads nowhere must not be asked for again for ever.
        if done || next <= from {
            break;
        }
        from = next;
    }
    Ok(found)
}

fn query(fd: &impl AsFd, start: u64, length: u64) -> io::Result<Vec<RawExtent>> {
    let mut request = Request {
        start,
        length,
        flags: 0,
        mapped_extents: 0,
        extent_count: u32::try_from(BATCH).unwrap_or(1),
        reserved: 0,
        extents: [RawExtent::default(); BATCH],
    };
    // SAFETY: `request` has the layout of `struct fiemap` followed by `extent_count` extents, which is all that the
    // kernel writes to, and it outlives the call.
    let result = unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), FS_IOC_FIEMAP, &raw mut request) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let mapped = usize::try_from(request.mapped_extents).unwrap_or(0).min(BATCH);
    Ok(request.extents[..mapped].to_vec())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::sys::loop_images::LoopImage;

    #[test]
    fn a_file_with_more_extents_than_a_batch_is_known_whole() {
        for fs_type in ["ext4", "xfs", "btrfs"] {
            let Some(image) = LoopImage::new(fs_type, 320) else { return };
            let file = File::create_new(image.join("sparse")).unwrap();
            let pieces = 3 * BATCH as u64 + 7;
            for piece in 0..pieces {
                file.write_all_at(&[7; 4096], piece * 65536).unwrap();
            }
            file.sync_all().unwrap();
            // XFS reserves more behind what is written.
            let written = |start, end| {
                let found = extents(&file, start, end).unwrap();
                found.into_iter().filter(|e| !e.unwritten).collect::<Vec<_>>()
            };
            let all = written(0, u64::MAX);
            assert_eq!(all.len() as u64, pieces, "{fs_type}");
            for (piece, extent) in (0..).zip(&all) {
                assert_eq!((extent.offset, extent.length), (piece * 65536, 4096), "{fs_type}");
                assert!(extent.physical.is_some(), "{fs_type} {extent:?}");
            }
            assert_eq!(written(2 * 65536, 4 * 65536), all[2..4], "{fs_type}");
        }
    }

    #[test]
    fn the_place_is_where_the_content_is() {
        let Some(image) = LoopImage::new("ext4", 32) else { return };
        let path = image.file("file", 3 * 4096);
        let extent = extents(File::open(&path).unwrap(), 0, 4096).unwrap()[0];
        let mut there = [0; 4096];
        let disk = File::open(image.path().with_file_name("image")).unwrap();
        disk.read_exact_at(&mut there, extent.physical.unwrap()).unwrap();
        assert_eq!(there[..], std::fs::read(path).unwrap()[..4096]);
    }

    #[test]
    fn what_has_no_place_says_so() {
        let Some(image) = LoopImage::new("btrfs", 320) else { return };
        let small = File::open(image.file("small", 100)).unwrap();
        let inline = extents(&small, 0, u64::MAX).unwrap();
        assert_eq!(inline.iter().map(|e| e.physical).collect::<Vec<_>>(), [None]);

        let reserved = File::create_new(image.join("reserved")).unwrap();
        rustix::fs::fallocate(&reserved, rustix::fs::FallocateFlags::empty(), 0, 1 << 20).unwrap();
        assert!(extents(&reserved, 0, u64::MAX).unwrap().iter().all(|e| e.unwritten));
        assert_eq!(extents(File::create_new(image.join("empty")).unwrap(), 0, u64::MAX).unwrap(), []);
    }
}
