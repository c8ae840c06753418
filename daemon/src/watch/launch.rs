//! Starting a program for a person, and ending it with all it started.
//!
//! A [`Run`] ends its processes when it is dropped, and its keeper does so when we die: nothing is left behind.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use headstart_shared::units::Nanos;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, waitpid};

pub use super::output::{LineObserver, Output};
use super::output::{Stream, Tail};
use super::processes::{self, Account, Process};
use super::session::{Environment, Session};
use super::start::{Monotonic, StartEvent};
use super::watched::Watched;
use crate::roots::Roots;
use crate::sys::spawn::{self, Credentials, Report, Spec};

/// How long killed processes may take to be gone. Longer is a process that hangs in the kernel, on a dead network
/// mount for instance.
const KILL_WAIT: Duration = Duration::from_secs(5);

/// What to start, and how.
#[derive(Clone)]
pub struct Command {
    /// The program, absolute.
    pub program: PathBuf,
    /// All arguments, the name of the program first.
    pub args: Vec<OsString>,
    /// The environment, exactly.
    pub env: Environment,
    /// The working directory; ours if `None`.
    pub cwd: Option<PathBuf>,
    /// Whom to become; nobody else if `None`.
    pub credentials: Option<Credentials>,
    /// Standard output.
    pub stdout: Output,
    /// Standard error.
    pub stderr: Output,
    /// Sees the lines of standard error, if that is captured.
    pub stderr_lines: Option<LineObserver>,
}

impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The environment may hold secrets.
        f.debug_struct("Command")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("cwd", &self.cwd)
            .field("credentials", &self.credentials)
            .finish_non_exhaustive()
    }
}

impl Command {
    /// A program as the person of `session` would start it: as them, in their environment, output captured.
    /// `args` are all arguments, the name of the program first.
    #[must_use]
    pub fn new(session: &Session, program: PathBuf, args: Vec<OsString>) -> Self {
        Self {
            program,
            args,
            env: session.env.clone(),
            cwd: None,
            credentials: session.elevated.then(|| session.credentials.clone()),
            stdout: Output::Capture,
            stderr: Output::Capture,
            stderr_lines: None,
        }
    }
}

/// What happens in the program's own process right before it executes.
#[derive(Debug)]
pub struct Gate<'a> {
    /// The event that everything that begins with the start waits for.
    pub start: Arc<StartEvent>,
    /// Files that get its process number in decimal, such as tracefs' `set_event_pid`.
    pub announce_to: Vec<BorrowedFd<'a>>,
}

/// The program could not be started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It did not execute.
    #[error(transparent)]
    Spawn(#[from] spawn::Error),
    /// Its standard streams could not be made.
    #[error("cannot start {}: {what}: {source}", program.display())]
    Streams {
        /// The program.
        program: PathBuf,
        /// What could not be opened.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}

/// How and when the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// How.
    pub status: ExitStatus,
    /// When it was reaped.
    pub at: Monotonic,
}

/// What a run tells those who watch it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEvent {
    /// The program itself ended; what it started may still run.
    Ended(Ended),
    /// No process of the run is left.
    Empty,
}

/// Sees what happens to a run.
pub type RunObserver = Box<dyn Fn(RunEvent) + Send>;

/// What the keeper reported so far.
#[derive(Default)]
struct Progress {
    ended: Option<Ended>,
    empty: bool,
    reaped: BTreeSet<i32>,
    observers: Vec<RunObserver>,
}

impl Progress {
    fn tell(&self, event: RunEvent) {
        for observer in &self.observers {
            observer(event);
        }
    }
}

/// A program that was started, and everything it starts.
pub struct Run {
    roots: Roots,
    pid: Pid,
    keeper: Pid,
    control: Option<OwnedFd>,
    started: Monotonic,
    progress: Arc<Watched<Progress>>,
    tail: Arc<Watched<Tail>>,
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("pid", &self.pid).field("started", &self.started).finish_non_exhaustive()
    }
}

/// What it took to end a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// Asked to end (SIGTERM).
    pub asked: Vec<Process>,
    /// Killed (SIGKILL), because they did not end in time or there was no time.
    pub killed: Vec<Process>,
    /// Still there: what we may not signal, or what hangs in the kernel.
    pub left: Vec<Process>,
    /// What the whole run used. Complete if nothing is left.
    pub account: Account,
}

