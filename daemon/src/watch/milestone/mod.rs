//! When a start is over: first window, exit, or settled.
//!
//! [`Watcher::prepare`] before the start remembers what is there already; [`Watcher::wait`] after it says how the start
//! came out. The moments are taken by threads that block on what they watch (the X server, the compositor, the program's
//! protocol log, the keeper's reports), so nothing is rounded to a timer; the timer in `wait` only looks for the deadline
//! and for Ctrl-C.

mod judge;
pub mod outcome;
mod protocol_log;
pub mod settled;
mod wayland;
mod x11;
mod xauth;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use headstart_shared::run::Milestone;
use headstart_shared::units::Nanos;

use self::judge::{Owner, Verdict, judge};
pub use self::outcome::{Evidence, HandedTo, Outcome, Ownership};
use self::protocol_log::ProtocolLog;
use self::settled::{Quiet, Sample, Settled};
use super::desktop::Entry;
use super::launch::{Command, Ended, Output, Run, RunEvent};
use super::processes::{self, ProcessKey};
use super::session::Session;
use super::start::Monotonic;
use crate::roots::Roots;

/// How often the deadline and the cancellation are looked at, and settling is sampled.
const TICK: Duration = Duration::from_millis(20);
/// A program that ended well without a window may have had another process started (over the bus, say): how long that
/// one has to show a window before the start counts as ended.
const PROXY_WAIT: Duration = Duration::from_secs(3);
/// How long after the end of a run a window of it may still be in the pipe from the X server.
const PIPE_WAIT: Duration = Duration::from_millis(100);

/// What to wait for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// The first window.
    Window,
    /// The end of the program.
    Exit,
    /// Quiet.
    Settled(Quiet),
}

impl Goal {
    /// The milestone that is reached.
    #[must_use]
    pub fn milestone(self) -> Milestone {
        match self {
            Self::Window => Milestone::FirstWindow,
            Self::Exit => Milestone::Exit,
            Self::Settled(_) => Milestone::Settled,
        }
    }
}

/// By what an application is known to others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Window classes and application IDs that its windows may have, in lower case.
    names: Vec<String>,
    /// Whether these come from a desktop entry: else they are a guess.
    sure: bool,
    /// The program, to recognise a running instance by.
    program: PathBuf,
}

impl Hints {
    /// Of an application or a plain command that executes `program`.
    #[must_use]
    pub fn of(entry: Option<&Entry>, program: &Path) -> Self {
        let base = program.file_name().map(|name| name.to_string_lossy().into_owned());
        let from_entry = entry.into_iter().flat_map(|entry| {
            let last = entry.id.rsplit('.').next().map(str::to_owned);
            [entry.startup_wm_class.clone(), Some(entry.id.clone()), last, entry.program()]
        });
        let mut names: Vec<String> = from_entry.chain([base]).flatten().map(|n| n.to_lowercase()).collect();
        names.sort_unstable();
        names.dedup();
        Self { names, sure: entry.is_some(), program: program.to_path_buf() }
    }

    /// The same, with one more window class that a person named.
    #[must_use]
    pub fn or_class(mut self, class: &str) -> Self {
        self.names.push(class.to_lowercase());
        self
    }

    /// Whether a window called so, by its class or application ID, may be one of its.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        !name.is_empty() && self.names.contains(&name.to_lowercase())
    }
}

/// No milestone can be watched for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The session has no display.
    #[error(
        "no display: neither DISPLAY nor WAYLAND_DISPLAY is set; start it from a desktop session, or time another milestone"
    )]
    NoDisplay,
    /// There is one, but it cannot be watched.
    #[error("cannot watch the display for windows: {0}")]
    Display(String),
}

/// Something seen by one of the threads.
#[derive(Debug)]
enum Signal {
    Run(RunEvent),
    /// A window of the X server is viewable, or what is known of a viewable one changed.
    Window(Monotonic, x11::Facts),
    /// The compositor has a new window with this application ID.
    Toplevel(Monotonic, String),
    /// The program itself showed a surface.
    Surface(Monotonic),
}

