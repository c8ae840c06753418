//! One start: launched, watched until its milestone, and ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use headstart_shared::units::Bytes;

use super::subject::Subject;
use crate::mounts::Mounts;
use crate::plan::Plan;
use crate::recording::{Backend, Recording};
use crate::replay::{self, Gate, Replay, ReplayError};
use crate::roots::Roots;
use crate::sys::identity::User;
use crate::trace::recorder::{RecordError, Recorded, Recorder};
use crate::watch::launch::{self, Ending, Run, launch};
use crate::watch::milestone::{self, Goal, Outcome, Watcher};
use crate::watch::session::Session;
use crate::watch::start::StartEvent;

/// How long windows that were asked to close, and then processes that were asked to end, may take.
const GRACE: Duration = Duration::from_secs(2);

/// A start that could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The program could not be started.
    #[error(transparent)]
    Launch(#[from] launch::Error),
    /// Its milestone cannot be watched for.
    #[error(transparent)]
    Watch(#[from] milestone::Error),
    /// It cannot be recorded.
    #[error("cannot record the start: {0}")]
    Record(#[from] RecordError),
    /// It cannot be prefetched.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// No descriptor to be had.
    #[error("cannot make the event that a start begins with: {0}; are open files limited here?")]
    Event(#[source] std::io::Error),
    /// The table of mounts cannot be read.
    #[error(transparent)]
    Mounts(#[from] crate::mounts::MountsError),
}

/// What all starts of a comparison share.
#[derive(Debug)]
pub struct Stage<'a> {
    /// What is started.
    pub subject: &'a Subject,
    /// For whom.
    pub session: &'a Session,
    /// When a start is over.
    pub goal: Goal,
    /// How long it may take.
    pub deadline: Duration,
    /// How long the program is left alone after its milestone, so that a replay and a recording are whole.
    pub linger: Duration,
    /// The kernel's file systems.
    pub roots: &'a Roots,
    /// Stops everything.
    pub cancel: &'a AtomicBool,
}

/// What is done beside one start.
#[derive(Debug, Default)]
pub struct Beside {
    /// Read ahead by these plans, from the start on.
    pub plans: Option<Vec<Plan>>,
    /// Record it in this way.
    pub record: Option<Backend>,
}

/// One start as it was observed.
#[derive(Debug)]
pub struct Started {
    /// How it came out.
    pub outcome: Outcome,
    /// Bytes that its processes had read from a drive by the milestone.
    pub read: Option<Bytes>,
    /// What was read ahead.
    pub replay: Option<replay::Account>,
    /// What it touched.
    pub recording: Option<Recording>,
    /// What it took to end it.
    pub ending: Ending,
}

impl Stage<'_> {
    /// Makes one start. When this returns, none of its processes is left.
    ///
    /// # Errors
    /// When it could not be made at all. One that went wrong is an [`Outcome`].
    pub fn start(&self, beside: Beside) -> Result<Started, StartError> {
        let event = Arc::new(StartEvent::new().map_err(StartError::Event)?);
        let mut watcher = Watcher::prepare(self.goal, self.session, self.subject.hints.clone(), self.roots)?;
        let prefetched = beside.plans.is_some();
        let replay = beside.plans.map(|plans| self.replay(plans, &event)).transpose()?;
        let recorder = beside.record.map(|backend| Recorder::prepare(backend, self.roots)).transpose()?;
        if let Some(pages) = recorder.as_ref().and_then(Recorder::counter) {
            watcher.count_pages(pages);
        }
        let mut command = self.subject.command(self.session);
        watcher.configure(&mut command);
        let announce_to = recorder.as_ref().map(Recorder::announce_to).unwrap_or_default();
        let mut run = launch(&command, &launch::Gate { start: event, announce_to }, self.roots)?;
        let outcome = watcher.wait(&mut run, self.deadline, self.cancel);
        let read = run.account().read;
        if matches!(outcome, Outcome::Reached { .. }) {
            self.linger(|| run.is_empty() && replay.as_ref().is_none_or(Replay::is_done));
        }
        let recording = recorder.map(|recorder| recorder.finish(recorded(&run, prefetched))).transpose();
        let ending = end(&watcher, &mut run);
        let replay = replay.map(|replay| {
            if !replay.is_done() {
                replay.stopper().stop();
            }
            replay.finish()
        });
        Ok(Started { outcome, read, replay, recording: recording?, ending })
    }

    fn replay(&self, plans: Vec<Plan>, event: &StartEvent) -> Result<Replay, StartError> {
        let trigger = event.as_fd().try_clone_to_owned().map_err(StartError::Event)?;
        let gate = Gate::opened_by(trigger).map_err(StartError::Event)?;
        let user = self.session.elevated.then(|| user(self.session));
        let options = replay::Options { roots: self.roots.clone(), user, ..replay::Options::default() };
        Ok(Replay::prepare(plans, &Mounts::of(self.roots, None)?, &gate, options)?)
    }

    /// Leaves the program and the replay alone for a while, or until nothing is left to be waited for.
    fn linger(&self, is_over: impl Fn() -> bool) {
        let step = Duration::from_millis(20);
        let mut left = self.linger;
        while !left.is_zero() && !self.cancel.load(Ordering::Relaxed) && !is_over() {
            std::thread::sleep(left.min(step));
            left = left.saturating_sub(step);
        }
    }
}

/// The person of a session, as files are opened for them.
#[must_use]
pub fn user(session: &Session) -> User {
    let who = &session.credentials;
    User { uid: who.uid, gid: who.gid, groups: who.groups.clone() }
}

fn recorded(run: &Run, prefetched: bool) -> Recorded {
    Recorded { started: run.started(), keeper: run.keeper(), prefetched }
}

/// Ends a run as a person would, by closing its windows, then by asking, then by force.
fn end(watcher: &Watcher, run: &mut Run) -> Ending {
    if watcher.close_windows(run) > 0 {
        let step = Duration::from_millis(20);
        let mut left = GRACE;
        while !run.is_empty() && !left.is_zero() {
            std::thread::sleep(step);
            left = left.saturating_sub(step);
        }
    }
    run.end(GRACE)
}