/// Starts a program. Returns when it executes.
///
/// # Errors
///
/// If it cannot be started. Whoever waits for the start is let go, and no process is left.
pub fn launch(command: &Command, gate: &Gate<'_>, roots: &Roots) -> Result<Run, Error> {
    let launched = spawn_with_streams(command, gate, roots);
    if launched.is_err() {
        gate.start.abandon();
    }
    launched
}

fn spawn_with_streams(command: &Command, gate: &Gate<'_>, roots: &Roots) -> Result<Run, Error> {
    let failed = |what, source| Error::Streams { program: command.program.clone(), what, source };
    let null = OpenOptions::new().read(true).write(true).open(roots.dev.join("null"));
    let null = null.map_err(|source| failed("the null device", source))?;
    let stdout = Stream::new(command.stdout).map_err(|e| failed("standard output", e))?;
    let stderr = Stream::new(command.stderr).map_err(|e| failed("standard error", e))?;
    let env: Vec<_> = command.env.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    let (own_out, own_err) = (io::stdout(), io::stderr());
    let spawned = spawn::spawn(&Spec {
        path: &command.program,
        args: &command.args,
        env: &env,
        cwd: command.cwd.as_deref(),
        credentials: command.credentials.as_ref(),
        stdio: [
            null.as_fd(),
            stdout.child_end(null.as_fd(), own_out.as_fd()),
            stderr.child_end(null.as_fd(), own_err.as_fd()),
        ],
        null: null.as_fd(),
        announce_to: &gate.announce_to,
        start: gate.start.as_fd(),
    })?;
    let tail = Arc::default();
    stdout.follow(&tail, None);
    stderr.follow(&tail, command.stderr_lines.clone());
    let progress = Arc::default();
    follow_reports(spawned.reports, spawned.pid, &progress);
    Ok(Run {
        roots: roots.clone(),
        pid: spawned.pid,
        keeper: spawned.keeper,
        control: Some(spawned.control),
        // It was written before the program executed, and spawning returned after.
        started: gate.start.at().unwrap_or_else(Monotonic::now),
        progress,
        tail,
    })
}

fn follow_reports(reports: OwnedFd, program: Pid, progress: &Arc<Watched<Progress>>) {
    let progress = Arc::clone(progress);
    let program = program.as_raw_nonzero().get();
    thread::spawn(move || {
        while let Some(report) = spawn::read_report(&reports) {
            let mut now = progress.lock();
            if let Report::Ended { pid, .. } = report {
                now.reaped.insert(pid);
            }
            match report {
                // The first of this number is the program; a later one may have been given its number again.
                Report::Ended { pid, status, at } if pid == program && now.ended.is_none() => {
                    let ended = Ended { status: ExitStatus::from_raw(status), at: Monotonic(at) };
                    now.ended = Some(ended);
                    now.tell(RunEvent::Ended(ended));
                }
                Report::Empty => {
                    now.empty = true;
                    now.tell(RunEvent::Empty);
                }
                Report::Ended { .. } | Report::Forked { .. } => {}
            }
            drop(now);
            progress.changed.notify_all();
        }
        // A keeper that ends without a word was killed, and the program with it.
        let mut now = progress.lock();
        if !now.empty {
            now.empty = true;
            now.tell(RunEvent::Empty);
        }
        drop(now);
        progress.changed.notify_all();
    });
}

impl Run {
    /// The program's process number.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// The process that all of the run descend from, itself not of the run.
    #[must_use]
    pub fn keeper(&self) -> i32 {
        self.keeper.as_raw_nonzero().get()
    }

    /// When it executed.
    #[must_use]
    pub fn started(&self) -> Monotonic {
        self.started
    }

    /// The time since it executed.
    #[must_use]
    pub fn age(&self) -> Nanos {
        Monotonic::now().since(self.started)
    }

    /// How the program itself ended, if it did.
    #[must_use]
    pub fn ended(&self) -> Option<Ended> {
        self.progress.lock().ended
    }

