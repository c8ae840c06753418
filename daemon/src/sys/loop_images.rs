//! For tests: real file systems in image files, mounted in a mount namespace of the test's own.
//!
//! The namespace belongs to the test's thread (and the threads it starts), so however the test ends, the kernel takes
//! the mounts down with it, and the loop devices with the mounts.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::mounts::Mounts;
use crate::roots::Roots;

/// A mounted image.
#[derive(Debug)]
pub(crate) struct LoopImage {
    folder: TempDir,
}

/// Says on standard error that a test did not run, or fails if it had to.
pub(crate) fn skip(missing: &str) {
    assert!(
        std::env::var_os("HEADSTART_REQUIRE_ROOT_TESTS").is_none_or(|value| value != "1"),
        "required, but missing: {missing}"
    );
    eprintln!("SKIPPED: {missing}");
}

/// Gives the calling thread, and those it starts from now on, a mount namespace of its own. `false`, said on standard
/// error, where that is not allowed.
pub(crate) fn private_mounts() -> bool {
    // SAFETY: only this thread's view of the mounts and its working directory are separated from the process's.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        skip("root (unshare of the mount namespace)");
        return false;
    }
    run("mount", &["--make-rprivate", "/"])
}

/// The mounts that the calling thread sees. `/proc/self` would speak of the process's first thread.
pub(crate) fn own_mounts() -> Mounts {
    let thread = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
    Mounts::of(&Roots::default(), Some(thread)).unwrap()
}

/// Runs a command; `false`, said on standard error, if it is missing or fails.
pub(crate) fn run(program: &str, arguments: &[&str]) -> bool {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            skip(&format!("{program} {arguments:?} failed: {}", String::from_utf8_lossy(&output.stderr)));
            false
        }
        Err(error) => {
            skip(&format!("{program}: {error}"));
            false
        }
    }
}

impl LoopImage {
    /// Makes a file system of this type and size and mounts it, in a private mount namespace made for the thread.
    pub(crate) fn new(fs_type: &str, mib: u64) -> Option<Self> {
        private_mounts().then_some(())?;
        Self::in_this_namespace(fs_type, mib)
    }

    /// The same where the thread has a namespace of its own already.
    pub(crate) fn in_this_namespace(fs_type: &str, mib: u64) -> Option<Self> {
        // On a real file system: a loop device needs one below it that reads and writes like a drive's.
        let folder = tempfile::Builder::new().prefix("headstart-").tempdir_in("/var/tmp").unwrap();
        let image = Self { folder };
        std::fs::File::create(image.image()).unwrap().set_len(mib << 20).unwrap();
        std::fs::create_dir(image.path()).unwrap();
        let file = image.image().to_str().unwrap().to_owned();
        run(&format!("mkfs.{fs_type}"), &["-q", &file]).then_some(())?;
        run("mount", &["-o", "loop", &file, image.path().to_str().unwrap()]).then_some(())?;
        Some(image)
    }

    fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    /// The image's path, to mount it anew.
    pub(crate) fn folder_image(&self) -> String {
        self.image().to_str().unwrap_or_default().to_owned()
    }

    /// Where it is mounted.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("mnt")
    }

    /// A path on it.
    pub(crate) fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path().join(name)
    }

    /// A file on it with `size` bytes that do not compress away, written out to the image.
    pub(crate) fn file(&self, name: impl AsRef<Path>, size: usize) -> PathBuf {
        let path = self.join(name);
        let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ size as u64;
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[0]
        })
        .take(size)
        .collect();
        std::fs::write(&path, bytes).unwrap();
        std::fs::File::open(&path).unwrap().sync_all().unwrap();
        path
    }
}

impl Drop for LoopImage {
    fn drop(&mut self) {
        // Lazily, so that a file still open somewhere in the test does not keep the folder from being removed.
        let _ = Command::new("umount").arg("-l").arg(self.path()).stderr(Stdio::null()).status();
    }
}
