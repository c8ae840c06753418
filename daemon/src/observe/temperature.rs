//! How cold a launch is: how much of a sample of its profile is cached at this moment.
//!
//! Looking must not change what is looked at. A file whose names are not cached would be read in by opening it, so it is
//! looked up with `RESOLVE_CACHED` (`openat2(2)`, Linux 5.12), which fails instead; such a file counts as not cached. Its
//! pages could be cached all the same, but names go together with what they lead to, nearly always.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rand::RngExt as _;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::opening::{Opener, Refusal};
use crate::profile::Profile;
use crate::recording::{FileIdentity, PageRange};
use crate::sys::residency::cached_pages;
use crate::{learn, path_text};

/// Files looked at. A launch waits for it, so it has to be over within the time of a single read.
const FILES: usize = 24;
/// Ranges of a file looked at.
const RANGES: usize = 8;

/// What a kernel says that does not know `RESOLVE_CACHED`, or has no `openat2`.
const UNKNOWN: [Errno; 2] = [Errno::INVAL, Errno::NOSYS];

/// What of a profile is looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    files: Vec<SampledFile>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SampledFile {
    #[serde(with = "path_text")]
    path: PathBuf,
    identity: FileIdentity,
    ranges: Vec<PageRange>,
    /// The pages that it stands for.
    weight: u64,
}

impl Sample {
    /// A sample of what a profile wants. Files are drawn with the chance that their pages give them, so that a large one
    /// counts for what it is and small ones are not forgotten.
    #[must_use]
    pub fn of(profile: &Profile) -> Self {
        let wanted = learn::wanted(profile);
        let pages = |file: &learn::WantedFile| file.ranges.iter().map(|r| r.pages.len()).sum::<u64>();
        let total: u64 = wanted.files.iter().map(pages).sum();
        let step = total.div_ceil(FILES as u64).max(1);
        // Systematic sampling: every `step`th page draws its file.
        let mut next = rand::rng().random_range(0..step);
        let mut seen = 0;
        let mut files = Vec::new();
        for file in &wanted.files {
            seen += pages(file);
            let mut drawn = 0;
            while next < seen {
                next += step;
                drawn += 1;
            }
            if drawn > 0 {
                files.push(SampledFile {
                    path: file.file.path.clone(),
                    identity: file.file.identity,
                    ranges: spread(&file.ranges.iter().map(|r| r.pages).collect::<Vec<_>>()),
                    weight: drawn,
                });
            }
        }
        Self { files }
    }

    /// The bytes that it is stored as.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        postcard::to_stdvec(self).unwrap_or_default()
    }

    /// The sample in these bytes; an empty one if they are of another version.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        postcard::from_bytes(bytes).unwrap_or_default()
    }

    /// The share of it that is cached, 0 to 1. `None` if there is nothing to look at, or the kernel cannot tell without
    /// reading. No drive is touched.
    #[must_use]
    pub fn cached_share(&self, proc: &Path) -> Option<f64> {
        let mut opener = Opener::new(proc).of_what_is_cached();
        let mut cached = 0.0;
        let mut weight = 0;
        for file in &self.files {
            match cached_of(file, &mut opener) {
                Ok(share) => {
                    #[expect(clippy::cast_precision_loss, reason = "at most the sample's files")]
                    let counts = file.weight as f64;
                    cached += share * counts;
                    weight += file.weight;
                }
                // Replaced or gone: it tells nothing.
                Err(Refusal::Other(errno)) if UNKNOWN.contains(&Errno::from_raw_os_error(errno)) => {
                    return None;
                }
                Err(_) => {}
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "at most the sample's files")]
        (weight > 0).then(|| cached / weight as f64)
    }
}

fn cached_of(file: &SampledFile, opener: &mut Opener) -> Result<f64, Refusal> {
    let Ok(path) = CString::new(file.path.as_os_str().as_bytes()) else { return Ok(0.0) };
    let fd = match opener.open(&path, &file.identity) {
        Err(Refusal::NotCached) => return Ok(0.0),
        opened => opened?,
    };
    let mut pages = 0;
    for range in &file.ranges {
        pages += cached_pages(&fd, *range).map_or(0, |count| count.cached);
    }
    let all: u64 = file.ranges.iter().map(|range| range.len()).sum();
    #[expect(clippy::cast_precision_loss, reason = "pages of a file")]
    Ok(pages.min(all) as f64 / all.max(1) as f64)
}

/// At most [`RANGES`] of them, from all over.
fn spread(ranges: &[PageRange]) -> Vec<PageRange> {
    let step = ranges.len().div_ceil(RANGES).max(1);
    ranges.iter().copied().step_by(step).collect()
}

#[cfg(test)]
mod tests;