    /// Whether no process of the run is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.progress.lock().empty
    }

    /// Tells `observer` what happens, beginning with what already did.
    pub fn observe(&self, observer: RunObserver) {
        let mut progress = self.progress.lock();
        if let Some(ended) = progress.ended {
            observer(RunEvent::Ended(ended));
        }
        if progress.empty {
            observer(RunEvent::Empty);
        }
        progress.observers.push(observer);
    }

    /// The processes of the run that live, or have ended and are not reaped.
    #[must_use]
    pub fn processes(&self) -> Vec<Process> {
        processes::descendants(&self.roots, self.keeper())
    }

    /// Whether a process is of the run.
    #[must_use]
    pub fn contains(&self, pid: i32) -> bool {
        processes::is_descendant(&self.roots, self.keeper(), pid)
    }

    /// Whether a process of this number was of the run and ended.
    #[must_use]
    pub fn reaped(&self, pid: i32) -> bool {
        self.progress.lock().reaped.contains(&pid)
    }

    /// What the run used so far, processes that ended included: see [`processes::account`].
    #[must_use]
    pub fn account(&self) -> Account {
        processes::account(&self.roots, self.keeper())
    }

    /// The end of the captured output. Of a run that is over, all of it is waited for.
    #[must_use]
    pub fn last_words(&self) -> String {
        if self.is_empty() {
            self.tail.wait(Duration::from_millis(500), |tail| tail.open_streams == 0);
        }
        let mut tail = self.tail.lock();
        String::from_utf8_lossy(tail.bytes.make_contiguous()).trim().to_owned()
    }

    /// Ends every process of the run: asks (SIGTERM), waits up to `grace`, kills (SIGKILL). With no grace, kills.
    /// Returns at once if none is left; a second call does nothing.
    pub fn end(&mut self, grace: Duration) -> Ending {
        let mut ending = Ending::default();
        if self.control.is_none() {
            return ending;
        }
        if !self.is_empty() && !grace.is_zero() {
            ending.asked = self.signal_all(Signal::TERM);
            // A stopped process would not hear it.
            self.signal_all(Signal::CONT);
            self.progress.wait(grace, |progress| progress.empty);
        }
        let deadline = Monotonic::now().after(KILL_WAIT);
        while !self.is_empty() && Monotonic::now() < deadline {
            for process in self.signal_all(Signal::KILL) {
                if ending.killed.iter().all(|known| known.key != process.key) {
                    ending.killed.push(process);
                }
            }
            self.progress.wait(Duration::from_millis(20), |progress| progress.empty);
        }
        ending.account = self.account();
        // The keeper kills what escaped meanwhile, and ends.
        self.control = None;
        self.wait_for_keeper();
        ending.left = ending
            .asked
            .iter()
            .chain(&ending.killed)
            .filter(|process| processes::key_of(&self.roots, process.key.pid) == Some(process.key))
            .cloned()
            .collect();
        ending.left.sort_by_key(|process| process.key);
        ending.left.dedup_by_key(|process| process.key);
        ending
    }

    /// Sends a signal to every living process of the run; which took it.
    fn signal_all(&self, signal: Signal) -> Vec<Process> {
        let mut processes = self.processes();
        processes.retain(|process| !process.zombie && self.signal(process, signal));
        processes
    }

    /// A process is held by a descriptor before its start time is compared, so no other one gets the signal.
    fn signal(&self, process: &Process, signal: Signal) -> bool {
        let Some(pid) = Pid::from_raw(process.key.pid) else { return false };
        let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
        processes::key_of(&self.roots, process.key.pid) == Some(process.key)
            && pidfd_send_signal(held, signal).is_ok()
    }

    fn wait_for_keeper(&self) {
        // It may have been stopped, by its own program for one. Nobody but us reaps it, so the number is its own.
        let _ = rustix::process::kill_process(self.keeper, Signal::CONT);
        let deadline = Monotonic::now().after(KILL_WAIT);
        while Monotonic::now() < deadline {
            match waitpid(Some(self.keeper), WaitOptions::NOHANG) {
                Ok(None) | Err(rustix::io::Errno::INTR) => thread::sleep(Duration::from_millis(1)),
                Ok(Some(_)) | Err(_) => return,
            }
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.end(Duration::ZERO);
    }
}

#[cfg(test)]
#[path = "launch_tests.rs"]
mod tests;
