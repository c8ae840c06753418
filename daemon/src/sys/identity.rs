//! Whose eyes files are opened with: the file-system user of the calling thread (`setfsuid(2)`, `setgroups(2)`).
//!
//! A profile that belongs to a user is carried out by a root daemon. Reading ahead discloses nothing but time, yet time
//! is enough to learn whether a file exists in somebody else's folder. So files of a user's profile are opened as that
//! user, and it is the kernel that says no, with modes, ACLs and security modules as everywhere else.
//!
//! The file-system user is a property of a thread. While it is not root, the kernel also takes the capabilities away
//! that would override file permissions.

use std::io;
use std::marker::PhantomData;

/// A user and the groups that count for opening files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The user ID.
    pub uid: u32,
    /// The primary group ID.
    pub gid: u32,
    /// The other groups.
    pub groups: Vec<u32>,
}

/// The calling thread's own file-system user, and the one it opens files as. Made once a thread.
#[derive(Debug)]
pub struct FileUser {
    user: (u32, u32),
    own: (u32, u32),
    /// Not to be sent: it speaks of the thread that made it.
    thread: PhantomData<*const ()>,
}

impl FileUser {
    /// Gives the calling thread the user's groups, for good, and readies it to open files as that user.
    ///
    /// # Errors
    /// `EPERM` without the right to change user (`CAP_SETGID`, `CAP_SETUID`), unless the process is that user already.
    pub fn new(user: &User) -> io::Result<Self> {
        let own = (current_uid(), current_gid());
        if own != (user.uid, user.gid) {
            // The raw call, because the C library's would change every thread of the process.
            // SAFETY: the pointer and length are those of a slice of `gid_t` that outlives the call.
            let result =
                unsafe { libc::syscall(libc::SYS_setgroups, user.groups.len(), user.groups.as_ptr()) };
            if result != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        let this = Self { user: (user.uid, user.gid), own, thread: PhantomData };
        // `setfsuid` cannot report failure, so it is tried once and looked at.
        let became = this.during(|| (current_uid(), current_gid()));
        if became == this.user { Ok(this) } else { Err(io::Error::from_raw_os_error(libc::EPERM)) }
    }

    /// Does something with the user's eyes.
    pub fn during<T>(&self, act: impl FnOnce() -> T) -> T {
        if self.user == self.own {
            return act();
        }
        let _back = Back(self.own);
        // The group first: without root it could not be changed any more.
        set_gid(self.user.1);
        set_uid(self.user.0);
        act()
    }
}

/// Goes back to the thread's own user, also when the act panics.
struct Back((u32, u32));

impl Drop for Back {
    fn drop(&mut self) {
        set_uid(self.0.0);
        set_gid(self.0.1);
    }
}

fn set_uid(uid: u32) -> u32 {
    // SAFETY: the call takes a number only, and answers with the previous user.
    unsafe { libc::setfsuid(uid) }.cast_unsigned()
}

fn set_gid(gid: u32) -> u32 {
    // SAFETY: the call takes a number only, and answers with the previous group.
    unsafe { libc::setfsgid(gid) }.cast_unsigned()
}

/// An ID that does not exist changes nothing, and the answer is the present one.
fn current_uid() -> u32 {
    set_uid(u32::MAX)
}

fn current_gid() -> u32 {
    set_gid(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::fs::{File, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_kernel_decides_with_the_users_eyes_and_root_is_back_after() {
        if current_uid() != 0 {
            return crate::sys::loop_images::skip("root");
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let path = |name: &str, mode| {
            let path = folder.path().join(name);
            std::fs::write(&path, "x").unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            path
        };
        let (public, private, group) = (path("public", 0o644), path("private", 0o600), path("group", 0o640));
        std::os::unix::fs::chown(&group, None, Some(4242)).unwrap();
        std::thread::spawn(move || {
            let user = FileUser::new(&User { uid: 12345, gid: 12345, groups: vec![4242] }).unwrap();
            assert!(user.during(|| File::open(&public)).is_ok());
            assert!(user.during(|| File::open(&group)).is_ok());
            let refused = user.during(|| File::open(&private)).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
            assert!(File::open(&private).is_ok());
        })
        .join()
        .unwrap();
        assert_eq!(current_uid(), 0);
    }
}
