//! `readahead(2)` and `posix_fadvise(2)`: asking the kernel to bring pages of a file into memory, or to let them go.
//!
//! `readahead` submits the reads and returns without waiting for them, except that
//!
//! * finding out where the pages are can itself need a read (the file's extent tree), which is waited for;
//! * a full request queue is waited for.
//!
//! One call brings in no more than the larger of the device's greatest request (`max_sectors_kb`) and its read-ahead
//! window (`read_ahead_kb`), and is silently cut to that (`mm/readahead.c`, `force_page_cache_ra`): callers ask in
//! chunks of [`MAX_CHUNK`] at most, or of what [`crate::drive::Drive::max_readahead`] says.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use rustix::fs::{Advice, fadvise};

/// What every kernel since 4.10 brings in at one call on every device with its settings untouched: 128 KiB.
pub const MAX_CHUNK: u64 = 128 << 10;

/// Starts bringing `len` bytes from `offset` into memory. What is there already is not read again; what is beyond the
/// end of the file is not read at all.
///
/// # Errors
/// What the kernel says: `EINVAL` if `fd` cannot be read ahead (a pipe, a directory), `EBADF` if it is not open for
/// reading. An error of the drive is not among them: it shows when the page is read.
pub fn readahead(fd: impl AsFd, offset: u64, len: u64) -> io::Result<()> {
    let offset = libc::off64_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
    let len = usize::try_from(len).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the call takes no pointer, and the descriptor is open while it is borrowed.
    let result = unsafe { libc::readahead(fd.as_fd().as_raw_fd(), offset, len) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Tells the kernel that reads through this descriptor come in no order, so that a `pread` of one byte brings in that
/// page and no others. [`readahead`] is not affected.
///
/// # Errors
/// What `posix_fadvise(2)` says.
pub fn expect_random(fd: impl AsFd) -> io::Result<()> {
    Ok(fadvise(fd, 0, None, Advice::Random)?)
}

/// Lets the pages of a file go, as far as they are clean, not mapped and not in use: the caller syncs before.
///
/// # Errors
/// What `posix_fadvise(2)` says.
pub fn evict(fd: impl AsFd) -> io::Result<()> {
    Ok(fadvise(fd, 0, None, Advice::DontNeed)?)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::recording::PageRange;
    use crate::sys::loop_images::LoopImage;
    use crate::sys::residency::{page_size, resident_in};

    #[test]
    fn exactly_what_was_asked_for_comes_in() {
        for fs_type in ["ext4", "xfs", "btrfs"] {
            let Some(image) = LoopImage::new(fs_type, 320) else { return };
            let page = page_size();
            let path = image.file("file", usize::try_from(100 * page + 1).unwrap());
            let file = File::open(path).unwrap();
            evict(&file).unwrap();
            readahead(&file, 10 * page, 3 * page).unwrap();
            readahead(&file, 50 * page, MAX_CHUNK).unwrap();
            readahead(&file, 99 * page, 100 * page).unwrap();
            let chunk = MAX_CHUNK / page;
            // Pages are resident once they have arrived, which is waited for.
            expect_random(&file).unwrap();
            for last in [12, 49 + chunk, 100] {
                rustix::io::pread(&file, &mut [0_u8; 1][..], last * page).unwrap();
            }
            let ranges = [(10, 13), (50, 50 + chunk), (99, 101)].map(|(start, end)| PageRange { start, end });
            assert_eq!(resident_in(&file).unwrap(), ranges, "{fs_type}");
            evict(&file).unwrap();
            assert_eq!(resident_in(&file).unwrap(), [], "{fs_type}");
        }
    }

    #[test]
    fn waiting_for_a_page_brings_in_no_other() {
        let Some(image) = LoopImage::new("ext4", 64) else { return };
        let page = page_size();
        let file = File::open(image.file("file", usize::try_from(64 * page).unwrap())).unwrap();
        evict(&file).unwrap();
        expect_random(&file).unwrap();
        rustix::io::pread(&file, &mut [0_u8; 1][..], 20 * page).unwrap();
        assert_eq!(resident_in(&file).unwrap(), [PageRange { start: 20, end: 21 }]);
    }

    #[test]
    fn a_folder_cannot_be_read_ahead() {
        assert_eq!(readahead(File::open("/").unwrap(), 0, 1).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }
}
