//! Starting a program under a *keeper*: `fork(2)` twice, then `execve(2)`.
//!
//! ```text
//! us ── keeper (child subreaper, never execs) ── program ── whatever it starts
//! ```
//!
//! The keeper is a small process of the run's own. It is a child subreaper (`prctl(2)`, `PR_SET_CHILD_SUBREAPER`), so
//! whatever double-forks becomes its child and stays a descendant: *the run is the descendants of the keeper*, whoever
//! else we start meanwhile. It reaps them, so the kernel adds their CPU time and I/O to its own, and it writes one
//! [`Report`] for each to a pipe. When its control pipe closes (because the run is over, or because we died, however
//! that came about) it kills what is left and ends: no process outlives us. Should somebody kill the keeper, the kernel kills
//! the program with it; only what the program had detached from itself is then left.
//!
//! Between `fork` and `execve` only async-signal-safe functions are called (`after_fork`): system calls and arithmetic.
//! All memory is allocated before.

mod after_fork;

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;

use libc::c_char;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Pid;

/// Who a program runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The user.
    pub uid: u32,
    /// The primary group.
    pub gid: u32,
    /// The supplementary groups.
    pub groups: Vec<u32>,
}

/// What to start. Everything is given: nothing is taken from our own environment but the working directory.
#[derive(Debug)]
pub struct Spec<'a> {
    /// The executable, absolute.
    pub path: &'a Path,
    /// The arguments, the name of the program first.
    pub args: &'a [OsString],
    /// The environment, exactly.
    pub env: &'a [(OsString, OsString)],
    /// The working directory; ours if `None`.
    pub cwd: Option<&'a Path>,
    /// Whom to become; nobody else if `None`.
    pub credentials: Option<&'a Credentials>,
    /// Standard input, output and error.
    pub stdio: [BorrowedFd<'a>; 3],
    /// `/dev/null`, open for reading and writing, for the keeper.
    pub null: BorrowedFd<'a>,
    /// Files that get the program's process number in decimal before it executes, such as tracefs' `set_event_pid`.
    pub announce_to: &'a [BorrowedFd<'a>],
    /// An `eventfd(2)` that is set to `CLOCK_MONOTONIC` in nanoseconds, as the last thing before `execve`.
    pub start: BorrowedFd<'a>,
}

/// A program that was started.
#[derive(Debug)]
pub struct Spawned {
    /// The program.
    pub pid: Pid,
    /// The keeper: our child, to be waited for after `control` was closed.
    pub keeper: Pid,
    /// Closing this ends the run.
    pub control: OwnedFd,
    /// A stream of [`Report`]s.
    pub reports: OwnedFd,
}

/// The step between `fork` and the program's first instruction that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// `fork` of the program, or the keeper's own preparations.
    Fork,
    /// A session of its own, or the standard streams.
    Streams,
    /// Writing the process number to the files that wait for it.
    Announce,
    /// Becoming the user.
    Become,
    /// The working directory.
    Cwd,
    /// `execve` itself.
    Exec,
}

/// A program could not be started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A path, argument or variable holds a zero byte, which no program can be given.
    #[error("cannot start {}: {what} holds a zero byte", path.display())]
    ZeroByte {
        /// The program.
        path: PathBuf,
        /// The text, shown with its zero byte escaped.
        what: String,
    },
    /// Pipes or the keeper could not be made.
    #[error("cannot start {}: no process for it could be made: {source}", path.display())]
    Keeper {
        /// The program.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The program's process was made, but could not get as far as the program.
    #[error("cannot start {}: {}: {source}", path.display(), describe(*step))]
    Step {
        /// The program.
        path: PathBuf,
        /// Where it failed.
        step: Step,
        /// Why.
        source: io::Error,
    },
}

const fn describe(step: Step) -> &'static str {
    match step {
        Step::Fork => "no process for it could be made",
        Step::Streams => "its standard streams could not be connected",
        Step::Announce => "the recorder did not take its process number",
        Step::Become => "its process could not become the user it is started for",
        Step::Cwd => "its working directory cannot be entered",
        Step::Exec => "the kernel did not execute it",
    }
}

