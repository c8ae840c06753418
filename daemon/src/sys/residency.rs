//! Which pages of a file are in the page cache: `cachestat(2)` (Linux 6.5) and `mincore(2)`.
//!
//! `cachestat` counts, cheaply and without touching the file; it also tells what was evicted. `mincore` tells which
//! pages, but needs a mapping. Since Linux 5.2 (134fca9063ad) `mincore` answers "all resident" about files that the
//! caller neither owns nor may write, so both are for root or the file's owner.
//!
//! On overlayfs `cachestat` finds nothing, because it looks at the overlay's own inode while the pages belong to that of
//! the layer below; `mincore` sees through, its mapping being of the real file. [`cached_pages`] knows.
//!
//! On a block device `mincore` misses most of a file system's structures: what ext4 reads through buffer heads never
//! marks its page as complete, which is what `mincore` looks at. [`cached_ranges`] counts it.
//!
//! Never use either on ZFS: its files are not cached in the page cache, and `mincore` there has corrupted reads.
//! [`crate::mounts::Kind::is_readable`] is the check to make before.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::recording::PageRange;

/// Pages of a range of a file, by their state in the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCount {
    /// In memory.
    pub cached: u64,
    /// In memory and changed since they were read or written; a large folio counts whole. 0 where only `mincore` is to be had.
    pub dirty: u64,
    /// Being written at this moment. 0 where only `mincore` is to be had.
    pub writeback: u64,
    /// Were in memory and were evicted by memory pressure. 0 where only `mincore` is to be had.
    pub evicted: u64,
    /// Of the evicted, those whose return would be a sign of memory pressure. 0 where only `mincore` is to be had.
    pub recently_evicted: u64,
}

/// System calls since Linux 5.1 have the same distance from each other on every architecture.
const SYS_CACHESTAT: libc::c_long = libc::SYS_openat2 + (451 - 437);

/// `struct cachestat_range`.
#[repr(C)]
struct RawRange {
    off: u64,
    len: u64,
}

