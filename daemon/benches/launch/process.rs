//! Child processes that never outlive the benchmark, however it ends.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

const TICK: Duration = Duration::from_millis(10);

/// Set by the first SIGINT or SIGTERM; everything that waits looks at it.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Takes over both signals.
    pub(crate) fn catch() -> Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&flag)).context("cannot watch for signals")?;
        }
        Ok(Self(flag))
    }

    /// Fails once a signal has come.
    pub(crate) fn check(&self) -> Result<()> {
        ensure!(!self.0.load(Ordering::Relaxed), "interrupted");
        Ok(())
    }

    /// Sleeps, unless a signal comes.
    pub(crate) fn sleep(&self, span: Duration) -> Result<()> {
        let end = Instant::now() + span;
        while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            self.check()?;
            thread::sleep(left.min(TICK));
        }
        self.check()
    }
}

/// A command whose process the kernel kills when this one dies.
pub(crate) fn bound(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program).stdin(Stdio::null());
    command
}

/// A child process, ended when dropped: asked first, then killed.
#[derive(Debug)]
pub(crate) struct Running {
    name: String,
    child: Child,
    patience: Duration,
}

impl Running {
    /// Starts a command.
    pub(crate) fn start(name: &str, command: &mut Command) -> Result<Self> {
        let child = command.spawn().with_context(|| format!("cannot start {name}: is it installed?"))?;
        Ok(Self { name: name.to_owned(), child, patience: Duration::from_secs(2) })
    }

    /// Starts a command as the leader of a process group of its own, which ends with it.
    pub(crate) fn start_group(name: &str, command: &mut Command) -> Result<Self> {
        Self::start(name, command.process_group(0))
    }

    /// Gives it so long to end when it is asked to.
    pub(crate) fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The process itself.
    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Whether it has ended, and how.
    pub(crate) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self, interrupt: &Interrupt) -> Result<ExitStatus> {
        loop {
            if let Some(status) = self.ended().with_context(|| format!("lost {}", self.name))? {
                return Ok(status);
            }
            interrupt.sleep(TICK)?;
        }
    }

    /// Ends it and everything in its process group, if it leads one.
    pub(crate) fn end(&mut self) {
        let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) else { return };
        let end = Instant::now() + self.patience;
        let signal = |signal| {
            let _ = kill_process(pid, signal);
            let _ = kill_process_group(pid, signal);
        };
        if matches!(self.ended(), Ok(None)) {
            signal(Signal::TERM);
            while matches!(self.ended(), Ok(None)) && Instant::now() < end {
                thread::sleep(TICK);
            }
        }
        if matches!(self.ended(), Ok(None)) {
            signal(Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// Runs a command to its end, its output on the terminal; a failure is an error.
pub(crate) fn run(name: &str, command: &mut Command, interrupt: &Interrupt) -> Result<()> {
    let status = Running::start(name, command)?.wait(interrupt)?;
    ensure!(status.success(), "{name} failed: {status}");
    Ok(())
}

/// Kills every process whose root directory is `root`, and waits until they are gone.
pub(crate) fn end_inside(root: &Path) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let inside = processes_inside(root)?;
        if inside.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("processes in {} do not end: {inside:?}", root.display());
        }
        for pid in inside {
            let _ = kill_process(pid, Signal::KILL);
        }
        thread::sleep(TICK);
    }
}

fn processes_inside(root: &Path) -> Result<Vec<Pid>> {
    let listing = std::fs::read_dir("/proc").context("cannot read /proc")?;
    let pids =
        listing.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok().and_then(Pid::from_raw));
    let is_inside = |pid: &Pid| {
        std::fs::read_link(format!("/proc/{}/root", pid.as_raw_nonzero())).is_ok_and(|its| its == root)
    };
    Ok(pids.filter(is_inside).collect())
}
