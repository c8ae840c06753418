//! Making a start cold: `sync` first, since a page that is not written yet cannot be dropped, then emptying caches.
//!
//! * *evict* is kind to the rest of the system: only the files of the profile, and the blocks in which their folders and
//!   inodes lie, by `posix_fadvise(POSIX_FADV_DONTNEED)`. The kernel has no such call for names and inodes that it holds
//!   already, and keeps pages that another program has mapped.
//! * *drop* empties everything clean there is (`/proc/sys/vm/drop_caches`, Documentation/admin-guide/sysctl/vm.rst), again
//!   but for what is mapped.

use std::fs::{self, File};
use std::io;
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

/// Emptying all caches is repeated at most this often.
const MOST_PASSES: u32 = 6;

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

    /// Makes the next start of the app cold. The part of its files that stays in memory all the same is returned.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn make(&self, profile: &Profile, mounts: &Mounts) -> Result<Bytes, ColdError> {
        // Twice, since writing out may dirty structures of the file system anew.
        rustix::fs::sync();
        match self.method {
            ColdMethod::Drop => self.drop_all()?,
            ColdMethod::Evict => self.evict(profile, mounts),
            ColdMethod::Boot => {}
        }
        sleep(REST);
        Ok(self.left(profile, mounts))
    }

    /// Names and inodes that were used lately are only marked by the first pass, and go in a later one; so until it is
    /// as good as done.
    fn drop_all(&self) -> Result<(), ColdError> {
        let path = self.roots.proc.join("sys/vm/drop_caches");
        let mut before = u64::MAX;
        for _ in 0..MOST_PASSES {
            fs::write(&path, "3\n").map_err(|source| ColdError { path: path.clone(), source })?;
            let left = self.reclaimable_kib();
            if left >= before - before / 50 {
                break;
            }
            before = left;
        }
        Ok(())
    }

    /// What the kernel's own caches of names and inodes take; 0 if it does not say.
    fn reclaimable_kib(&self) -> u64 {
        let text = fs::read_to_string(self.roots.proc.join("meminfo")).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("SReclaimable:"));
        line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    }

    fn evict(&self, profile: &Profile, mounts: &Mounts) {
        for (file, _) in self.files(profile, mounts) {
            // What cannot be evicted is seen by what is left.
            let _ = evict(&file);
        }
        for device in &profile.devices {
            let mounted = mounts.by_device(device.device).next().is_some();
            let path = self.roots.dev.join(format!("block/{}", device.device));
            if let Some(node) = mounted.then(|| File::open(path).ok()).flatten() {
                let _ = evict(&node);
            }
        }
    }

    fn left(&self, profile: &Profile, mounts: &Mounts) -> Bytes {
        let pages: u64 = self
            .files(profile, mounts)
            .flat_map(|(file, ranges)| {
                ranges
                    .into_iter()
                    .map(move |range| cached_pages(&file, range).map_or(0, |count| count.cached))
            })
            .sum();
        Pages(pages).bytes(profile.page_size)
    }

    /// The files of the profile that can be opened and have not changed, and the pages known of each.
    fn files(&self, profile: &Profile, mounts: &Mounts) -> impl Iterator<Item = (File, Vec<PageRange>)> {
        let mut opener = Opener::new(&self.roots.proc);
        profile.files.iter().filter(|file| mounts.untouchable(&file.path).is_none()).filter_map(move |file| {
            use std::os::unix::ffi::OsStrExt;
            let path = std::ffi::CString::new(file.path.as_os_str().as_bytes()).ok()?;
            let handle = opener.open(&path, &file.identity).ok()?;
            Some((File::from(handle), file.ranges.iter().map(|range| range.pages).collect()))
        })
    }
}

/// Bytes of the profile's files that are in memory now.
#[must_use]
pub fn resident(profile: &Profile, mounts: &Mounts, roots: &Roots) -> Bytes {
    Cold::new(ColdMethod::Boot, roots).left(profile, mounts)
}