/// Counts pages touched so far, for [`Goal::Settled`].
pub type PageCounter = Box<dyn FnMut() -> Option<u64> + Send>;

/// Watches one start.
pub struct Watcher {
    goal: Goal,
    hints: Hints,
    roots: Roots,
    sender: Sender<Signal>,
    signals: Receiver<Signal>,
    x11: Option<x11::Listener>,
    wayland: Option<wayland::Listener>,
    follow_log: bool,
    /// Processes that were there before, and those of them that run the program.
    before: BTreeSet<ProcessKey>,
    running: Vec<ProcessKey>,
    pages: Option<PageCounter>,
}

impl std::fmt::Debug for Watcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watcher")
            .field("goal", &self.goal)
            .field("hints", &self.hints)
            .finish_non_exhaustive()
    }
}

impl Watcher {
    /// Gets ready to watch a start in a session: remembers which windows and which instances of the program are there.
    ///
    /// # Errors
    ///
    /// For [`Goal::Window`], if the session has no display or it cannot be watched.
    pub fn prepare(goal: Goal, session: &Session, hints: Hints, roots: &Roots) -> Result<Self, Error> {
        let (sender, signals) = mpsc::channel();
        let running = processes::running_instances(roots, &hints.program, session.credentials.uid);
        let mut watcher = Self {
            goal,
            hints,
            roots: roots.clone(),
            sender,
            signals,
            x11: None,
            wayland: None,
            follow_log: false,
            before: processes::snapshot(roots),
            running,
            pages: None,
        };
        if goal == Goal::Window {
            watcher.watch_displays(session)?;
        }
        Ok(watcher)
    }

    fn watch_displays(&mut self, session: &Session) -> Result<(), Error> {
        let mut failures = Vec::new();
        let wayland_socket = wayland::socket(session);
        if let Some(display) = session.var("DISPLAY") {
            match x11::Listener::start(display, session, self.sender.clone()) {
                Ok(listener) => self.x11 = Some(listener),
                Err(failure) => failures.push(failure),
            }
        }
        if let Some(socket) = &wayland_socket {
            match wayland::Listener::start(socket, self.sender.clone()) {
                Ok(listener) => self.wayland = listener,
                Err(failure) => failures.push(failure),
            }
            // Without a list of windows, or without knowing what the window is called in it, the program's own log tells.
            let reachable = failures.iter().all(|f| !f.starts_with(wayland::FAILURE));
            self.follow_log = reachable && (self.wayland.is_none() || !self.hints.sure);
        }
        match (self.x11.is_some() || self.wayland.is_some() || self.follow_log, failures.is_empty()) {
            (true, _) => Ok(()),
            (false, true) => Err(Error::NoDisplay),
            (false, false) => Err(Error::Display(failures.join("; "))),
        }
    }

    /// Counts touched pages by `pages` when waiting for quiet; without, only CPU and disk count.
    pub fn count_pages(&mut self, pages: PageCounter) {
        self.pages = Some(pages);
    }

    /// Changes a command as far as watching it needs that: where only the program's own protocol log tells when it shows
    /// its window, `WAYLAND_DEBUG=client` is set and its error output captured. Whether that was needed.
    pub fn configure(&self, command: &mut Command) -> bool {
        if !self.follow_log {
            return false;
        }
        command.env.insert("WAYLAND_DEBUG".into(), "client".into());
        command.stderr = Output::Capture;
        let log = Mutex::new(ProtocolLog::default());
        let sender = self.sender.clone();
        command.stderr_lines = Some(Arc::new(move |line, at| {
            let step = log.lock().unwrap_or_else(PoisonError::into_inner).line(line);
            if step.shown {
                // Nobody listens any more when the start is over.
                let _ = sender.send(Signal::Surface(at));
            }
            step.protocol
        }));
        true
    }