/// What the keeper writes: 32 bytes, four native integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// The program has this process number. Always the first.
    Forked {
        /// The number.
        pid: i32,
    },
    /// A process of the run ended and was reaped.
    Ended {
        /// Its number.
        pid: i32,
        /// The wait status, as from `waitpid(2)`.
        status: i32,
        /// `CLOCK_MONOTONIC` when it was reaped, in nanoseconds.
        at: u64,
    },
    /// No process of the run is left.
    Empty,
}

impl Report {
    /// The length of a report.
    pub const LEN: usize = 32;

    fn encode(self) -> [u8; Self::LEN] {
        let words: [u64; 4] = match self {
            Self::Forked { pid } => [1, u64::from(pid.cast_unsigned()), 0, 0],
            Self::Ended { pid, status, at } => {
                [2, u64::from(pid.cast_unsigned()), u64::from(status.cast_unsigned()), at]
            }
            Self::Empty => [3, 0, 0, 0],
        };
        let mut bytes = [0; Self::LEN];
        for (slot, word) in bytes.chunks_exact_mut(8).zip(words) {
            slot.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// Reads a report as the keeper wrote it. `None` if no keeper of this version wrote it.
    #[must_use]
    pub fn decode(bytes: &[u8; Self::LEN]) -> Option<Self> {
        let mut words = [0u64; 4];
        for (word, slot) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_ne_bytes(slot.try_into().ok()?);
        }
        let int = |word: u64| u32::try_from(word).ok().map(u32::cast_signed);
        match words[0] {
            1 => Some(Self::Forked { pid: int(words[1])? }),
            2 => Some(Self::Ended { pid: int(words[1])?, status: int(words[2])?, at: words[3] }),
            3 => Some(Self::Empty),
            _ => None,
        }
    }
}

/// Starts a program and returns when it executes.
///
/// # Errors
///
/// If it cannot be started: where and why is in the error, and no process is left.
pub fn spawn(spec: &Spec<'_>) -> Result<Spawned, Error> {
    let keeper_error = |source: io::Error| Error::Keeper { path: spec.path.to_path_buf(), source };
    let image = Image::new(spec)?;
    let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(|e| keeper_error(e.into()));
    let (failure_in, failure_out) = pipe()?;
    let (reports, report_out) = pipe()?;
    let (control_in, control) = pipe()?;
    let plan = KeeperPlan {
        image: &image,
        failure: failure_out.as_raw_fd(),
        reports: report_out.as_raw_fd(),
        control: control_in.as_raw_fd(),
        null: spec.null.as_raw_fd(),
    };
    let keeper = {
        // A signal handler of ours must not run in the keeper: it could write to a pipe that we share.
        let _blocked = BlockedSignals::all();
        // SAFETY: the child calls `keeper_main` alone, which never returns and is async-signal-safe throughout.
        match unsafe { libc::fork() } {
            0 => after_fork::keeper_main(&plan),
            pid => pid,
        }
    };
    let keeper = Pid::from_raw(keeper)
        .filter(|_| keeper > 0)
        .ok_or_else(|| keeper_error(io::Error::last_os_error()))?;
    drop((failure_out, report_out, control_in));

    let failure = read_failure(&failure_in);
    let forked = read_report(&reports);
    match (failure, forked) {
        (None, Some(Report::Forked { pid })) if pid > 0 => {
            let pid = Pid::from_raw(pid).unwrap_or(keeper);
            Ok(Spawned { pid, keeper, control, reports })
        }
        (failure, _) => {
            drop(control);
            wait_for_keeper(keeper);
            let (step, errno) = failure.unwrap_or((Step::Fork, libc::EAGAIN));
            let source = io::Error::from_raw_os_error(errno);
            Err(Error::Step { path: spec.path.to_path_buf(), step, source })
        }
    }
}

/// Waits for a keeper whose control pipe was closed.
pub fn wait_for_keeper(keeper: Pid) {
    // It is our child and nobody else waits for it; if somebody did, there is nothing left to do.
    while let Err(rustix::io::Errno::INTR) =
        rustix::process::waitpid(Some(keeper), rustix::process::WaitOptions::empty())
    {}
}

/// `CLOCK_MONOTONIC` in nanoseconds. Async-signal-safe.
fn monotonic() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid place for the result.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Reads what the program's process wrote on its way, until the pipe closes because it executes.
fn read_failure(pipe: &OwnedFd) -> Option<(Step, i32)> {
    let mut bytes = [0u8; 8];
    read_exact(pipe.as_fd(), &mut bytes)?;
    let (step, errno) = bytes.split_at(4);
    let int = |half: &[u8]| half.try_into().map_or(0, i32::from_ne_bytes);
    let step = match int(step) {
        1 => Step::Streams,
        2 => Step::Announce,
        3 => Step::Become,
        4 => Step::Cwd,
        5 => Step::Exec,
        _ => Step::Fork,
    };
    Some((step, int(errno)))
}

/// Reads the next report; `None` when the keeper is gone.
#[must_use]
pub fn read_report(pipe: &OwnedFd) -> Option<Report> {
    let mut bytes = [0u8; Report::LEN];
    read_exact(pipe.as_fd(), &mut bytes)?;
    Report::decode(&bytes)
}

fn read_exact(fd: BorrowedFd<'_>, mut bytes: &mut [u8]) -> Option<()> {
    while !bytes.is_empty() {
        match rustix::io::read(fd, &mut *bytes) {
            Ok(0) => return None,
            Ok(n) => bytes = bytes.get_mut(n..)?,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    Some(())
}

/// All signals are blocked in this thread while it lives.
struct BlockedSignals(libc::sigset_t);

impl BlockedSignals {
    fn all() -> Self {
        // SAFETY: both sets are plain memory that the calls fill; a thread may always change its own mask.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
            Self(before)
        }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: `self.0` is the mask that the thread had.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, ptr::null_mut()) };
    }
}

