//! The whole comparison: learning, rounds, and a last start that is recorded to see what the prefetch was good for.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chrono::Utc;
use headstart_shared::comparison::{Comparison, FORMAT, Host, LeftOut, PrefetchAccount, TimedRun};
use headstart_shared::run::{ColdMethod, Condition, Milestone};
use headstart_shared::stats::median;
use headstart_shared::units::{Bytes, Nanos, Pages};

use super::cold::{Cold, ColdError, resident};
use super::prefetch::{Choices, Prefetch};
use super::schedule::{Slot, slots};
use super::start::{Beside, Stage, StartError, Started};
use super::subject::Subject;
use crate::learn::{learn, ranges};
use crate::mounts::{Mounts, MountsError};
use crate::path_text;
use crate::plan::{Plan, Step};
use crate::profile::Profile;
use crate::recording::{Backend, PageRange, Recording, Touch};
use crate::replay;
use crate::replay::guard::Memory;
use crate::roots::Roots;
use crate::watch::milestone::settled::Quiet;
use crate::watch::milestone::{Evidence, Goal, Outcome, has_display};
use crate::watch::session::Session;

/// A start that read this share of what it touched from a drive was truly cold.
const TRULY_COLD: f64 = 0.9;
/// And one whose files are in memory up to this share may be.
const NEARLY_GONE: f64 = 0.1;

/// What a start is timed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// What suits: the first window of an application, the end of a command.
    Auto,
    /// The given milestone.
    Milestone(Milestone),
}

/// How to compare.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Rounds.
    pub rounds: u32,
    /// Runs that a profile has to rest on before it is measured.
    pub learn: u32,
    /// How cold is made.
    pub cold: ColdMethod,
    /// What a start is timed to.
    pub until: Until,
    /// How long one start may take.
    pub timeout: Duration,
    /// How long a program is left alone after its milestone.
    pub linger: Duration,
    /// How plans are made.
    pub choices: Choices,
    /// How runs are recorded.
    pub backend: Backend,
    /// Also time cold starts that are recorded.
    pub time_recording: bool,
    /// Count commands that fail.
    pub ignore_failure: bool,
}

/// What a comparison is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// The first start, with the caches as they were found.
    Looking,
    /// A cold start that is recorded.
    Learning,
    /// A start that is timed.
    Timing(Slot),
    /// A prefetched start that is recorded.
    Checking,
}

/// What is told while a comparison goes on.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// What is being done, or was.
    pub doing: Doing,
    /// Starts done so far.
    pub done: u32,
    /// Starts in all, as far as is known.
    pub total: u32,
    /// The time of the start, once it is over and counts.
    pub time: Option<Nanos>,
}

/// Sees the progress.
pub type Observer<'a> = dyn FnMut(Progress) + 'a;

/// No comparison can be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// The first start could not be made.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Caches cannot be emptied.
    #[error(transparent)]
    Cold(#[from] ColdError),
    /// The table of mounts cannot be read.
    #[error(transparent)]
    Mounts(#[from] MountsError),
    /// The first start went wrong.
    #[error("{name}: {outcome}{cure}")]
    Outcome {
        /// What was started.
        name: String,
        /// What came of it.
        outcome: Outcome,
        /// What to do about it; begins on a new line.
        cure: &'static str,
    },
    /// The command fails.
    #[error(
        "{name} ends with {status}; see that it succeeds, or count it all the same with --ignore-failure"
    )]
    Failed {
        /// The command.
        name: String,
        /// How it ended.
        status: std::process::ExitStatus,
    },
    /// There is nothing to read ahead.
    #[error("{name} reads nothing that could be read ahead: {why}")]
    Nothing {
        /// What was started.
        name: String,
        /// What became of what it touched.
        why: String,
    },
}

/// What came of a comparison.
#[derive(Debug)]
pub struct Compared {
    /// The result; without runs if it was stopped before the first round.
    pub comparison: Comparison,
    /// The profile as it is now.
    pub profile: Profile,
    /// Whether it was stopped early.
    pub cancelled: bool,
}

