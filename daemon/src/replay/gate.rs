//! The gate that workers wait at: it opens once, for all of them together.
//!
//! It is opened by a call from any thread or process-wide event loop, or by a descriptor becoming readable, in which case
//! no thread stands between the event and the workers.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use headstart_shared::units::Nanos;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use super::Stopper;

/// A gate. Clones are the same gate.
#[derive(Clone, Debug)]
pub struct Gate {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// When it opened, in nanoseconds of the monotonic clock; 0 while it is closed.
    opened: AtomicU64,
    /// Readable, and never read, once it is open: every waiter sees it.
    event: OwnedFd,
    /// Opens it by becoming readable.
    trigger: Option<OwnedFd>,
}

impl Gate {
    /// A closed gate.
    ///
    /// # Errors
    /// When no descriptor is to be had.
    pub fn new() -> io::Result<Self> {
        Self::make(None)
    }

    /// A closed gate that also opens when `trigger` becomes readable or hangs up. It must stay so until
    /// [`Gate::is_open`]: a pipe that is closed does, as do an eventfd and a pidfd that nobody reads.
    ///
    /// # Errors
    /// When no descriptor is to be had.
    pub fn opened_by(trigger: OwnedFd) -> io::Result<Self> {
        Self::make(Some(trigger))
    }

    fn make(trigger: Option<OwnedFd>) -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { inner: Arc::new(Inner { opened: AtomicU64::new(0), event, trigger }) })
    }

    /// Opens it. Opening it again changes nothing.
    pub fn open(&self) {
        let now = super::account::now().0.max(1);
        if self.inner.opened.compare_exchange(0, now, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            // Writing 1 to a new eventfd cannot fail.
            let _ = rustix::io::write(&self.inner.event, &1_u64.to_ne_bytes());
        }
    }

    /// Whether it is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.inner.opened.load(Ordering::Acquire) != 0
    }

    /// When it opened, on the monotonic clock.
    #[must_use]
    pub fn opened_at(&self) -> Option<Nanos> {
        Some(self.inner.opened.load(Ordering::Acquire)).filter(|at| *at != 0).map(Nanos)
    }

    /// Waits until it is open (`true`) or the replay is stopped (`false`).
    pub(super) fn wait(&self, stop: &Stopper) -> bool {
        loop {
            if stop.is_stopped() {
                return false;
            }
            if self.is_open() {
                return true;
            }
            let event = PollFd::new(&self.inner.event, PollFlags::IN);
            let stopped = PollFd::new(&stop.inner.event, PollFlags::IN);
            let ready = match &self.inner.trigger {
                Some(trigger) => {
                    let mut fds = [event, stopped, PollFd::new(trigger, PollFlags::IN)];
                    poll(&mut fds, None).map(|_| !fds[2].revents().is_empty())
                }
                None => poll(&mut [event, stopped], None).map(|_| false),
            };
            match ready {
                Ok(true) => self.open(),
                Ok(false) | Err(rustix::io::Errno::INTR) => {}
                // Not to be able to wait is no reason to read at the wrong time.
                Err(_) => return false,
            }
        }
    }
}
