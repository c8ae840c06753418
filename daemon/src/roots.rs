//! Where the kernel's file systems are mounted. Everything that reads them takes a [`Roots`], so that a test can
//! point it at a folder of captured files.

use std::path::PathBuf;

/// The kernel's file systems.
#[derive(Clone, Debug)]
pub struct Roots {
    /// procfs, normally `/proc`.
    pub proc: PathBuf,
    /// sysfs, normally `/sys`.
    pub sys: PathBuf,
    /// tracefs, normally `/sys/kernel/tracing`.
    pub tracefs: PathBuf,
    /// Device nodes, normally `/dev`.
    pub dev: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Self {
            proc: "/proc".into(),
            sys: "/sys".into(),
            tracefs: "/sys/kernel/tracing".into(),
            dev: "/dev".into(),
        }
    }
}