/// Compares the starts of `subject`, going on from `known` if there is a profile.
///
/// # Errors
/// When nothing can be measured. What goes wrong with a single start later is in the result.
pub fn compare(
    subject: &Subject,
    session: &Session,
    known: Option<Profile>,
    options: &Options,
    roots: &Roots,
    cancel: &AtomicBool,
    observer: &mut Observer<'_>,
) -> Result<Compared, CompareError> {
    let stage = Stage {
        subject,
        session,
        goal: goal(options.until, subject, session),
        deadline: options.timeout,
        linger: options.linger,
        roots,
        cancel,
    };
    let mut work = Work {
        cold: Cold::new(options.cold, roots),
        mounts: Mounts::of(roots, None)?,
        stage,
        options,
        observer,
        done: 0,
        remarks: Vec::new(),
        lost: 0,
    };
    work.run(known)
}

fn goal(until: Until, subject: &Subject, session: &Session) -> Goal {
    match until {
        Until::Milestone(Milestone::Settled) => Goal::Settled(Quiet::default()),
        Until::Milestone(Milestone::Exit) => Goal::Exit,
        Until::Milestone(_) => Goal::Window,
        // A command may be a graphical program all the same: its first start will show.
        Until::Auto if has_display(session) => Goal::Window,
        Until::Auto if subject.desktop => Goal::Settled(Quiet::default()),
        Until::Auto => Goal::Exit,
    }
}

struct Work<'a, 'o> {
    stage: Stage<'a>,
    options: &'a Options,
    cold: Cold<'a>,
    mounts: Mounts,
    observer: &'o mut Observer<'o>,
    done: u32,
    remarks: Vec<String>,
    lost: u64,
}

/// What the rounds gave.
#[derive(Default)]
struct Rounds {
    runs: Vec<TimedRun>,
    recorded: Vec<TimedRun>,
    left_out: Vec<LeftOut>,
    replays: Vec<replay::Account>,
    left_cached: Vec<f64>,
}

impl Work<'_, '_> {
    fn run(&mut self, known: Option<Profile>) -> Result<Compared, CompareError> {
        let began = Utc::now();
        let (mut profile, found_cold) = match known {
            Some(profile) if !self.is_gone(&profile) => (profile, None),
            known => self.look(known)?,
        };
        while profile.runs < self.options.learn && !self.cancelled() {
            profile = self.learn(profile)?;
        }
        let prefetch = Prefetch::plan(&profile, self.options.choices, &self.mounts, self.stage.roots);
        if prefetch.data() == Bytes(0) {
            return Err(self.nothing(&profile, &prefetch));
        }
        let rounds = self.rounds(&profile, &prefetch)?;
        let mut account = account(&prefetch, &rounds, &profile);
        if !self.cancelled() {
            let (next, used) = self.check(profile, &prefetch, &mut account)?;
            profile = next;
            account.used = used;
        }
        account.lost_events = self.lost;
        let cancelled = self.cancelled();
        let comparison = self.comparison(began, found_cold, &prefetch, account, rounds);
        Ok(Compared { comparison, profile, cancelled })
    }

    fn cancelled(&self) -> bool {
        self.stage.cancel.load(Ordering::Relaxed)
    }

    fn tell(&mut self, doing: Doing, time: Option<Nanos>) {
        let rounds = self.options.rounds * (3 + u32::from(self.options.time_recording));
        let total = self.options.learn + rounds + 1;
        (self.observer)(Progress { doing, done: self.done, total: total.max(self.done), time });
    }

    fn start(&mut self, doing: Doing, beside: Beside) -> Result<Started, StartError> {
        self.tell(doing, None);
        let started = self.stage.start(beside)?;
        self.done += 1;
        let time = match started.outcome {
            Outcome::Reached { at, .. } => Some(at),
            _ => None,
        };
        self.tell(doing, time);
        Ok(started)
    }

