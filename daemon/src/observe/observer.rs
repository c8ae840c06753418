//! Watches one launch until it is over.

use std::fs;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use headstart_shared::launch::{Exclusion, ProcessSpan, Usage, UsageSample};
use headstart_shared::run::Milestone;
use headstart_shared::units::{Bytes, Nanos};
use rustix::time::{ClockId, clock_gettime};

use super::foreign::{Load, machine_cpu};
use super::usage::{Sampler, machine_reads};
use crate::roots::Roots;
use crate::watch::milestone::Hints;
use crate::watch::milestone::settled::{Quiet, Sample, Settled};
use crate::watch::processes::{ProcessKey, key_of};
use crate::watch::start::Monotonic;

/// How often the processes of a launch are looked at: a hundred microseconds of work each, and a hundredth of what a person
/// notices.
const TICK: Duration = Duration::from_millis(50);
/// And once it is quiet, but a window is still waited for.
const SLOW_TICK: Duration = Duration::from_millis(250);
/// A launch that has reached no milestone by then is left.
pub const LIMIT: Duration = Duration::from_secs(30);
/// A window is told by the session's agent over the bus: it may be a little behind the end of a launch.
const AGENT: Duration = Duration::from_millis(500);

/// The launch to watch.
#[derive(Clone, Debug)]
pub struct Begun {
    /// Its first process.
    pub first: ProcessKey,
    /// When it executed the app.
    pub started: Monotonic,
    /// How its windows are called.
    pub hints: Hints,
    /// What its person waits for.
    pub expected: Expected,
    /// Whether an instance of the app was running already.
    pub running: bool,
}

/// What the person who started an app waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// A window, which will be told.
    Window,
    /// A window, but nobody tells of windows in this session: quiet has to do.
    Unseen,
    /// The end of a program that runs in a terminal, or quiet if it stays.
    Exit,
}

/// A window that became visible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Whose, as the bus says.
    pub uid: u32,
    /// When.
    pub at: Monotonic,
    /// Its process, where known.
    pub pid: Option<i32>,
    /// Its X11 class and instance, or its Wayland application ID.
    pub names: Vec<String>,
}

/// What an observer is told while it watches.
#[derive(Clone, Debug)]
pub enum Told {
    /// A window of the launch's user became visible.
    Window(Window),
    /// The service ends.
    Stop,
}

/// A launch as it was seen.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The milestones, in order of time.
    pub milestones: Vec<(Milestone, Nanos)>,
    /// What was seen that speaks against counting it.
    pub exclusions: Vec<Exclusion>,
    /// What it used.
    pub usage: Usage,
    /// Its processes.
    pub processes: Vec<ProcessSpan>,
    /// What they did.
    pub samples: Vec<UsageSample>,
}

impl Observed {
    /// Whether it was a launch at all, and not a start that a running instance took over.
    #[must_use]
    pub fn is_hot(&self) -> bool {
        self.exclusions.contains(&Exclusion::Hot)
    }
}

/// An observer at work.
pub struct Observer<'a> {
    roots: &'a Roots,
    begun: Begun,
    told: &'a Receiver<Told>,
    sampler: Sampler,
    settled: Settled,
    /// Pages touched so far, where the launch is recorded.
    pages: Option<Box<dyn FnMut() -> Option<u64> + Send>>,
    machine: Machine,
    window: Option<Nanos>,
    quiet: Option<Nanos>,
    /// When nothing of it was left.
    gone: Option<Nanos>,
    /// A window of the app that belongs to an older process.
    handed_over: bool,
    stopped: bool,
}

impl std::fmt::Debug for Observer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observer").field("begun", &self.begun).finish_non_exhaustive()
    }
}

impl<'a> Observer<'a> {
    /// Begins to watch.
    #[must_use]
    pub fn new(roots: &'a Roots, begun: Begun, told: &'a Receiver<Told>) -> Self {
        Self {
            sampler: Sampler::new(roots, begun.first, begun.started),
            settled: Settled::new(Quiet::default()),
            pages: None,
            machine: Machine::now(roots),
            window: None,
            quiet: None,
            gone: None,
            handed_over: false,
            stopped: false,
            roots,
            begun,
            told,
        }
    }

    /// Also counts pages touched as work.
    pub fn count_pages(&mut self, pages: Box<dyn FnMut() -> Option<u64> + Send>) {
        self.pages = Some(pages);
    }

    /// The processes that are its now.
    #[must_use]
    pub fn processes(&self) -> Vec<i32> {
        self.sampler.alive().map(|key| key.pid).collect()
    }

    /// Watches until it is over. `each` is called now and then meanwhile. The launch's processes are still there when this
    /// returns, if they have not ended by themselves.
    pub fn watch(&mut self, mut each: impl FnMut()) {
        loop {
            self.look();
            each();
            if self.is_over() {
                return;
            }
            self.listen(if self.quiet.is_some() { SLOW_TICK } else { TICK });
        }
    }

    /// Looks at its processes.
    fn look(&mut self) {
        let totals = self.sampler.sample();
        let at = Monotonic::now().since(self.begun.started);
        if self.quiet.is_none() {
            let pages = self.pages.as_mut().and_then(|pages| pages());
            self.quiet = self.settled.sample(Sample { at, pages, read: totals.read, cpu: totals.cpu() });
        }
        if self.sampler.is_empty() {
            self.gone.get_or_insert(at);
        }
    }

