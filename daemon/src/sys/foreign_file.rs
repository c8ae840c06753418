//! Reading a small file whose name a person controls, as root.
//!
//! What has that name may be a pipe that nobody writes to, a device that does something when it is opened, or without
//! end. So it is looked at before it is opened, through a handle that stays on the same file, and read up to a limit.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, fstat, open};

/// The contents of a regular file of at most `limit` bytes. Links are followed.
pub(crate) fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let handle = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    if FileType::from_raw_mode(fstat(&handle)?.st_mode) != FileType::RegularFile {
        return Err(io::Error::other("it is not a regular file"));
    }
    let file = File::open(format!("/proc/self/fd/{}", handle.as_raw_fd()))?;
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::other(format!("it is longer than {limit} bytes")));
    }
    Ok(bytes)
}