    /// Whether nearly nothing of what the app needs is in memory: then its next start is truly cold.
    fn is_gone(&self, profile: &Profile) -> bool {
        let all = profile.pages().bytes(profile.page_size);
        share(resident(profile, &self.mounts, self.stage.roots), all) <= NEARLY_GONE
    }

    /// The first start, with the caches as they are. It shows whether it can be timed at all, and what a start is timed to
    /// where that was left open. Its time is told if it was truly cold.
    fn look(&mut self, known: Option<Profile>) -> Result<(Profile, Option<Nanos>), CompareError> {
        let record = || Beside { record: Some(self.options.backend), plans: None };
        let beside = record();
        let started = self.start(Doing::Looking, beside)?;
        let auto = self.options.until == Until::Auto && !self.stage.subject.desktop;
        let at = match started.outcome {
            Outcome::Reached { at, by: Evidence::Exit(status), .. } => {
                self.check_status(status)?;
                at
            }
            Outcome::Reached { at, .. } => at,
            Outcome::ExitedEarly { status, after, .. } if auto && self.stage.goal == Goal::Window => {
                self.stage.goal = Goal::Exit;
                self.check_status(status)?;
                after
            }
            outcome => return Err(self.wrong(outcome)),
        };
        let Some(recording) = started.recording else {
            return Ok((empty(self.stage.subject), None));
        };
        self.lost += recording.lost_events;
        let truly = share(started.read.unwrap_or_default(), touched(&recording)) >= TRULY_COLD;
        let profile = learn(known, &self.stage.subject.app, &recording);
        Ok((profile, truly.then_some(at)))
    }

    fn check_status(&self, status: std::process::ExitStatus) -> Result<(), CompareError> {
        if status.success() || self.options.ignore_failure {
            return Ok(());
        }
        Err(CompareError::Failed { name: self.stage.subject.name.clone(), status })
    }

    fn wrong(&self, outcome: Outcome) -> CompareError {
        let cure = match &outcome {
            Outcome::HandedOver { .. } => {
                "\nclose it first: a start handed to a running instance is no start"
            }
            Outcome::TooLate { running: true, milestone: Milestone::FirstWindow, .. } => {
                "\nif it has no window, time it until it is quiet: --until settled"
            }
            Outcome::TooLate { running: true, milestone: Milestone::Exit, .. } => {
                "\nif it does not end by itself, time it until it is quiet: --until settled"
            }
            Outcome::TooLate { .. } => "\nallow more time with --timeout SECONDS",
            _ => "",
        };
        CompareError::Outcome { name: self.stage.subject.name.clone(), outcome, cure }
    }

    fn learn(&mut self, profile: Profile) -> Result<Profile, CompareError> {
        self.cold.make(&profile, &self.mounts)?;
        let beside = Beside { record: Some(self.options.backend), plans: None };
        let started = self.start(Doing::Learning, beside)?;
        match (started.outcome, started.recording) {
            (Outcome::Reached { .. }, Some(recording)) => {
                self.lost += recording.lost_events;
                Ok(learn(Some(profile), &self.stage.subject.app, &recording))
            }
            (Outcome::Cancelled, _) => Ok(profile),
            (outcome, _) => Err(self.wrong(outcome)),
        }
    }

    fn rounds(&mut self, profile: &Profile, prefetch: &Prefetch) -> Result<Rounds, CompareError> {
        let mut rounds = Rounds::default();
        for slot in slots(self.options.rounds, self.options.time_recording, &mut rand::rng()) {
            if self.cancelled() {
                break;
            }
            if slot.condition != Condition::Warm {
                let left = self.cold.make(profile, &self.mounts)?;
                rounds.left_cached.push(share(left, profile.pages().bytes(profile.page_size)));
            }
            let plans = (slot.condition == Condition::Prefetched).then(|| prefetch.plans.clone());
            let record = slot.recorded.then_some(self.options.backend);
            let started = self.start(Doing::Timing(slot), Beside { plans, record })?;
            rounds.take(slot, started, self.options.ignore_failure);
        }
        Ok(rounds)
    }

