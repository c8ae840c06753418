//! File handles (`name_to_handle_at(2)`, `open_by_handle_at(2)`): which file an open one is, in the file system's own
//! words. They speak of no mount, so the file can be opened again through any mount of the same file system, also after
//! the mount and the process that it was first opened by are gone.
//!
//! Needs `CAP_DAC_READ_SEARCH` to open, and a file system that can be exported; overlayfs is one only where it is
//! mounted with `nfs_export=on`.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// The most bytes that a file system's part of a handle has (`MAX_HANDLE_SZ` in `linux/exportfs.h`).
const MAX_BYTES: u32 = 128;

/// A file of a file system, whatever its name.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct FileHandle {
    bytes: u32,
    kind: i32,
    opaque: [u8; MAX_BYTES as usize],
}

impl std::fmt::Debug for FileHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let opaque = self.opaque.get(..self.bytes as usize).unwrap_or_default();
        f.debug_struct("FileHandle").field("kind", &self.kind).field("opaque", &opaque).finish()
    }
}

impl FileHandle {
    /// The handle of an open file; one opened with `O_PATH` will do.
    ///
    /// # Errors
    /// `EOPNOTSUPP` where the file system has no handles.
    pub fn of(file: impl AsFd) -> io::Result<Self> {
        let mut handle = Self { bytes: MAX_BYTES, kind: 0, opaque: [0; MAX_BYTES as usize] };
        let mut mount = MaybeUninit::<libc::c_int>::uninit();
        // SAFETY: the descriptor is open and the path a C string; `handle` is laid out as `struct file_handle` with room
        // for as many bytes as it says, and `mount` has room for the mount's number, which is not read.
        let result = unsafe {
            libc::name_to_handle_at(
                file.as_fd().as_raw_fd(),
                c"".as_ptr(),
                (&raw mut handle).cast(),
                mount.as_mut_ptr(),
                libc::AT_EMPTY_PATH,
            )
        };
        if result == 0 { Ok(handle) } else { Err(io::Error::last_os_error()) }
    }

    /// The file, as seen through the mount that `mount` is on (which must not be opened with `O_PATH`). To be looked at,
    /// not read (`O_PATH`).
    ///
    /// Where the mount shows only a part of the file system the file may be outside of it: then the name that
    /// `/proc/self/fd` gives leads nowhere, or elsewhere.
    ///
    /// # Errors
    /// `ESTALE` if there is no such file (any more), `EPERM` without `CAP_DAC_READ_SEARCH`.
    pub fn open(&self, mount: impl AsFd) -> io::Result<OwnedFd> {
        let mut handle = *self;
        let flags = libc::O_PATH | libc::O_CLOEXEC;
        // SAFETY: the descriptor is open, and `handle` is laid out as `struct file_handle` with as many bytes as it says.
        let fd =
            unsafe { libc::open_by_handle_at(mount.as_fd().as_raw_fd(), (&raw mut handle).cast(), flags) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just given us this descriptor, and nobody else knows of it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;
    use crate::sys::loop_images::LoopImage;

    fn link(fd: &OwnedFd) -> std::path::PathBuf {
        fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap()
    }

    fn a_file_is_found_again(fs_type: &str, mib: u64) {
        let Some(image) = LoopImage::new(fs_type, mib) else { return };
        let (path, other) = (image.file("file", 5000), image.file("other", 5000));
        let handle = FileHandle::of(File::open(&path).unwrap()).unwrap();
        let root = File::open(image.path()).unwrap();
        assert_eq!(link(&handle.open(&root).unwrap()), path, "{fs_type}");
        fs::rename(&path, image.join("renamed")).unwrap();
        assert_eq!(link(&handle.open(&root).unwrap()), image.join("renamed"), "a name at a time");
        // Another file in its place is another file.
        fs::rename(&other, &path).unwrap();
        assert_eq!(link(&handle.open(&root).unwrap()), image.join("renamed"));
        fs::remove_file(image.join("renamed")).unwrap();
        assert_eq!(handle.open(&root).unwrap_err().raw_os_error(), Some(libc::ESTALE));
    }

    #[test]
    fn a_file_is_found_again_on_ext4() {
        a_file_is_found_again("ext4", 16);
    }

    #[test]
    fn a_file_is_found_again_on_btrfs() {
        a_file_is_found_again("btrfs", 128);
    }

    #[test]
    fn a_file_is_found_again_on_xfs() {
        a_file_is_found_again("xfs", 320);
    }

    #[test]
    fn a_file_without_handle_is_an_error() {
        let file = File::open("/proc/self/stat").unwrap();
        assert!(FileHandle::of(&file).is_err_and(|error| error.raw_os_error() == Some(libc::EOPNOTSUPP)));
    }

    #[test]
    fn a_descriptor_opened_to_be_looked_at_has_a_handle_but_is_no_mount() {
        let Some(image) = LoopImage::new("ext4", 16) else { return };
        let path = image.file("file", 5000);
        let handle = FileHandle::of(File::open(&path).unwrap()).unwrap();
        let looked = handle.open(File::open(image.path()).unwrap()).unwrap();
        let again = FileHandle::of(&looked).unwrap();
        assert_eq!(format!("{again:?}"), format!("{handle:?}"));
    }
}
