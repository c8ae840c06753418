//! A private tracing instance: its own buffers and settings, unseen by whoever else is tracing
//! (Documentation/trace/ftrace.rst, "Instances").
//!
//! An [`Instance`] is removed when it is dropped; one whose owner was killed is removed by the next
//! [`Tracefs::find`]. While it lives, it costs other programs nothing but its memory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use crate::roots::Roots;

/// An instance's buffers together, at most, unless the least for each processor makes more.
const BUFFERS: u64 = 64 << 20;
/// One processor's buffer: a start that floods one processor with events fits in the larger, and even many processors
/// have the smaller.
const BUFFER_KIB: std::ops::RangeInclusive<u64> = 512..=8192;
/// How long a dropped instance is waited for: the kernel keeps it busy for a moment after its last file was closed.
const REMOVAL: std::time::Duration = std::time::Duration::from_millis(200);
const PREFIX: &str = "headstart-";

/// Why the kernel's tracing cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// There is no tracefs, and none can be mounted.
    #[error(
        "no tracefs at {path} and none can be mounted: {source}; is this kernel built with CONFIG_FTRACE?"
    )]
    NoTracefs {
        /// Where it was expected.
        path: PathBuf,
        /// Why it could not be mounted.
        source: io::Error,
    },
    /// The kernel forbids it.
    #[error(
        "the kernel refuses {path}: {source}; it is locked down (/sys/kernel/security/lockdown) or the \
         process lacks CAP_SYS_ADMIN, so what is resident after a start is recorded instead"
    )]
    Refused {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// A control file does not do what the kernel documents.
    #[error("cannot use {path}: {source}")]
    Control {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel lacks an event.
    #[error("this kernel has no event {event}")]
    NoEvent {
        /// Its name.
        event: String,
    },
}

fn failed(path: PathBuf, source: io::Error) -> TraceError {
    match source.kind() {
        io::ErrorKind::PermissionDenied => TraceError::Refused { path, source },
        _ => TraceError::Control { path, source },
    }
}

/// The tracefs to use: the mounted one, or a mount of our own that nobody else sees.
#[derive(Clone, Debug)]
pub struct Tracefs {
    root: PathBuf,
    /// Keeps a mount of our own.
    _mount: Option<Arc<OwnedFd>>,
}

impl Tracefs {
    /// Finds tracefs, and removes what recorders that were killed have left there.
    ///
    /// # Errors
    /// When there is none and none can be mounted.
    pub fn find(roots: &Roots) -> Result<Self, TraceError> {
        let found = match fs::metadata(roots.tracefs.join("events")) {
            Ok(_) => Self { root: roots.tracefs.clone(), _mount: None },
            Err(source) if source.kind() == io::ErrorKind::PermissionDenied => {
                return Err(failed(roots.tracefs.clone(), source));
            }
            Err(_) => {
                let mount = mount_detached().map_err(|errno| match errno {
                    Errno::PERM | Errno::ACCESS => failed(roots.tracefs.clone(), errno.into()),
                    errno => TraceError::NoTracefs { path: roots.tracefs.clone(), source: errno.into() },
                })?;
                let root = roots.proc.join(format!("self/fd/{}", mount.as_raw_fd()));
                Self { root, _mount: Some(Arc::new(mount)) }
            }
        };
        found.remove_left_behind(&roots.proc);
        Ok(found)
    }

    /// Where it is. Valid as long as this value lives.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether this kernel has an event, `system/name`.
    #[must_use]
    pub fn has(&self, event: &str) -> bool {
        self.root.join("events").join(event).is_dir()
    }

    /// An instance is named after its process; of a process that is gone it is nobody's.
    fn remove_left_behind(&self, proc: &Path) {
        let Ok(entries) = fs::read_dir(self.root.join("instances")) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let owner = name.to_str().and_then(|n| n.strip_prefix(PREFIX)?.split('-').next());
            if owner.is_some_and(|pid| !proc.join(pid).exists()) {
                // In use by somebody's open file: the next time then.
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}

fn mount_detached() -> rustix::io::Result<OwnedFd> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
}

/// One private instance. Nothing is traced before [`Instance::start`].
#[derive(Debug)]
pub struct Instance {
    tracefs: Tracefs,
    path: PathBuf,
}

impl Instance {
    /// Makes an instance with the monotonic clock, following forks, that keeps the earliest events when it is full.
    /// Each processor has a buffer of `buffer_kib` KiB; of a size that suits their number if `None`.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn create(tracefs: &Tracefs, buffer_kib: Option<u64>) -> Result<Self, TraceError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}", std::process::id());
        let path = tracefs.root.join("instances").join(name);
        fs::create_dir(&path).map_err(|source| failed(path.clone(), source))?;
        let instance = Self { tracefs: tracefs.clone(), path };
        instance.write("tracing_on", "0")?;
        instance.write("trace_clock", "mono")?;
        instance.write("options/event-fork", "1")?;
        // What is traced is the beginning: when the buffer is full, the end is to be lost, not the beginning.
        instance.write("options/overwrite", "0")?;
        let kib = buffer_kib.map_or_else(|| instance.suitable_kib(), Ok)?;
        instance.write("buffer_size_kb", &kib.to_string())?;
        // Waking the collector more often would take the processor from the program; missing on older kernels.
        let _ = instance.write("buffer_percent", "25");
        Ok(instance)
    }

    fn suitable_kib(&self) -> Result<u64, TraceError> {
        let processors = self.pipes()?.len().max(1) as u64;
        Ok((BUFFERS / 1024 / processors).clamp(*BUFFER_KIB.start(), *BUFFER_KIB.end()))
    }

    /// Its folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Traces an event, `system/name`, from the start on.
    ///
    /// # Errors
    /// When the kernel has no such event, or refuses.
    pub fn enable(&self, event: &str) -> Result<(), TraceError> {
        if !self.tracefs.has(event) {
            return Err(TraceError::NoEvent { event: event.into() });
        }
        self.write(&format!("events/{event}/enable"), "1")
    }

    /// The file that takes numbers of threads to trace, with all that they fork. Numbers written to it are added.
    ///
    /// An empty filter lets everything through, so one number has to be written before [`Instance::start`].
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn pid_filter(&self) -> Result<File, TraceError> {
        let path = self.path.join("set_event_pid");
        OpenOptions::new().append(true).open(&path).map_err(|source| failed(path, source))
    }

    /// Begins.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn start(&self) -> Result<(), TraceError> {
        self.write("tracing_on", "1")
    }

    /// Ends; what was traced can still be read.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn stop(&self) -> Result<(), TraceError> {
        self.write("tracing_on", "0")
    }

    /// The processors' `trace_pipe_raw` files.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub fn pipes(&self) -> Result<Vec<PathBuf>, TraceError> {
        Ok(self.processors()?.into_iter().map(|folder| folder.join("trace_pipe_raw")).collect())
    }

    /// What the kernel counted so far.
    ///
    /// # Errors
    /// When the counts cannot be read.
    pub fn counts(&self) -> Result<Counts, TraceError> {
        self.counter().counts()
    }

    /// Reads the counts, also after the instance is gone, when there are none any more.
    #[must_use]
    pub fn counter(&self) -> Counter {
        Counter { _tracefs: self.tracefs.clone(), path: self.path.clone() }
    }

    fn processors(&self) -> Result<Vec<PathBuf>, TraceError> {
        processors(&self.path)
    }

    fn write(&self, file: &str, value: &str) -> Result<(), TraceError> {
        let path = self.path.join(file);
        let write = || OpenOptions::new().write(true).open(&path)?.write_all(value.as_bytes());
        write().map_err(|source| failed(path.clone(), source))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.stop();
        // What is still busy then is removed by the next recorder.
        let deadline = Instant::now() + REMOVAL;
        while fs::remove_dir(&self.path).is_err_and(|error| error.kind() == io::ErrorKind::ResourceBusy)
            && Instant::now() < deadline
        {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }
}