    /// One more prefetched start, recorded: what of the read-ahead it touched.
    fn check(
        &mut self,
        profile: Profile,
        prefetch: &Prefetch,
        account: &mut PrefetchAccount,
    ) -> Result<(Profile, Option<Bytes>), CompareError> {
        self.cold.make(&profile, &self.mounts)?;
        let beside = Beside { plans: Some(prefetch.plans.clone()), record: Some(self.options.backend) };
        let started = self.start(Doing::Checking, beside)?;
        let (Outcome::Reached { .. }, Some(recording)) = (started.outcome, started.recording) else {
            return Ok((profile, None));
        };
        self.lost += recording.lost_events;
        let planned = prefetch.data();
        let used = used(&prefetch.plans, &recording);
        // Only tracing tells what was touched; what is resident after a prefetch is all that was read.
        let told = recording.backend == Backend::Touched;
        account.learned_from += 1;
        let used = told.then(|| scale(account.read, share(used, planned)));
        Ok((learn(Some(profile), &self.stage.subject.app, &recording), used))
    }

    fn nothing(&self, profile: &Profile, prefetch: &Prefetch) -> CompareError {
        let why = match (prefetch.untouchable.first(), profile.files.is_empty()) {
            (Some((path, kind)), _) => format!("{} is on {kind}", path.display()),
            (None, true) => "no file of it is on a drive".into(),
            (None, false) => "what it touches does not recur, or no memory is free for it".into(),
        };
        CompareError::Nothing { name: self.stage.subject.name.clone(), why }
    }

    fn comparison(
        &mut self,
        began: chrono::DateTime<Utc>,
        found_cold: Option<Nanos>,
        prefetch: &Prefetch,
        account: PrefetchAccount,
        rounds: Rounds,
    ) -> Comparison {
        let subject = self.stage.subject;
        self.remark(found_cold, prefetch, &rounds);
        Comparison {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").into(),
            began,
            app: subject.app.clone(),
            name: subject.name.clone(),
            command: subject.args.iter().map(|arg| path_text::to_text(arg.as_ref())).collect(),
            milestone: self.stage.goal.milestone(),
            cold: self.options.cold,
            rounds: self.options.rounds,
            runs: rounds.runs,
            recorded: rounds.recorded,
            found_cold,
            left_out: rounds.left_out,
            prefetch: account,
            drives: prefetch.summaries(),
            host: host(self.stage.roots),
            remarks: std::mem::take(&mut self.remarks),
        }
    }

    fn remark(&mut self, found_cold: Option<Nanos>, prefetch: &Prefetch, rounds: &Rounds) {
        if let Some(at) = found_cold {
            self.remarks.push(format!(
                "The very first start took {at} and found nearly nothing in memory: that is a true cold start, \
                 and no way of emptying caches quite makes one."
            ));
        }
        if self.options.cold == ColdMethod::Evict
            && let Some(left) = median(&rounds.left_cached).filter(|left| *left >= 0.05)
        {
            self.remarks.push(format!(
                "{:.0} % of the app's files stayed in memory when its caches were emptied, because other programs use \
                 them, as in daily use. --cold=drop empties more.",
                left * 100.0
            ));
        }
        let failures = rounds.replays.iter().flat_map(|replay| &replay.remarks).chain(&prefetch.remarks);
        for remark in failures {
            if !self.remarks.contains(remark) {
                self.remarks.push(remark.clone());
            }
        }
        if let Some(stopped) = rounds.replays.iter().find_map(|replay| replay.stopped) {
            let cancelled = stopped == replay::Stopped::Cancelled;
            let text = if cancelled {
                "A replay was still reading when its start was over and the program was ended.".into()
            } else {
                format!("A replay stopped before its end: {stopped}.")
            };
            self.remarks.push(text);
        }
        if let Some(skipped) = rounds.replays.iter().find_map(|replay| replay.skipped.first()) {
            self.remarks.push(format!(
                "Not everything could be read ahead: {} {}.",
                skipped.path.display(),
                skipped.why
            ));
        }
    }
}

