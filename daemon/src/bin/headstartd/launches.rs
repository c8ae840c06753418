//! The thread of the launches.

use std::time::Duration;

use headstart_daemon::service::launches::{Inputs, LaunchesError};
use headstart_daemon::service::messages::{Notice, Pause, Request};
use headstart_shared::bus::PauseCode;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::oneshot;

/// How the launches ended.
pub(crate) type Ended = Result<(), LaunchesError>;

/// Starts the thread. What it gives tells that it has ended.
pub(crate) fn start(inputs: Inputs) -> std::io::Result<oneshot::Receiver<Ended>> {
    let (sender, receiver) = oneshot::channel();
    let work = move || {
        // Whoever waits no longer has given up waiting.
        let _ = sender.send(run(&inputs));
    };
    std::thread::Builder::new().name("launches".into()).spawn(work)?;
    Ok(receiver)
}

/// Only answers its mailbox, until it is told to stop.
fn run(inputs: &Inputs) -> Ended {
    loop {
        (inputs.alive)();
        let patience = Timespec::try_from(Duration::from_secs(10)).ok();
        let _ = poll(&mut [PollFd::new(&inputs.mailbox, PollFlags::IN)], patience.as_ref());
        for request in inputs.mailbox.take() {
            match request {
                Request::Stop => return Ok(()),
                Request::Pause(until) => {
                    (inputs.notices)(Notice::Pause(Pause { reason: PauseCode::ByPerson, until }));
                }
                Request::Resume => (inputs.notices)(Notice::Pause(Pause::default())),
                _ => {}
            }
        }
    }
}
