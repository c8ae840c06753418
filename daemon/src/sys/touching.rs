//! For tests: touching pages of a file through a mapping, as a program does that runs from it.

use std::fs::File;
use std::os::fd::AsRawFd;

use super::residency::page_size;

/// A file mapped whole, for reading.
#[derive(Debug)]
pub(crate) struct Mapped {
    address: *mut libc::c_void,
    length: usize,
}

impl Mapped {
    /// Maps a file. If `alone`, the kernel is asked to bring in no page but those touched.
    pub(crate) fn new(file: &File, alone: bool) -> Self {
        let length = usize::try_from(file.metadata().unwrap().len()).unwrap();
        // SAFETY: a new private read-only mapping at an address the kernel chooses; no memory of ours is replaced.
        let address = unsafe {
            libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0)
        };
        assert_ne!(address, libc::MAP_FAILED);
        let mapped = Self { address, length };
        let advice = if alone { libc::MADV_RANDOM } else { libc::MADV_NORMAL };
        // SAFETY: the range is the mapping just made; neither advice changes what is in it.
        assert_eq!(unsafe { libc::madvise(mapped.address, mapped.length, advice) }, 0);
        mapped
    }

    /// Reads one byte of a page.
    pub(crate) fn touch(&self, page: u64) {
        let offset = usize::try_from(page * page_size()).unwrap();
        assert!(offset < self.length);
        // SAFETY: within the mapping, which lives as long as `self`. Tests do not cut the files short that they map.
        let _ = unsafe { self.address.cast::<u8>().add(offset).read_volatile() };
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this address and length, and nothing points into it.
        unsafe { libc::munmap(self.address, self.length) };
    }
}

#[test]
fn a_touched_page_becomes_resident_alone() {
    use super::readahead::evict;
    use super::residency::resident_in;
    use crate::recording::PageRange;

    let Some(image) = super::loop_images::LoopImage::new("ext4", 64) else { return };
    let page = usize::try_from(page_size()).unwrap();
    let file = File::open(image.file("file", 64 * page)).unwrap();
    evict(&file).unwrap();
    Mapped::new(&file, true).touch(9);
    assert_eq!(resident_in(&file).unwrap(), [PageRange { start: 9, end: 10 }]);
}
