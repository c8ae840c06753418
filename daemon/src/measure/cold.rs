//! Making a start cold: `sync` first, since a page that is not written yet cannot be dropped, then emptying caches.
//!
//! * *evict* is kind to the rest of the system: only the files of the profile, and the blocks in which their folders and
//!   inodes lie, by `posix_fadvise(POSIX_FADV_DONTNEED)`. The kernel has no such call for names and inodes that it holds
//!   already, and keeps pages that another program has mapped.
//! * *drop* empties everything clean there is (`/proc/sys/vm/drop_caches`, Documentation/admin-guide/sysctl/vm.rst), again
//!   but for what is mapped.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use headstart_shared::run::ColdMethod;
use headstart_shared::units::{Bytes, Pages};

use crate::mounts::Mounts;
use crate::opening::Opener;
use crate::profile::Profile;
use crate::recording::PageRange;
use crate::roots::Roots;
use crate::sys::readahead::evict;
use crate::sys::residency::cached_pages;

/// What comes to rest after the caches were emptied, and before a start: other programs read back what they need.
const REST: Duration = Duration::from_millis(300);

/// How often emptying all caches is repeated.
const PASSES: u32 = 4;

/// Caches cannot be emptied.
#[derive(Debug, thiserror::Error)]
#[error("cannot empty the caches through {path}: {source}; run as root, or use --cold=evict", path = path.display())]
pub struct ColdError {
    path: PathBuf,
    source: io::Error,
}

/// Empties caches for the starts of one app.
#[derive(Debug)]
pub struct Cold<'a> {
    method: ColdMethod,
    roots: &'a Roots,
}

impl<'a> Cold<'a> {
    /// Empties by `method`. [`ColdMethod::Boot`] needs nothing emptied, and empties nothing.
    #[must_use]
    pub fn new(method: ColdMethod, roots: &'a Roots) -> Self {
        Self { method, roots }
    }

    /// Makes the next start of the app cold. Returns how much of its files stays in memory all the same, where looking at
    /// that does not bring their names and inodes back.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn make(&self, profile: &Profile, mounts: &Mounts) -> Result<Option<Bytes>, ColdError> {
        rustix::fs::sync();
        let left = match self.method {
            ColdMethod::Drop => self.drop_all().map(|()| None)?,
            ColdMethod::Evict => Some(self.evict(profile, mounts)),
            ColdMethod::Boot => None,
        };
        sleep(REST);
        Ok(left)
    }

    /// Names and inodes that were used lately are only marked by the first pass, and go in a later one; how much is gone
    /// cannot be told from outside.
    fn drop_all(&self) -> Result<(), ColdError> {
        let path = self.roots.proc.join("sys/vm/drop_caches");
        for _ in 0..PASSES {
            fs::write(&path, "3\n").map_err(|source| ColdError { path: path.clone(), source })?;
        }
        Ok(())
    }

    /// What cannot be evicted is seen by what is left.
    fn evict(&self, profile: &Profile, mounts: &Mounts) -> Bytes {
        let left = files(profile, mounts, self.roots)
            .map(|(file, ranges)| {
                let _ = evict(&file);
                cached(&file, &ranges)
            })
            .sum();
        for device in &profile.devices {
            let mounted = mounts.by_device(device.device).next().is_some();
            let path = self.roots.dev.join(format!("block/{}", device.device));
            if let Some(node) = mounted.then(|| File::open(path).ok()).flatten() {
                let _ = evict(&node);
            }
        }
        Pages(left).bytes(profile.page_size)
    }
}

/// Bytes of the profile's files that are in memory now. Looking opens the files, and so brings their names and inodes in.
#[must_use]
pub fn resident(profile: &Profile, mounts: &Mounts, roots: &Roots) -> Bytes {
    let pages = files(profile, mounts, roots).map(|(file, ranges)| cached(&file, &ranges)).sum();
    Pages(pages).bytes(profile.page_size)
}

fn cached(file: &File, ranges: &[PageRange]) -> u64 {
    ranges.iter().map(|range| cached_pages(file, *range).map_or(0, |count| count.cached)).sum()
}

/// The files of the profile that can be opened and have not changed, and the pages known of each.
fn files(profile: &Profile, mounts: &Mounts, roots: &Roots) -> impl Iterator<Item = (File, Vec<PageRange>)> {
    let mut opener = Opener::new(&roots.proc);
    profile.files.iter().filter(|file| mounts.untouchable(&file.path).is_none()).filter_map(move |file| {
        let path = CString::new(file.path.as_os_str().as_bytes()).ok()?;
        let handle = opener.open(&path, &file.identity).ok()?;
        Some((File::from(handle), file.ranges.iter().map(|range| range.pages).collect()))
    })
}