    /// Waits for the milestone, at most until `deadline` after exec.
    pub fn wait(&mut self, run: &mut Run, deadline: Duration, cancel: &AtomicBool) -> Outcome {
        let sender = self.sender.clone();
        run.observe(Box::new(move |event| {
            let _ = sender.send(Signal::Run(event));
        }));
        let mut wait = Wait::new(self.goal, run.started(), deadline);
        loop {
            if cancel.load(Ordering::Relaxed) {
                return Outcome::Cancelled;
            }
            let signal = match self.signals.recv_timeout(wait.patience()) {
                Ok(signal) => Some(signal),
                Err(RecvTimeoutError::Timeout) => None,
                // We hold a sender ourselves.
                Err(RecvTimeoutError::Disconnected) => return Outcome::Cancelled,
            };
            let outcome = match signal {
                Some(signal) => self.take(&mut wait, run, signal),
                None => self.tick(&mut wait, run),
            };
            if let Some(outcome) = outcome {
                return outcome;
            }
        }
    }

    fn take(&self, wait: &mut Wait, run: &Run, signal: Signal) -> Option<Outcome> {
        match (self.goal, signal) {
            (Goal::Exit, Signal::Run(RunEvent::Ended(ended))) => {
                return Some(wait.reached(ended.at, Evidence::Exit(ended.status)));
            }
            (_, Signal::Run(RunEvent::Ended(ended))) => wait.ended = Some(ended),
            (_, Signal::Run(RunEvent::Empty)) => {
                let proxied = wait.ended.is_some_and(|e| e.status.success()) && self.instance().is_none();
                let patience = if proxied && self.goal == Goal::Window { PROXY_WAIT } else { PIPE_WAIT };
                wait.over_at = Some(Monotonic::now().after(patience));
            }
            (Goal::Window, Signal::Window(at, facts)) => return self.window(wait, run, at, &facts),
            (Goal::Window, Signal::Toplevel(at, app_id)) if self.hints.matches(&app_id) => {
                return Some(wait.reached(at, Evidence::Toplevel { app_id }));
            }
            // The list does not say whose a window is: what did not match may explain why none counted.
            (Goal::Window, Signal::Toplevel(_, app_id)) => {
                wait.note(format!("a window of the application ID {app_id:?} appeared and was passed over"));
            }
            (Goal::Window, Signal::Surface(at)) => {
                return Some(wait.reached(at, Evidence::ProtocolLog));
            }
            _ => {}
        }
        None
    }

    fn window(&self, wait: &mut Wait, run: &Run, at: Monotonic, facts: &x11::Facts) -> Option<Outcome> {
        let owner = self.owner(run, facts);
        match judge(facts, owner, &self.hints) {
            Verdict::Counts(by) => {
                let evidence = Evidence::Window { id: facts.id, title: facts.title.clone(), by };
                Some(wait.reached(at, evidence))
            }
            Verdict::HandedOver if self.x11.is_some() => {
                Some(Outcome::HandedOver { to: HandedTo { pid: facts.pid, window: facts.title.clone() } })
            }
            Verdict::Passed(why) => {
                wait.note(why.to_owned());
                None
            }
            Verdict::HandedOver | Verdict::Foreign => None,
        }
    }

    fn owner(&self, run: &Run, facts: &x11::Facts) -> Owner {
        let Some(pid) = facts.pid else { return Owner::Unknown };
        match processes::key_of(&self.roots, pid) {
            Some(_) if run.contains(pid) => Owner::Run,
            Some(key) if self.before.contains(&key) => Owner::Earlier,
            Some(_) => Owner::Later,
            // It ended since: of the run if the keeper saw it, else nobody can tell.
            None if run.reaped(pid) => Owner::Run,
            None => Owner::Unknown,
        }
    }