fn processors(instance: &Path) -> Result<Vec<PathBuf>, TraceError> {
    let path = instance.join("per_cpu");
    let list = || fs::read_dir(&path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>();
    list().map_err(|source| failed(path.clone(), source))
}

/// Reads an instance's counts.
#[derive(Clone, Debug)]
pub struct Counter {
    _tracefs: Tracefs,
    path: PathBuf,
}

impl Counter {
    /// What the kernel counted so far, over all processors.
    ///
    /// # Errors
    /// When the counts cannot be read.
    pub fn counts(&self) -> Result<Counts, TraceError> {
        let mut counts = Counts::default();
        for folder in processors(&self.path)? {
            let path = folder.join("stats");
            let text = fs::read_to_string(&path).map_err(|source| failed(path, source))?;
            counts.add(&text);
        }
        Ok(counts)
    }
}

/// How many events a recorder has written and lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Written, whether read already or not.
    pub written: u64,
    /// Lost because the buffer was full.
    pub lost: u64,
}

impl Counts {
    /// Adds one processor's `stats` file.
    fn add(&mut self, text: &str) {
        for (name, value) in text.lines().filter_map(|line| line.split_once(": ")) {
            let Ok(value) = value.trim().parse::<u64>() else { continue };
            match name {
                "entries" | "read events" => self.written += value,
                "overrun" | "commit overrun" | "dropped events" => self.lost += value,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_summed_over_processors() {
        let text = "entries: 64\noverrun: 1\ncommit overrun: 2\nbytes: 2768\noldest event ts:   170.192715
now ts:   170.221711\ndropped events: 3\nread events: 5\n";
        let mut counts = Counts::default();
        counts.add(text);
        counts.add(text);
        assert_eq!(counts, Counts { written: 138, lost: 12 });
    }

    #[test]
    fn what_a_killed_recorder_left_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots { tracefs: dir.path().into(), ..Roots::default() };
        fs::create_dir(dir.path().join("events")).unwrap();
        let instance = |name: &str| {
            let path = dir.path().join("instances").join(name);
            fs::create_dir_all(&path).unwrap();
            path
        };
        let dead = instance("headstart-4194304-0");
        let ours = instance(&format!("headstart-{}-0", std::process::id()));
        let others = instance("somebody");
        Tracefs::find(&roots).unwrap();
        assert!(!dead.exists() && ours.exists() && others.exists());
    }
}
