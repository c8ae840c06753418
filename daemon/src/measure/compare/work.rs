//! The steps of a comparison, one after the other.

use std::sync::atomic::Ordering;

use chrono::Utc;
use headstart_shared::comparison::{Comparison, FORMAT, LeftOut, PrefetchAccount, TimedRun};
use headstart_shared::run::{Condition, Milestone};
use headstart_shared::units::{Bytes, Nanos};

use super::account::{account, host, remarks, scale, share, touched};
use super::{CompareError, Compared, Doing, Observer, Options, Progress, Until};
use crate::learn::learn;
use crate::measure::cold::{Cold, resident};
use crate::measure::prefetch::Prefetch;
use crate::measure::schedule::{Slot, slots};
use crate::measure::start::{Beside, Stage, StartError, Started};
use crate::measure::subject::Subject;
use crate::mounts::Mounts;
use crate::path_text;
use crate::plan::used;
use crate::profile::Profile;
use crate::recording::{Backend, Recording};
use crate::replay;
use crate::watch::milestone::{Evidence, Goal, Outcome};

/// A start that read this share of what it touched from a drive was truly cold.
const TRULY_COLD: f64 = 0.9;
/// And one whose files are in memory up to this share may be.
const NEARLY_GONE: f64 = 0.1;

/// A comparison that is going on.
pub(super) struct Work<'a, 'o> {
    stage: Stage<'a>,
    options: &'a Options,
    cold: Cold<'a>,
    mounts: Mounts,
    observer: &'o mut Observer<'o>,
    done: u32,
    /// Starts before the first round, as far as is known.
    before: u32,
    /// Whether a start has reached its milestone yet.
    proven: bool,
    lost: u64,
}

/// What the rounds gave.
#[derive(Default)]
pub(super) struct Rounds {
    pub(super) runs: Vec<TimedRun>,
    pub(super) recorded: Vec<TimedRun>,
    pub(super) left_out: Vec<LeftOut>,
    pub(super) replays: Vec<replay::Account>,
    pub(super) left_cached: Vec<f64>,
    /// Remarks in words.
    pub(super) remarks: Vec<String>,
}

impl<'a, 'o> Work<'a, 'o> {
    /// A comparison on `stage` that has yet to be made.
    pub(super) fn new(
        stage: Stage<'a>,
        options: &'a Options,
        mounts: Mounts,
        observer: &'o mut Observer<'o>,
    ) -> Self {
        Self {
            cold: Cold::new(options.cold, stage.roots),
            stage,
            options,
            mounts,
            observer,
            done: 0,
            before: options.learn,
            proven: false,
            lost: 0,
        }
    }

    /// Makes it, going on from `known`.
    pub(super) fn run(&mut self, known: Option<Profile>) -> Result<Compared, CompareError> {
        let began = Utc::now();
        let (mut profile, found_cold) = match known {
            Some(profile) if !self.is_undecided() && !self.is_gone(&profile) => (profile, None),
            known => self.look(known)?,
        };
        self.before = self.done + self.options.learn.saturating_sub(profile.runs);
        while profile.runs < self.options.learn && !self.cancelled() {
            profile = self.learn(profile)?;
        }
        let prefetch = if self.cancelled() { Prefetch::default() } else { self.plan(&profile)? };
        let mut rounds = self.rounds(&profile, &prefetch)?;
        let mut account = account(&prefetch, &rounds, &profile);
        if !self.cancelled() {
            match self.check(&profile, &prefetch) {
                Ok(Some(recording)) => {
                    account.used = check_used(&prefetch, &recording, account.read);
                    account.learned_from += 1;
                    profile = learn(Some(profile), &self.stage.subject.app, &recording);
                }
                Ok(None) => {}
                Err(error) => rounds.remarks.push(format!(
                    "How much of the read-ahead was used is not known, for the start that shows it failed: {error}."
                )),
            }
        }
        account.lost_events = self.lost;
        let cancelled = self.cancelled();
        let comparison = self.comparison(began, found_cold, &prefetch, account, rounds);
        Ok(Compared { comparison, profile, cancelled })
    }

    /// Plans, before caches are emptied.
    fn plan(&self, profile: &Profile) -> Result<Prefetch, CompareError> {
        let prefetch = Prefetch::plan(profile, self.options.choices, &self.mounts, self.stage.roots);
        if prefetch.data() == Bytes(0) {
            return Err(self.nothing(profile, &prefetch));
        }
        Ok(prefetch)
    }

    fn cancelled(&self) -> bool {
        self.stage.cancel.load(Ordering::Relaxed)
    }

    fn tell(&mut self, doing: Doing, time: Option<Nanos>) {
        let rounds = self.options.rounds * (3 + u32::from(self.options.time_recording));
        let total = self.before + rounds + 1;
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
        self.proven |= time.is_some();
        self.tell(doing, time);
        Ok(started)
    }

