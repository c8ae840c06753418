//! The invariants of a profile, checked on everything that comes from outside: an imported file, a row of the store.
//!
//! Whoever holds a profile that passed may do arithmetic on its pages, bytes and times without overflow, and may open
//! its paths without walking upwards. It says nothing about whether the files exist or are still the same.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use headstart_shared::units::Nanos;

use super::{DeviceProfile, FileProfile, Profile, RangeUse};
use crate::learn::ranges;
use crate::recording::DeviceNumber;

/// Files in a profile at most. A whole boot reads some ten thousand.
pub const MAX_FILES: usize = 1 << 16;
/// Block devices in a profile at most.
pub const MAX_DEVICES: usize = 1 << 10;
/// Ranges in a profile at most, of files and devices together.
pub const MAX_RANGES: usize = 1 << 20;
/// The latest first need: a day after the start. Nothing that runs so long is a start.
pub const MAX_NEED: Nanos = Nanos(24 * 3600 * 1_000_000_000);
/// The largest app name in bytes: a command's path with every byte escaped.
const MAX_APP: usize = 4 * MAX_PATH;
/// The kernel's `PATH_MAX`, which counts the final NUL.
const MAX_PATH: usize = 4095;

/// Why a profile cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidProfile {
    /// The name of the app is empty, too long, or would disturb a terminal.
    #[error("the name of the app is empty, too long or holds control characters")]
    App,
    /// No kernel has such pages.
    #[error("a page of {0} bytes does not exist")]
    PageSize(u64),
    /// More files, devices or ranges than any start needs.
    #[error("it holds {count} {what}; at most {limit} are accepted")]
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// How many are accepted.
        limit: usize,
    },
    /// A path that could lead elsewhere than it says.
    #[error("the path {path:?} {flaw}")]
    Path {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        flaw: &'static str,
    },
    /// Files or devices out of order, or twice.
    #[error("{0} is out of order or there twice")]
    Order(String),
    /// Ranges that break an invariant.
    #[error("the ranges of {of} {flaw}")]
    Ranges {
        /// The file or device.
        of: String,
        /// What is wrong with them.
        flaw: &'static str,
    },
}

impl Profile {
    /// Checks every invariant: sane page size, bounded counts, absolute paths without `..`, everything sorted and
    /// disjoint and not empty, and every range within its file.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub fn verify(&self) -> Result<(), InvalidProfile> {
        let app = &self.app.0;
        if app.is_empty() || app.len() > MAX_APP || app.chars().any(char::is_control) {
            return Err(InvalidProfile::App);
        }
        if !sane_page_size(self.page_size) {
            return Err(InvalidProfile::PageSize(self.page_size));
        }
        let ranges = self.files.iter().map(|f| f.ranges.len()).sum::<usize>()
            + self.devices.iter().map(|d| d.ranges.len()).sum::<usize>();
        at_most("files", self.files.len(), MAX_FILES)?;
        at_most("devices", self.devices.len(), MAX_DEVICES)?;
        at_most("ranges", ranges, MAX_RANGES)?;
        for file in &self.files {
            verify_file(file, self.page_size)?;
        }
        for device in &self.devices {
            verify_ranges(&device.ranges, max_pages(self.page_size), || device_name(device))?;
        }
        if let Some((_, twice)) = out_of_order(&self.files, |a, b| a.path < b.path) {
            return Err(InvalidProfile::Order(file_name(&twice.path)));
        }
        if let Some((_, twice)) = out_of_order(&self.devices, |a, b| device_key(a) < device_key(b)) {
            return Err(InvalidProfile::Order(device_name(twice)));
        }
        Ok(())
    }
}

/// Whether a kernel may have such pages: 4 KiB to 256 KiB, a power of two.
fn sane_page_size(bytes: u64) -> bool {
    bytes.is_power_of_two() && (4 << 10..=256 << 10).contains(&bytes)
}

/// Why a profile cannot hold such a path, if it cannot.
pub(crate) fn path_flaw(path: &Path) -> Option<&'static str> {
    let bytes = path.as_os_str().as_bytes();
    if !path.is_absolute() {
        return Some("is not absolute");
    }
    if bytes.len() > MAX_PATH {
        return Some("is longer than the kernel allows");
    }
    if bytes.contains(&0) {
        return Some("holds a NUL byte");
    }
    if path.components().any(|c| c == Component::ParentDir) {
        return Some("leads upwards");
    }
    // `components` skips `.`, `//` and a final `/`.
    let shortest: PathBuf = path.components().collect();
    (shortest.as_os_str() != path.as_os_str() || path.file_name().is_none())
        .then_some("is not in its shortest form")
}

pub(super) fn at_most(what: &'static str, count: usize, limit: usize) -> Result<(), InvalidProfile> {
    if count > limit { Err(InvalidProfile::TooMany { what, count, limit }) } else { Ok(()) }
}

fn verify_file(file: &FileProfile, page_size: u64) -> Result<(), InvalidProfile> {
    if let Some(flaw) = path_flaw(&file.path) {
        return Err(InvalidProfile::Path { path: file.path.clone(), flaw });
    }
    verify_ranges(&file.ranges, file_pages(file.identity.size, page_size), || file_name(&file.path))
}

