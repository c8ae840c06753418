//! For tests: profiles of any shape, and mounts that vanish with the test.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use headstart_shared::run::AppId;
use headstart_shared::units::Nanos;
use proptest::prelude::*;
use rustix::mount::{MountFlags, mount, mount_bind, mount_remount};

use super::{DeviceProfile, FileProfile, History, MAX_NEED, Profile, RangeUse};
use crate::recording::{DeviceNumber, FileIdentity, PageRange};

pub(crate) const PAGE: u64 = 4096;

/// A profile of this many files, with two ranges each.
pub(crate) fn profile(app: &str, files: u64) -> Profile {
    let range = |start| RangeUse {
        pages: PageRange { start, end: start + 3 },
        first_need: Nanos(start * 1_000_000),
        history: History(0b101),
    };
    let file = |n: u64| FileProfile {
        path: format!("/usr/lib/{n:06}.so").into(),
        identity: FileIdentity {
            filesystem: 77,
            inode: n,
            size: 100 * PAGE,
            mtime: 1_700_000_000_000_000_000,
        },
        earlier: History(0),
        ranges: vec![range(0), range(9 + n % 7)],
    };
    Profile {
        app: AppId(app.into()),
        page_size: PAGE,
        runs: 3,
        files: (0..files).map(file).collect(),
        devices: vec![DeviceProfile {
            device: DeviceNumber { major: 8, minor: 1 },
            filesystem: 77,
            ranges: vec![range(1 << 20)],
        }],
    }
}

fn ranges() -> impl Strategy<Value = Vec<RangeUse>> {
    prop::collection::vec((0_u64..99, 1_u64..99, 0..=MAX_NEED.0, 1_u32..), 1..6).prop_map(|steps| {
        let mut at = 0;
        let next = |(gap, len, need, history)| {
            let pages = PageRange { start: at + gap, end: at + gap + len };
            at = pages.end;
            RangeUse { pages, first_need: Nanos(need), history: History(history) }
        };
        steps.into_iter().map(next).collect()
    })
}

prop_compose! {
    /// Absolute paths of any bytes but NUL, some of them not UTF-8.
    fn path()(names in prop::collection::vec(prop::collection::vec(prop_oneof![1_u8..=b'.' - 1, b'0'..=255], 1..12), 1..4))
        -> PathBuf
    {
        let names = names.into_iter().map(OsString::from_vec);
        names.fold(PathBuf::from("/"), |path, name| path.join(name))
    }
}

prop_compose! {
    fn any_file()(
        path in path(), filesystem in any::<u64>(), inode in any::<u64>(), mtime in any::<i64>(),
        size in 1000 * PAGE.., earlier in any::<u32>(), ranges in ranges(),
    ) -> FileProfile {
        let identity = FileIdentity { filesystem, inode, size, mtime };
        FileProfile { path, identity, earlier: History(earlier), ranges }
    }
}

prop_compose! {
    fn any_device()(
        major in any::<u32>(), minor in any::<u32>(), filesystem in any::<u64>(), ranges in ranges(),
    ) -> DeviceProfile {
        DeviceProfile { device: DeviceNumber { major, minor }, filesystem, ranges }
    }
}

prop_compose! {
    /// Any valid profile.
    pub(crate) fn any_profile()(
        app in "[a-zA-Z0-9./\\\\é]{1,20}", runs in any::<u32>(),
        mut files in prop::collection::vec(any_file(), 0..5),
        mut devices in prop::collection::vec(any_device(), 0..3),
    ) -> Profile {
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files.dedup_by(|a, b| a.path == b.path);
        devices.sort_by_key(|d| (d.filesystem, d.device));
        devices.dedup_by_key(|d| (d.filesystem, d.device));
        Profile { app: AppId(app), page_size: PAGE, runs, files, devices }
    }
}

/// Says that a test is skipped, or fails where tests must not be.
pub(crate) fn skip(missing: &str) {
    assert!(std::env::var_os("HEADSTART_REQUIRE_ROOT_TESTS").is_none(), "required, but missing: {missing}");
    eprintln!("SKIPPED: {missing}");
}

/// Runs the calling test once more in a mount namespace of its own, so that its mounts end with it whatever happens.
/// `test` is its name from the crate's root. True in there; false outside, when all is done.
pub(crate) fn in_own_mounts(test: &str) -> bool {
    const INSIDE: &str = "HEADSTART_TEST_IN_OWN_MOUNTS";
    if std::env::var_os(INSIDE).is_some() {
        // A folder that something is mounted on cannot be removed; so they all end with the namespace.
        mount("none", std::env::temp_dir(), "tmpfs", MountFlags::empty(), None).unwrap();
        return true;
    }
    if !rustix::process::geteuid().is_root() {
        skip("root, to mount");
        return false;
    }
    let status = Command::new("unshare")
        .args(["--mount", "--propagation", "private"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .output();
    match status {
        Ok(out) => {
            let said =
                String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
            assert!(
                out.status.success() && said.contains("1 passed"),
                "{test} failed in its own mounts: {said}"
            );
        }
        Err(e) => skip(&format!("unshare(1): {e}")),
    }
    false
}

/// A new file system in memory of this many bytes.
pub(crate) fn mount_small(at: &Path, bytes: usize) {
    fs::create_dir_all(at).unwrap();
    let options = std::ffi::CString::new(format!("size={bytes}")).unwrap();
    mount("none", at, "tmpfs", MountFlags::empty(), Some(options.as_c_str())).unwrap();
}

/// Makes a folder read-only, for root too.
pub(crate) fn mount_read_only(at: &Path) {
    mount_bind(at, at).unwrap();
    mount_remount(at, MountFlags::BIND | MountFlags::RDONLY, "").unwrap();
}

/// The names in a folder, sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