/// `struct cachestat`.
#[repr(C)]
#[derive(Default)]
struct RawCount {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// How many of the pages `range` of a file are cached, without reading or mapping them where the kernel can do that.
///
/// # Errors
/// What the kernel says: `EBADF`, `EOPNOTSUPP` on hugetlbfs, `EPERM` for a file that is another's (`mincore` is then
/// not tried, since it would not refuse but lie), and from the fallback what `mmap(2)` says.
pub fn cached_pages(fd: impl AsFd, range: PageRange) -> io::Result<CacheCount> {
    static MISSING: AtomicBool = AtomicBool::new(false);
    if range.is_empty() {
        return Ok(CacheCount::default());
    }
    if !MISSING.load(Ordering::Relaxed) {
        match cachestat(fd.as_fd(), range) {
            Err(e) if e.raw_os_error() == Some(libc::ENOSYS) => MISSING.store(true, Ordering::Relaxed),
            // Nothing found is the only answer that an overlay gives, and seldom worth a second look elsewhere.
            Ok(count) if count == CacheCount::default() && is_overlay(&fd) => {}
            result => return result,
        }
    }
    counted_by_mincore(fd.as_fd(), range)
}

fn is_overlay(fd: impl AsFd) -> bool {
    /// `linux/magic.h`.
    const OVERLAYFS_SUPER_MAGIC: rustix::fs::FsWord = 0x794c_7630;
    rustix::fs::fstatfs(fd).is_ok_and(|stat| stat.f_type == OVERLAYFS_SUPER_MAGIC)
}

fn cachestat(fd: BorrowedFd<'_>, range: PageRange) -> io::Result<CacheCount> {
    let page = page_size();
    let raw = RawRange { off: range.start.saturating_mul(page), len: range.len().saturating_mul(page) };
    let mut count = RawCount::default();
    // SAFETY: `raw` and `count` have the layouts of `struct cachestat_range` and `struct cachestat` and outlive the
    // call, which reads the one and writes the other and keeps neither.
    let result = unsafe {
        libc::syscall(SYS_CACHESTAT, fd.as_raw_fd(), &raw const raw, &raw mut count, 0 as libc::c_uint)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let RawCount { cached, dirty, writeback, evicted, recently_evicted } = count;
    Ok(CacheCount { cached, dirty, writeback, evicted, recently_evicted })
}

fn counted_by_mincore(fd: BorrowedFd<'_>, range: PageRange) -> io::Result<CacheCount> {
    let mut cached = 0;
    each_window(range, |window| {
        mincore_window(fd, window, |resident| {
            cached += resident.iter().map(|byte| u64::from(byte & 1)).sum::<u64>();
        })
    })?;
    Ok(CacheCount { cached, ..CacheCount::default() })
}

/// The pages of a file of `size` bytes that are cached: sorted, disjoint, as long as they can be.
///
/// The file is mapped one window at a time, so a huge file costs no more than a window of address space.
///
/// # Errors
/// What `mmap(2)` and `mincore(2)` say, among them `ENODEV` for a file that cannot be mapped.
pub fn resident_ranges(fd: impl AsFd, size: u64, page_size: u64) -> io::Result<Vec<PageRange>> {
    if page_size != self::page_size() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not the page size of this kernel"));
    }
    let mut ranges: Vec<PageRange> = Vec::new();
    each_window(PageRange { start: 0, end: size.div_ceil(page_size) }, |window| {
        mincore_window(fd.as_fd(), window, |resident| {
            for (page, _) in (window.start..).zip(resident).filter(|(_, byte)| *byte & 1 == 1) {
                match ranges.last_mut() {
                    Some(last) if last.end == page => last.end += 1,
                    _ => ranges.push(PageRange { start: page, end: page + 1 }),
                }
            }
        })
    })?;
    Ok(ranges)
}

/// The pages of `range` that `cachestat` counts as cached: sorted, disjoint, as long as they can be. Halves the range
/// until each part is all or nothing, which suits a large device with few pages cached.
///
/// # Errors
/// As [`cached_pages`].
pub fn cached_ranges(fd: impl AsFd, range: PageRange) -> io::Result<Vec<PageRange>> {
    let mut found: Vec<PageRange> = Vec::new();
    let mut parts = vec![range];
    while let Some(part) = parts.pop() {
        let cached = cached_pages(&fd, part)?.cached;
        if cached == 0 {
            continue;
        }
        // A single page is never split, whatever a large folio counts as.
        if cached < part.len() && part.len() > 1 {
            let middle = part.start + part.len() / 2;
            parts.push(PageRange { start: middle, end: part.end });
            parts.push(PageRange { start: part.start, end: middle });
            continue;
        }
        match found.last_mut() {
            Some(last) if last.end == part.start => last.end = part.end,
            _ => found.push(part),
        }
    }
    Ok(found)
}

/// [`resident_ranges`] of an open regular file of whatever size it has now.
///
/// # Errors
/// As [`resident_ranges`], and what `fstat(2)` says.
pub fn resident_in(file: &File) -> io::Result<Vec<PageRange>> {
    resident_ranges(file, file.metadata()?.len(), page_size())
}

/// Bytes in a page of this kernel.
#[must_use]
pub fn page_size() -> u64 {
    rustix::param::page_size() as u64
}

/// Pages mapped at a time: 256 MiB with pages of 4 KiB, whose answer fills 64 KiB.
const WINDOW: u64 = 1 << 16;

fn each_window(range: PageRange, mut visit: impl FnMut(PageRange) -> io::Result<()>) -> io::Result<()> {
    let mut start = range.start;
    while start < range.end {
        let end = range.end.min(start + WINDOW);
        visit(PageRange { start, end })?;
        start = end;
    }
    Ok(())
}

/// A mapping that nobody reads through: it exists only for `mincore` to look at, and goes with the value.
struct Mapping {
    address: *mut libc::c_void,
    length: usize,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `mincore_window` with this address and length, and nothing points into it.
        unsafe { libc::munmap(self.address, self.length) };
    }
}

fn mincore_window(fd: BorrowedFd<'_>, window: PageRange, visit: impl FnOnce(&[u8])) -> io::Result<()> {
    let too_large = |_| io::Error::from(io::ErrorKind::FileTooLarge);
    let length = usize::try_from(window.len() * page_size()).map_err(too_large)?;
    let offset = i64::try_from(window.start.saturating_mul(page_size())).map_err(too_large)?;
    // SAFETY: a new private read-only mapping at an address the kernel chooses; no memory of ours is replaced. It is
    // never read through, so a file that shrinks meanwhile cannot raise SIGBUS.
    let address = unsafe {
        libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, libc::MAP_PRIVATE, fd.as_raw_fd(), offset)
    };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let mapping = Mapping { address, length };
    let pages = usize::try_from(window.len()).map_err(too_large)?;
    let mut resident = vec![0_u8; pages];
    // SAFETY: the mapping covers `length` bytes, for which `mincore` writes `pages` bytes, the length of the vector.
    let result = unsafe { libc::mincore(mapping.address, mapping.length, resident.as_mut_ptr()) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    visit(&resident);
    Ok(())
}

#[cfg(test)]
mod tests;
