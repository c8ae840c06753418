//! A channel that can be waited for together with the kernel's events.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc;

use rustix::event::{EventfdFlags, eventfd};

use super::messages::Request;

/// Puts messages into a mailbox. It never waits.
#[derive(Debug)]
pub struct Sender<T = Request> {
    queue: mpsc::Sender<T>,
    bell: Arc<OwnedFd>,
}

/// Takes messages out of it. Its descriptor is readable when there are some.
#[derive(Debug)]
pub struct Mailbox<T = Request> {
    queue: mpsc::Receiver<T>,
    bell: Arc<OwnedFd>,
}

/// A new mailbox, and what puts messages into it.
///
/// # Errors
/// The process has no descriptor left.
pub fn mailbox<T>() -> rustix::io::Result<(Sender<T>, Mailbox<T>)> {
    let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
    let (sender, receiver) = mpsc::channel();
    Ok((Sender { queue: sender, bell: Arc::clone(&bell) }, Mailbox { queue: receiver, bell }))
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self { queue: self.queue.clone(), bell: Arc::clone(&self.bell) }
    }
}

impl<T> Sender<T> {
    /// Puts one in. Gives whether anybody is there to take it.
    pub fn send(&self, message: T) -> bool {
        // The message first: whoever wakes must find it. A bell that rings already is enough.
        let sent = self.queue.send(message).is_ok();
        let _ = rustix::io::write(&*self.bell, &1u64.to_ne_bytes());
        sent
    }
}

impl<T> Mailbox<T> {
    /// Takes out all that is in it.
    #[must_use]
    pub fn take(&self) -> Vec<T> {
        // The bell first: what comes in after it rings anew.
        let _ = rustix::io::read(&*self.bell, &mut [0u8; 8]);
        self.queue.try_iter().collect()
    }
}

impl<T> AsFd for Mailbox<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    fn rings(mailbox: &Mailbox) -> bool {
        let now = Timespec::try_from(Duration::ZERO).expect("a time");
        poll(&mut [PollFd::new(mailbox, PollFlags::IN)], Some(&now)).expect("poll") == 1
    }

    #[test]
    fn it_rings_until_all_is_taken_out_and_again_for_what_comes_after() {
        let (sender, mailbox) = mailbox().expect("a mailbox");
        assert!(!rings(&mailbox));
        assert!(sender.send(Request::Resume) && sender.clone().send(Request::Pause(None)));
        assert!(rings(&mailbox));
        assert_eq!(mailbox.take().len(), 2);
        assert!(!rings(&mailbox) && mailbox.take().is_empty());
        assert!(sender.send(Request::Stop));
        assert!(rings(&mailbox));
    }

    #[test]
    fn a_sender_learns_that_nobody_takes_them_any_more() {
        let (sender, mailbox) = mailbox().expect("a mailbox");
        drop(mailbox);
        assert!(!sender.send(Request::Resume));
    }
}
