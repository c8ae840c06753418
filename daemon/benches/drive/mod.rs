//! A simulated drive: real reads of real data, answered when a drive of a given kind would answer them.
//!
//! ```text
//! file system ── page cache ── loop device ── FUSE file `disk` ── model ── store in memory
//! ```
//!
//! A fast machine hides what reading ahead is for. Here page faults, the kernel's read-ahead, the I/O scheduler and
//! the device queue are the kernel's own; only the waiting is modelled ([`model`], with the figures in
//! [`parameters`]). The time that a request needs to get to the drive and back is measured when the drive starts and
//! counted as part of its service time, so that an idle drive answers after exactly as long as the model says.
//!
//! The store is an open file. It belongs in memory (a `memfd`, or a file without a name in `/dev/shm`): then emptying
//! the machine's caches leaves it alone, and nothing of it is left when the process ends, however it ends.

pub mod calibrate;
pub mod counters;
pub mod model;
pub mod parameters;

mod block;
mod clock;
mod serve;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fuser::{Config, MountOption, Session, SessionUnmounter};
use rustix::io::Errno;
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::mount::{UnmountFlags, unmount};
use tempfile::TempDir;

use block::LoopDevice;
use counters::Counters;
use parameters::Kind;
pub use serve::Transport;
use serve::{DiskFs, Shared};

/// Why there is no drive.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or device cannot be used.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A tool of util-linux is missing or failed.
    #[error("{name}: {source} (it comes with util-linux; loop devices need root)")]
    Tool {
        /// Which.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// FUSE is missing or refused.
    #[error("cannot serve the drive over FUSE: {0} (needs root and the kernel's fuse module)")]
    Fuse(io::Error),
    /// The store is too large for the memory that may be locked.
    #[error("cannot lock the drive in memory: {0} (needs root)")]
    Lock(io::Error),
}

/// A drive, in use until it is dropped. What was mounted from it must be unmounted before.
#[derive(Debug)]
pub struct Drive {
    kind: Kind,
    transport: Transport,
    // In the order in which they are to go.
    device: Option<LoopDevice>,
    server: Server,
}

impl Drive {
    /// Starts a drive of the given kind that holds what the store holds.
    ///
    /// # Errors
    /// Without root, without FUSE or loop devices, or if the store cannot be read.
    pub fn start(kind: Kind, store: File) -> Result<Self, Error> {
        // Pages that are in use stay; with ONFAULT what is merely reserved is not filled in.
        mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT)
            .map_err(|e| Error::Lock(e.into()))?;
        let server = Server::start(kind, store)?;
        let device = LoopDevice::attach(&server.mount_point().join("disk"))?;
        let transport = calibrate::transport(&server.shared, &device)?;
        server.shared.refit(kind.mechanism(), transport);
        device.dress(kind)?;
        Ok(Self { kind, transport, device: Some(device), server })
    }

    /// The block device to mount.
    #[must_use]
    pub fn device(&self) -> &Path {
        self.device.as_ref().map_or(Path::new(""), LoopDevice::path)
    }

    /// What it was started as.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// How long a request is on its way to the drive and back; part of the service time.
    #[must_use]
    pub fn transport(&self) -> Transport {
        self.transport
    }

    /// The file that shows the counters, and resets them when written to.
    #[must_use]
    pub fn counters_file(&self) -> PathBuf {
        self.server.mount_point().join("counters")
    }

    /// What the drive did since it was started or the counters were reset.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.server.shared.counters()
    }

    /// Begins to count anew.
    pub fn reset_counters(&self) {
        self.server.shared.reset_counters();
    }

    /// Forgets what the kernel has cached of the device. Together with unmounting before and mounting again after,
    /// this makes the drive's content cold without emptying anything else.
    ///
    /// # Errors
    /// If the device refuses.
    pub fn forget(&self) -> Result<(), Error> {
        self.device.as_ref().map_or(Ok(()), LoopDevice::forget)
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        // The file can only be unmounted when the loop device no longer uses it.
        drop(self.device.take());
    }
}

/// The FUSE session and the thread that runs it with the threads it starts.
#[derive(Debug)]
struct Server {
    shared: Arc<Shared>,
    unmounter: SessionUnmounter,
    thread: Option<JoinHandle<()>>,
    directory: TempDir,
}

impl Server {
    fn start(kind: Kind, store: File) -> Result<Self, Error> {
        let temporary = tempfile::Builder::new().prefix("headstart-drive-").tempdir();
        let directory = temporary.map_err(|source| Error::Io { path: std::env::temp_dir(), source })?;
        let shared = Arc::new(Shared::new(store, kind.mechanism()).map_err(Error::Fuse)?);
        let mut config = Config::default();
        config.mount_options =
            vec![MountOption::FSName(format!("headstart-drive-{kind}")), MountOption::NoAtime];
        config.n_threads = Some(2);
        let mut session =
            Session::new(DiskFs(Arc::clone(&shared)), directory.path(), &config).map_err(Error::Fuse)?;
        let unmounter = session.unmount_callable();
        let work = move || {
            // The threads that the session starts inherit this.
            clock::make_prompt();
            // An error here means that the mount is gone, which is how the session ends.
            drop(session.run());
        };
        let thread = thread::Builder::new().name("drive".to_owned()).spawn(work).map_err(Error::Fuse)?;
        Ok(Self { shared, unmounter, thread: Some(thread), directory })
    }

    fn mount_point(&self) -> &Path {
        self.directory.path()
    }

    fn unmount(&mut self) {
        // The kernel lets go of the loop device's file a moment after the device is closed.
        for _ in 0..50 {
            if unmount(self.directory.path(), UnmountFlags::empty()) != Err(Errno::BUSY) {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        // Whatever uses the drive still gets errors from now on instead of waiting for ever.
        let _ = unmount(self.directory.path(), UnmountFlags::FORCE | UnmountFlags::DETACH);
        let _ = self.unmounter.unmount();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.unmount();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