/// A [`Spec`] in the form that the kernel takes: built before `fork`, only read after it.
struct Image {
    path: CString,
    argv: PointerList,
    /// `/bin/sh` and the program, for a script without an interpreter line: what a shell would do.
    shell_argv: PointerList,
    envp: PointerList,
    cwd: Option<CString>,
    credentials: Option<Credentials>,
    stdio: [RawFd; 3],
    announce_to: Vec<RawFd>,
    start: RawFd,
}

/// A null-terminated list of C strings, with the strings it points to.
struct PointerList {
    _strings: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl PointerList {
    fn new(strings: Vec<CString>) -> Self {
        let pointers = strings.iter().map(|s| s.as_ptr()).chain([ptr::null()]).collect();
        Self { _strings: strings, pointers }
    }
}

const SHELL: &std::ffi::CStr = c"/bin/sh";

impl Image {
    fn new(spec: &Spec<'_>) -> Result<Self, Error> {
        let c = |text: &OsStr| {
            CString::new(text.as_bytes()).map_err(|_| Error::ZeroByte {
                path: spec.path.to_path_buf(),
                what: text.to_string_lossy().escape_debug().to_string(),
            })
        };
        let path = c(spec.path.as_os_str())?;
        let args = spec.args.iter().map(|a| c(a)).collect::<Result<Vec<_>, _>>()?;
        let env = spec.env.iter().map(|(name, value)| {
            let mut line = name.clone();
            line.push("=");
            line.push(value);
            c(&line)
        });
        let shell = [SHELL.to_owned(), path.clone()].into_iter().chain(args.iter().skip(1).cloned());
        Ok(Self {
            shell_argv: PointerList::new(shell.collect()),
            argv: PointerList::new(args),
            envp: PointerList::new(env.collect::<Result<_, _>>()?),
            cwd: spec.cwd.map(|dir| c(dir.as_os_str())).transpose()?,
            credentials: spec.credentials.cloned(),
            stdio: spec.stdio.map(|fd| fd.as_raw_fd()),
            announce_to: spec.announce_to.iter().map(AsRawFd::as_raw_fd).collect(),
            start: spec.start.as_raw_fd(),
            path,
        })
    }
}

struct KeeperPlan<'a> {
    image: &'a Image,
    failure: RawFd,
    reports: RawFd,
    control: RawFd,
    null: RawFd,
}

#[cfg(test)]
#[path = "spawn_tests.rs"]
mod tests;