    /// Whether only a start can show to what this one is timed: a profile does not say if its command has a window.
    fn is_undecided(&self) -> bool {
        self.options.until == Until::Auto && !self.stage.subject.desktop && self.stage.goal == Goal::Window
    }

    /// Whether nearly nothing of what the app needs is in memory: then its next start is truly cold.
    fn is_gone(&self, profile: &Profile) -> bool {
        let all = profile.pages().bytes(profile.page_size);
        share(resident(profile, &self.mounts, self.stage.roots), all) <= NEARLY_GONE
    }

    /// The first start, with the caches as they are. It shows whether it can be timed at all, and what a start is timed to
    /// where that was left open. Its time is told if it was truly cold.
    fn look(&mut self, known: Option<Profile>) -> Result<(Profile, Option<Nanos>), CompareError> {
        let beside = Beside { record: Some(self.options.backend), plans: None };
        let undecided = self.is_undecided();
        let started = self.start(Doing::Looking, beside)?;
        let at = match started.outcome {
            Outcome::Reached { at, by: Evidence::Exit(status), .. } => {
                self.check_status(status)?;
                at
            }
            Outcome::Reached { at, .. } => at,
            Outcome::ExitedEarly { status, after, .. } if undecided => {
                self.proven = true;
                self.stage.goal = Goal::Exit;
                self.check_status(status)?;
                after
            }
            Outcome::Cancelled => return Ok((known.unwrap_or_else(|| empty(self.stage.subject)), None)),
            outcome => return Err(self.wrong(outcome)),
        };
        let Some(recording) = started.recording else {
            return Ok((known.unwrap_or_else(|| empty(self.stage.subject)), None));
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

    /// All rounds. What goes wrong with a single start is told in the result, unless it is the very first one: then
    /// nothing is lost by saying so at once, with the cure.
    fn rounds(&mut self, profile: &Profile, prefetch: &Prefetch) -> Result<Rounds, CompareError> {
        let mut rounds = Rounds::default();
        for slot in slots(self.options.rounds, self.options.time_recording, &mut rand::rng()) {
            if self.cancelled() {
                return Ok(rounds);
            }
            match self.timed(slot, profile, prefetch, &mut rounds) {
                Err(error) if rounds.is_empty() => return Err(error),
                Err(error) => rounds.leave_out(slot, error.to_string()),
                Ok(()) => {}
            }
        }
        match rounds.left_out.first() {
            Some(first) if rounds.runs.is_empty() && !self.cancelled() => Err(CompareError::NoneCounts {
                name: self.stage.subject.name.clone(),
                reason: first.reason.clone(),
            }),
            _ => Ok(rounds),
        }
    }

    fn timed(
        &mut self,
        slot: Slot,
        profile: &Profile,
        prefetch: &Prefetch,
        rounds: &mut Rounds,
    ) -> Result<(), CompareError> {
        if slot.condition != Condition::Warm {
            let all = profile.pages().bytes(profile.page_size);
            let left = self.cold.make(profile, &self.mounts)?;
            rounds.left_cached.extend(left.map(|left| share(left, all)));
        }
        let plans = (slot.condition == Condition::Prefetched).then(|| prefetch.plans.clone());
        let record = slot.recorded.then_some(self.options.backend);
        let started = self.start(Doing::Timing(slot), Beside { plans, record })?;
        if !self.proven && !matches!(started.outcome, Outcome::Cancelled) {
            return Err(self.wrong(started.outcome));
        }
        rounds.take(slot, started, self.options.ignore_failure);
        Ok(())
    }

    /// One more prefetched start, recorded: what of the read-ahead it touched.
    fn check(&mut self, profile: &Profile, prefetch: &Prefetch) -> Result<Option<Recording>, CompareError> {
        self.cold.make(profile, &self.mounts)?;
        let beside = Beside { plans: Some(prefetch.plans.clone()), record: Some(self.options.backend) };
        let started = self.start(Doing::Checking, beside)?;
        let reached = matches!(started.outcome, Outcome::Reached { .. });
        let recording = started.recording.filter(|_| reached);
        self.lost += recording.as_ref().map_or(0, |recording| recording.lost_events);
        Ok(recording)
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
        let mut remarks = remarks(self.options.cold, found_cold, prefetch, &rounds);
        remarks.extend(rounds.remarks);
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
            remarks,
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
        self.leave_out(slot, reason);
    }

    fn leave_out(&mut self, slot: Slot, reason: String) {
        self.left_out.push(LeftOut { round: slot.round, condition: slot.condition, reason });
    }

    fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.recorded.is_empty() && self.left_out.is_empty()
    }
}

/// Of `read` bytes read ahead, what a recorded start used. Only tracing tells what was touched; what is resident after a
/// prefetch is all that was read.
fn check_used(prefetch: &Prefetch, recording: &Recording, read: Bytes) -> Option<Bytes> {
    let used = share(used(&prefetch.plans, recording), prefetch.data());
    (recording.backend == Backend::Touched).then(|| scale(read, used))
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
