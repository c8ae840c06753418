//! Hashes that tell whether something is still as it was. They mean nothing else, and nothing to another version.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::drive::Drives;
use crate::mounts::{Mount, Mounts};
use crate::plan::{Plan, Target};
use crate::roots::Roots;

/// Which mounts and drives plans are for: another one after a file system was moved to another drive or mounted elsewhere,
/// the same one after a stick was plugged in. Only mountinfo and sysfs are read.
#[must_use]
pub fn layout(plans: &[Plan], mounts: &Mounts, roots: &Roots) -> u64 {
    let mut hasher = DefaultHasher::new();
    for plan in plans {
        let mut hosts: Vec<&Mount> = Vec::new();
        for file in &plan.files {
            // Neighbouring files are mostly on the same mount.
            if let Some(mount) = mounts.at(&file.path)
                && !hosts.iter().any(|host| host.id == mount.id)
            {
                hosts.push(mount);
            }
        }
        let hosts: BTreeSet<String> = hosts.iter().map(|mount| host(mount, mounts, roots)).collect();
        hosts.hash(&mut hasher);
        plan.devices.iter().for_each(|planned| planned.device.hash(&mut hasher));
    }
    hasher.finish()
}

/// A mount and the drive below it.
fn host(mount: &Mount, mounts: &Mounts, roots: &Roots) -> String {
    let target = Drives::of(mount, mounts, roots).map(|drives| Target::from(drives.deciding()));
    format!("{} {} {} {target:?}", mount.mount_point.display(), mount.device, mount.fs_type.display())
}

/// Which version of an app a file is: another one after it was replaced. `None` if it is not there.
#[must_use]
pub fn version(program: &Path) -> Option<u64> {
    let found = std::fs::metadata(program).ok()?;
    let mut hasher = DefaultHasher::new();
    (found.dev(), found.ino(), found.size(), found.mtime(), found.mtime_nsec()).hash(&mut hasher);
    Some(hasher.finish())
}

/// What it depends on whether reading ahead gains anything: the app's version, the kernel, and the drives.
#[must_use]
pub fn circumstances(version: u64, plans: &[Plan]) -> u64 {
    let mut hasher = DefaultHasher::new();
    version.hash(&mut hasher);
    rustix::system::uname().release().hash(&mut hasher);
    for plan in plans {
        format!("{:?}", plan.target).hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_program_is_another_version_and_a_read_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("app");
        std::fs::write(&program, "one").unwrap();
        let first = version(&program);
        std::fs::read(&program).unwrap();
        assert_eq!(version(&program), first);
        let new = dir.path().join("new");
        std::fs::write(&new, "two").unwrap();
        std::fs::rename(new, &program).unwrap();
        assert_ne!(version(&program), first);
        assert_eq!(version(&dir.path().join("missing")), None);
    }

    #[test]
    fn circumstances_follow_the_version() {
        assert_eq!(circumstances(1, &[]), circumstances(1, &[]));
        assert_ne!(circumstances(1, &[]), circumstances(2, &[]));
    }
}