    /// Nothing was seen: the deadline, the end of the run, or the next sample.
    fn tick(&mut self, wait: &mut Wait, run: &Run) -> Option<Outcome> {
        let now = Monotonic::now();
        if wait.over_at.is_some_and(|over| now >= over) {
            return Some(self.over(wait, run));
        }
        if let Some(settled) = &mut wait.settled
            && wait.over_at.is_none()
        {
            let account = run.account();
            let pages = self.pages.as_mut().and_then(|count| count());
            let at = Monotonic::now().since(run.started());
            if let Some(began) = settled.sample(Sample { at, pages, read: account.read, cpu: account.cpu }) {
                return Some(Outcome::Reached {
                    milestone: Milestone::Settled,
                    at: began,
                    by: Evidence::Quiet,
                });
            }
        }
        (now >= wait.deadline).then(|| wait.too_late(run))
    }

    /// No process of the run is left, and no window came.
    fn over(&self, wait: &Wait, run: &Run) -> Outcome {
        let status = wait.ended.map_or_else(ExitStatus::default, |ended| ended.status);
        match self.instance() {
            Some(to) if status.success() && self.goal == Goal::Window => Outcome::HandedOver { to },
            _ => Outcome::ExitedEarly {
                status,
                after: wait.ended.map_or_else(|| run.age(), |ended| ended.at.since(wait.started)),
                last_words: run.last_words(),
                notes: wait.notes.clone(),
            },
        }
    }

    /// An instance that was there before the start and still is.
    fn instance(&self) -> Option<HandedTo> {
        let lives = |key: &&ProcessKey| processes::key_of(&self.roots, key.pid) == Some(**key);
        let process = self.running.iter().find(lives).map(|key| key.pid);
        let title = self.x11.as_ref().and_then(|x11| x11.earlier_window(&self.hints));
        let listed = || self.wayland.as_ref().and_then(|w| w.earlier_window(&self.hints));
        let window = title.or_else(listed);
        (process.is_some() || window.is_some())
            .then(|| HandedTo { pid: process, window: window.unwrap_or_default() })
    }

    /// Asks the run's windows to close, as their close buttons do. How many were asked: if none, [`Run::end`] is the only
    /// way.
    #[must_use]
    pub fn close_windows(&self, run: &Run) -> usize {
        let x11 = self.x11.as_ref().map_or(0, |x11| {
            x11.close_windows(|facts| {
                matches!(judge(facts, self.owner(run, facts), &self.hints), Verdict::Counts(_))
            })
        });
        x11 + self.wayland.as_ref().map_or(0, |wayland| wayland.close_windows(&self.hints))
    }
}

/// The state of one wait.
struct Wait {
    milestone: Milestone,
    started: Monotonic,
    deadline: Monotonic,
    ended: Option<Ended>,
    /// The run has no process left: when to give up hoping for a window.
    over_at: Option<Monotonic>,
    settled: Option<Settled>,
    notes: Vec<String>,
}

impl Wait {
    fn new(goal: Goal, started: Monotonic, deadline: Duration) -> Self {
        let settled = match goal {
            Goal::Settled(quiet) => Some(Settled::new(quiet)),
            Goal::Window | Goal::Exit => None,
        };
        Self {
            milestone: goal.milestone(),
            started,
            deadline: started.after(deadline),
            ended: None,
            over_at: None,
            settled,
            notes: Vec::new(),
        }
    }

    fn patience(&self) -> Duration {
        let next = self.over_at.map_or(self.deadline, |over| over.min(self.deadline));
        Duration::from(next.since(Monotonic::now())).min(TICK)
    }

    fn reached(&self, at: Monotonic, by: Evidence) -> Outcome {
        Outcome::Reached { milestone: self.milestone, at: at.since(self.started), by }
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn too_late(&self, run: &Run) -> Outcome {
        let after = Nanos(self.deadline.0) - Nanos(self.started.0);
        Outcome::TooLate {
            milestone: self.milestone,
            after,
            running: !run.is_empty(),
            last_words: run.last_words(),
            notes: self.notes.clone(),
        }
    }
}

/// Whether a session has a display at all, so that [`Goal::Window`] makes sense.
#[must_use]
pub fn has_display(session: &Session) -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY"].into_iter().any(|name| session.var(name).is_some())
}

#[cfg(test)]
mod tests;
