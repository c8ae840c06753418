//! `ioprio_set(2)` and `ioprio_get(2)`: the I/O priority of the calling thread (`Documentation/block/ioprio.rst`).
//!
//! It is a property of a thread, not of a process: each worker sets its own. Only the schedulers bfq and mq-deadline
//! act on it ([`crate::drive::Drive::priority_effect`]). The realtime class is left out on purpose: with it a replay
//! would starve the very program it is for.

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

const WHO_PROCESS: libc::c_int = 1;
const CLASS_SHIFT: u32 = 13;
const CLASS_NONE: u32 = 0;
const CLASS_BEST_EFFORT: u32 = 2;
const CLASS_IDLE: u32 = 3;

/// The I/O priority of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IoPriority {
    /// None set: the kernel derives it from the CPU nice value.
    #[default]
    Unset,
    /// Best effort, from 0 (first) to 7 (last); without one, processes have 4.
    BestEffort(u8),
    /// Only when nobody else reads or writes. Can hold up a program that waits for the same page.
    Idle,
}

impl fmt::Display for IoPriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unset => f.pad("as the process"),
            Self::BestEffort(level) => f.pad(&format!("best effort {level}")),
            Self::Idle => f.pad("idle"),
        }
    }
}

impl IoPriority {
    fn raw(self) -> libc::c_int {
        let (class, level) = match self {
            Self::Unset => (CLASS_NONE, 0),
            Self::BestEffort(level) => (CLASS_BEST_EFFORT, level.min(7)),
            Self::Idle => (CLASS_IDLE, 0),
        };
        (class << CLASS_SHIFT | u32::from(level)).cast_signed()
    }
}

/// Sets the priority of the calling thread and asks the kernel whether it took.
///
/// # Errors
/// What the kernel says, or `Unsupported` if it accepted the call but reports another priority afterwards.
pub fn set_own(priority: IoPriority) -> io::Result<()> {
    // SAFETY: the call takes numbers only; who = 0 means the calling thread.
    let result =
        unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0 as libc::c_int, priority.raw()) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    match raw_own()? {
        // A thread without a priority reports the one derived from its nice value.
        _ if priority == IoPriority::Unset => Ok(()),
        raw if raw == priority.raw() => Ok(()),
        raw => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("the kernel reports priority {raw:#x} instead"),
        )),
    }
}

fn raw_own() -> io::Result<libc::c_int> {
    // SAFETY: the call takes numbers only; who = 0 means the calling thread.
    let result = unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, 0 as libc::c_int) };
    // The kernel's answer is an `int` widened by the wrapper, so nothing is lost.
    libc::c_int::try_from(result).ok().filter(|raw| *raw >= 0).ok_or_else(io::Error::last_os_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_takes_and_stays_with_its_thread() {
        for priority in [IoPriority::BestEffort(0), IoPriority::BestEffort(6), IoPriority::Idle] {
            std::thread::spawn(move || {
                let before = std::thread::spawn(|| raw_own().unwrap()).join().unwrap();
                set_own(priority).unwrap();
                assert_eq!(raw_own().unwrap(), priority.raw());
                set_own(IoPriority::Unset).unwrap();
                assert_eq!(raw_own().unwrap(), before);
            })
            .join()
            .unwrap();
        }
    }

    #[test]
    fn a_level_that_does_not_exist_is_the_last() {
        assert_eq!(IoPriority::BestEffort(99).raw(), IoPriority::BestEffort(7).raw());
    }
}
