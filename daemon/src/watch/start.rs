//! The instant of a start, and one event for all that begins with it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use headstart_shared::units::Nanos;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// A moment on `CLOCK_MONOTONIC` (`clock_gettime(2)`), in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Monotonic(pub u64);

impl Monotonic {
    /// This moment.
    #[must_use]
    pub fn now() -> Self {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Self(now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs())
    }

    /// The time from `earlier` to this moment; zero if it is not earlier.
    #[must_use]
    pub fn since(self, earlier: Self) -> Nanos {
        Nanos(self.0) - Nanos(earlier.0)
    }

    /// This moment and a span more.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Self((Nanos(self.0) + span.into()).0)
    }
}

/// No start on this clock happens in the first nanosecond after boot: the value that says that there will be none.
const ABANDONED: u64 = 1;

/// An event that happens when the program executes, or is abandoned because it could not be started.
///
/// An `eventfd(2)` whose value is the moment. It stays readable once it happened, so any number of threads may wait for
/// it, before or after.
#[derive(Debug)]
pub struct StartEvent {
    fd: OwnedFd,
    taken: Mutex<Option<u64>>,
}

impl StartEvent {
    /// An event that has not happened.
    ///
    /// # Errors
    ///
    /// If the process has no descriptor left.
    pub fn new() -> std::io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { fd, taken: Mutex::new(None) })
    }

    /// Waits until it happens, at most for `timeout`. `None` if it did not in this time, or was abandoned.
    #[must_use]
    pub fn wait(&self, timeout: Option<Duration>) -> Option<Monotonic> {
        let deadline = timeout.map(|span| Monotonic::now().after(span));
        loop {
            let left = deadline.map(|at| Duration::from(at.since(Monotonic::now())));
            let spec = left.and_then(|left| Timespec::try_from(left).ok());
            match poll(&mut [PollFd::new(&self.fd, PollFlags::IN)], spec.as_ref()) {
                Ok(0) => return None,
                Ok(_) => return self.take().filter(|&at| at != ABANDONED).map(Monotonic),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return None,
            }
        }
    }

    /// The moment, if it already happened.
    #[must_use]
    pub fn at(&self) -> Option<Monotonic> {
        self.wait(Some(Duration::ZERO))
    }

    /// Lets everybody who waits go on: there will be no start.
    pub fn abandon(&self) {
        // A start that was announced before `execve` failed is taken back.
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        *taken = Some(ABANDONED);
        let _written = rustix::io::write(&self.fd, &ABANDONED.to_ne_bytes());
    }

    /// For the child, which writes the moment to it.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Reads the value, once, and puts it back so that the event stays readable for the others.
    fn take(&self) -> Option<u64> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.is_none() {
            let mut bytes = [0; 8];
            rustix::io::read(&self.fd, &mut bytes).ok()?;
            *taken = Some(u64::from_ne_bytes(bytes));
            rustix::io::write(&self.fd, &bytes).ok()?;
        }
        *taken
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn everybody_who_waits_sees_the_same_moment() {
        let event = Arc::new(StartEvent::new().unwrap());
        let waiters: Vec<_> = (0..4)
            .map(|_| {
                std::thread::spawn({
                    let event = Arc::clone(&event);
                    move || event.wait(Some(Duration::from_secs(10)))
                })
            })
            .collect();
        assert_eq!(event.at(), None);
        rustix::io::write(event.as_fd(), &77_000u64.to_ne_bytes()).unwrap();
        for waiter in waiters {
            assert_eq!(waiter.join().unwrap(), Some(Monotonic(77_000)));
        }
        assert_eq!(event.at(), Some(Monotonic(77_000)));
    }

    #[test]
    fn an_abandoned_start_lets_go_and_has_no_moment() {
        let event = StartEvent::new().unwrap();
        assert_eq!(event.wait(Some(Duration::from_millis(5))), None);
        rustix::io::write(event.as_fd(), &77_000u64.to_ne_bytes()).unwrap();
        event.abandon();
        assert_eq!(event.wait(None), None);
        assert_eq!(event.at(), None);
    }
}