    /// Takes what is told until the tick is over.
    fn listen(&mut self, tick: Duration) {
        let end = Monotonic::now().after(tick);
        loop {
            match self.told.recv_timeout(end.since(Monotonic::now()).into()) {
                Ok(Told::Window(window)) => self.take(&window),
                Err(RecvTimeoutError::Timeout) => return,
                // Whoever tells is gone: so is the service.
                Ok(Told::Stop) | Err(RecvTimeoutError::Disconnected) => self.stopped = true,
            }
            if self.stopped {
                return;
            }
        }
    }

    /// Takes a window.
    fn take(&mut self, window: &Window) {
        if window.at < self.begun.started {
            return;
        }
        let named = window.names.iter().any(|name| self.begun.hints.matches(name));
        let ours = match window.pid {
            Some(pid) if self.sampler.has(pid) => true,
            // It may have begun since the last look.
            Some(pid) => {
                self.sampler.sample();
                self.sampler.has(pid) || (named && !self.is_older(pid))
            }
            None => named && !self.begun.running,
        };
        if ours {
            let at = window.at.since(self.begun.started);
            self.window = Some(self.window.map_or(at, |first| first.min(at)));
        } else if named {
            self.handed_over = true;
        }
    }

    /// Whether a process began before the launch. Times of processes are in clock ticks, so equal ones are not older.
    fn is_older(&self, pid: i32) -> bool {
        key_of(self.roots, pid).is_none_or(|key| key.started < self.begun.first.started)
    }

    fn is_over(&self) -> bool {
        let at = Monotonic::now().since(self.begun.started);
        if self.stopped || Duration::from(at) >= LIMIT {
            return true;
        }
        if let Some(gone) = self.gone {
            let expected = self.begun.expected == Expected::Window && self.window.is_none();
            return !expected || self.handed_over || Duration::from(at - gone) >= AGENT;
        }
        self.quiet.is_some() && (self.begun.expected != Expected::Window || self.window.is_some())
    }

    /// What was seen. `read_ahead` is what was read ahead for it.
    #[must_use]
    pub fn finish(self, read_ahead: Bytes) -> Observed {
        let mut milestones = Vec::new();
        milestones.extend(self.window.map(|at| (Milestone::FirstWindow, at)));
        milestones.extend(self.quiet.map(|at| (Milestone::Settled, at)));
        if self.window.is_none() && self.begun.expected == Expected::Exit {
            milestones.extend(self.gone.map(|at| (Milestone::Exit, at)));
        }
        milestones.sort_by_key(|(_, at)| *at);
        let usage = self.sampler.usage();
        let exclusions = self.exclusions(&milestones, usage, read_ahead);
        let (processes, samples) = self.sampler.into_timeline();
        Observed { milestones, exclusions, usage, processes, samples }
    }

    fn exclusions(
        &self,
        milestones: &[(Milestone, Nanos)],
        usage: Usage,
        read_ahead: Bytes,
    ) -> Vec<Exclusion> {
        let mut exclusions = Vec::new();
        let ended = self.gone.is_some() && self.window.is_none();
        if ended && (self.handed_over || self.begun.running) {
            exclusions.push(Exclusion::Hot);
        } else if ended && self.begun.expected != Expected::Exit {
            exclusions.push(Exclusion::EndedEarly);
        } else if self.stopped {
            exclusions.push(Exclusion::Interrupted);
        } else if milestones.is_empty() || self.begun.expected == Expected::Window && self.window.is_none() {
            exclusions.push(Exclusion::NoMilestone);
        }
        if self.machine.has_slept() {
            exclusions.push(Exclusion::Suspended);
        }
        let span = Monotonic::now().since(self.begun.started);
        if self.machine.load(self.roots, span, usage, read_ahead).is_foreign() {
            exclusions.push(Exclusion::ForeignLoad);
        }
        exclusions
    }
}

/// The whole machine at the beginning of a launch.
#[derive(Clone, Copy, Debug)]
struct Machine {
    slept: Nanos,
    cpu: Nanos,
    read: u64,
}

impl Machine {
    fn now(roots: &Roots) -> Self {
        Self { slept: slept(), cpu: cpu(roots), read: machine_reads(roots) }
    }

    /// Whether the machine slept since. The clocks are read one after the other, so they differ by a little anyway.
    fn has_slept(&self) -> bool {
        slept() - self.slept > Nanos(10_000_000)
    }

    fn load(&self, roots: &Roots, span: Nanos, usage: Usage, read_ahead: Bytes) -> Load {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Load {
            span,
            processors: u32::try_from(processors).unwrap_or(u32::MAX),
            machine_cpu: cpu(roots) - self.cpu,
            own_cpu: usage.user + usage.system,
            machine_read: Bytes(machine_reads(roots).saturating_sub(self.read)),
            own_read: usage.read.unwrap_or_default(),
            read_ahead,
        }
    }
}

/// How long the machine has slept since boot: what the clock that goes on has over the one that stops
/// (`clock_gettime(2)`).
#[must_use]
pub fn slept() -> Nanos {
    let read = |clock| {
        let now = clock_gettime(clock);
        Nanos(now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs())
    };
    let awake = read(ClockId::Monotonic);
    read(ClockId::Boottime) - awake
}

fn cpu(roots: &Roots) -> Nanos {
    let text = fs::read_to_string(roots.proc.join("stat")).unwrap_or_default();
    machine_cpu(&text).unwrap_or_default()
}

#[cfg(test)]
#[path = "observer_tests.rs"]
mod tests;