impl Rounds {
    fn take(&mut self, slot: Slot, started: Started, ignore_failure: bool) {
        self.replays.extend(started.replay);
        let Slot { round, condition, recorded } = slot;
        let reason = match started.outcome {
            Outcome::Reached { by: Evidence::Exit(status), .. } if !status.success() && !ignore_failure => {
                format!("ended with {status}")
            }
            Outcome::Reached { at, .. } => {
                let run = TimedRun { round, condition, time: at, read: started.read };
                if recorded { &mut self.recorded } else { &mut self.runs }.push(run);
                return;
            }
            Outcome::Cancelled => return,
            outcome => outcome.to_string(),
        };
        self.left_out.push(LeftOut { round, condition, reason });
    }
}

fn account(prefetch: &Prefetch, rounds: &Rounds, profile: &Profile) -> PrefetchAccount {
    let of = |value: fn(&replay::Account) -> u64| {
        #[expect(clippy::cast_precision_loss, reason = "bytes and nanoseconds below 2^52")]
        let values: Vec<f64> = rounds.replays.iter().map(|replay| value(replay) as f64).collect();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it was a u64")]
        median(&values).map(|value| value as u64)
    };
    let reads = |plan: &Plan| plan.steps.iter().filter(|step| matches!(step, Step::Read { .. })).count();
    PrefetchAccount {
        files: prefetch.plans.iter().map(|plan| plan.files.len() as u64).sum(),
        ranges: prefetch.plans.iter().map(|plan| reads(plan) as u64).sum(),
        planned: prefetch.data(),
        metadata: prefetch.metadata(),
        read: Bytes(of(|replay| replay.data.brought_in().0).unwrap_or_default()),
        used: None,
        time: of(|replay| replay.time.unwrap_or_default().0).map(Nanos),
        learned_from: profile.runs,
        lost_events: 0,
    }
}

fn empty(subject: &Subject) -> Profile {
    Profile {
        app: subject.app.clone(),
        page_size: crate::sys::residency::page_size(),
        runs: 0,
        files: Vec::new(),
        devices: Vec::new(),
    }
}

fn host(roots: &Roots) -> Host {
    let uname = rustix::system::uname();
    let cpus = std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX));
    Host { kernel: uname.release().to_string_lossy().into_owned(), cpus, memory: Memory::now(roots).total }
}

fn touched(recording: &Recording) -> Bytes {
    let pages =
        recording.files.iter().flat_map(|file| &file.touches).map(|touch| Pages(touch.pages.len())).sum();
    Pages::bytes(pages, recording.page_size)
}

/// Bytes of the plans' file content that a recording shows as touched.
fn used(plans: &[Plan], recording: &Recording) -> Bytes {
    let recorded: HashMap<&Path, &[Touch]> =
        recording.files.iter().map(|file| (file.path.as_path(), file.touches.as_slice())).collect();
    let pages = plans.iter().flat_map(|plan| plan.steps.iter().map(move |step| (plan, step)));
    let pages = pages.map(|(plan, step)| {
        let Step::Read { file, pages, .. } = step else { return 0 };
        let file = plan.files.get(*file as usize);
        let seen = file.and_then(|file| recorded.get(file.path.as_path())).copied().unwrap_or_default();
        let touches: Vec<PageRange> = seen.iter().map(|touch| touch.pages).collect();
        ranges::pages(&ranges::intersect(&[*pages], &touches))
    });
    Pages(pages.sum()).bytes(recording.page_size)
}

#[expect(clippy::cast_precision_loss, reason = "a share needs no more than 52 bits")]
fn share(part: Bytes, whole: Bytes) -> f64 {
    if whole == Bytes(0) { 0.0 } else { part.0 as f64 / whole.0 as f64 }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of it"
)]
fn scale(bytes: Bytes, share: f64) -> Bytes {
    Bytes((bytes.0 as f64 * share.clamp(0.0, 1.0)) as u64)
}
