//! The thread of the launches.

use headstart_daemon::service::launches::{Inputs, LaunchesError, run};
use tokio::sync::oneshot;

/// How the launches ended.
pub(crate) type Ended = Result<(), LaunchesError>;

/// Starts the thread. What it gives tells that it has ended.
pub(crate) fn start(inputs: Inputs) -> std::io::Result<oneshot::Receiver<Ended>> {
    let (sender, receiver) = oneshot::channel();
    let work = move || {
        // Whoever waits no longer has given up waiting.
        let _ = sender.send(run(inputs));
    };
    std::thread::Builder::new().name("launches".into()).spawn(work)?;
    Ok(receiver)
}