fn verify_ranges(ranges: &[RangeUse], pages: u64, name: impl Fn() -> String) -> Result<(), InvalidProfile> {
    let flaw = if ranges.is_empty() {
        "are missing"
    } else if !ranges::is_normal(ranges) {
        "are empty, out of order or overlap"
    } else if ranges.last().is_some_and(|r| r.pages.end > pages) {
        "reach beyond its end"
    } else if ranges.iter().any(|r| r.history.0 == 0) {
        "were used by no run"
    } else if ranges.iter().any(|r| r.first_need > MAX_NEED) {
        "are needed more than a day after the start"
    } else {
        return Ok(());
    };
    Err(InvalidProfile::Ranges { of: name(), flaw })
}

/// The pages of a file of `size` bytes.
pub(crate) fn file_pages(size: u64, page_size: u64) -> u64 {
    size.div_ceil(page_size.max(1)).min(max_pages(page_size))
}

/// The pages of the largest file or device: the kernel's offsets are signed 64-bit bytes.
pub(crate) fn max_pages(page_size: u64) -> u64 {
    i64::MAX.unsigned_abs() / page_size.max(1)
}

fn device_key(device: &DeviceProfile) -> (u64, DeviceNumber) {
    (device.filesystem, device.device)
}

fn out_of_order<T>(items: &[T], before: impl Fn(&T, &T) -> bool) -> Option<(&T, &T)> {
    items.iter().zip(items.iter().skip(1)).find(|(a, b)| !before(a, b))
}

/// Escaped: a hostile name must not reach a terminal as it is.
fn file_name(path: &Path) -> String {
    format!("\"{}\"", path.to_string_lossy().escape_debug())
}

fn device_name(device: &DeviceProfile) -> String {
    format!("device {}", device.device)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use headstart_shared::run::AppId;

    use super::*;
    use crate::profile::History;
    use crate::profile::testing::{PAGE, profile};
    use crate::recording::PageRange;

    /// What is said of a valid profile after a change.
    fn said(change: impl FnOnce(&mut Profile)) -> String {
        let mut profile = profile("app", 3);
        assert!(profile.verify().is_ok());
        change(&mut profile);
        profile.verify().map_or_else(|e| e.to_string(), |()| "valid".into())
    }

    #[test]
    fn each_invariant_is_checked() {
        let page = |start, end| PageRange { start, end };
        assert!(said(|p| p.app = AppId(String::new())).contains("name of the app"));
        assert!(said(|p| p.app = AppId("a".repeat(MAX_APP + 1))).contains("name of the app"));
        assert!(said(|p| p.app = AppId("a\nb".into())).contains("name of the app"));
        for bytes in [0, 1, 2048, 4097, 1 << 19, u64::MAX] {
            assert!(said(|p| p.page_size = bytes).contains("does not exist"), "{bytes}");
        }
        assert!(said(|p| p.files.swap(1, 2)).contains("out of order"));
        assert!(said(|p| p.files[1] = p.files[0].clone()).contains("twice"));
        assert!(said(|p| p.devices.push(p.devices[0].clone())).contains("twice"));
        assert!(said(|p| p.files[0].ranges.clear()).contains("missing"));
        assert!(said(|p| p.devices[0].ranges.clear()).contains("missing"));
        assert!(said(|p| p.files[0].ranges[0].pages = page(2, 2)).contains("empty"));
        assert!(said(|p| p.files[0].ranges[0].pages = page(2, 10)).contains("overlap"));
        assert!(said(|p| p.files[0].ranges.swap(0, 1)).contains("out of order"));
        assert!(said(|p| p.files[0].ranges[1].pages = page(99, 101)).contains("beyond its end"));
        assert_eq!(said(|p| p.files[0].ranges[1].pages = page(99, 100)), "valid");
        assert!(said(|p| p.files[0].identity.size = 11 * PAGE).contains("beyond its end"));
        assert_eq!(said(|p| p.files[0].identity.size = 11 * PAGE + 1), "valid");
        assert!(said(|p| p.devices[0].ranges[0].pages.end = u64::MAX / PAGE).contains("beyond its end"));
        assert!(said(|p| p.files[0].ranges[0].history = History(0)).contains("no run"));
        assert!(said(|p| p.files[0].ranges[0].first_need = Nanos(MAX_NEED.0 + 1)).contains("a day"));
    }

    #[test]
    fn counts_are_bounded() {
        let too_many =
            |what: &str, said: String| assert!(said.contains(what) && said.contains("at most"), "{said}");
        too_many("files", said(|p| p.files = vec![p.files[0].clone(); MAX_FILES + 1]));
        too_many("devices", said(|p| p.devices = vec![p.devices[0].clone(); MAX_DEVICES + 1]));
        too_many("ranges", said(|p| p.files[0].ranges = vec![p.files[0].ranges[0]; MAX_RANGES + 1]));
    }

    #[test]
    fn paths_lead_nowhere_else() {
        for good in ["/a", "/usr/lib/x..y", "/a/...", "/a b/\u{1b}"] {
            assert_eq!(path_flaw(Path::new(good)), None, "{good}");
        }
        assert_eq!(path_flaw(Path::new(OsStr::from_bytes(b"/\xff"))), None);
        let long = format!("/{}", "a".repeat(MAX_PATH));
        for bad in [
            "", "a", "./a", "/", "/..", "/a/../b", "/a/..", "//a", "/a//b", "/a/", "/./a", "/a/.", "/a\0",
            &long,
        ] {
            assert!(path_flaw(Path::new(bad)).is_some(), "{bad}");
        }
        assert!(path_flaw(Path::new(&long[1..])).is_some());
        assert!(path_flaw(Path::new(&long[..long.len() - 1])).is_none());
        let said = said(|p| p.files[0].path = "/\u{1b}[2J/..".into());
        assert!(!said.contains('\u{1b}'), "{said:?}");
    }
}
