//! A launch that goes on: its thread watches it until it is over.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use chrono::{DateTime, Utc};
use headstart_shared::launch::{Arm, Exclusion, Launch, ReadAhead, TIMELINE_FORMAT, Temperature, Timeline};
use headstart_shared::units::{Bytes, Nanos};

use super::apps::Ready;
use super::archive::{Finished, by_drive};
use super::decide::Decision;
use super::notes::{Note, Noted, Notes};
use super::table::Owned;
use crate::observe::observer::{Begun, Expected, Observer, Told};
use crate::opening::Refusal;
use crate::plan::used;
use crate::recording::{Backend, Recording};
use crate::replay::{self, Gate, Replay, Stopped};
use crate::roots::Roots;
use crate::service::log::{Level, log};
use crate::trace::recorder::{Recorded, Recorder, Standing};
use crate::watch::milestone::Hints;
use crate::watch::processes::{self, ProcessKey};
use crate::watch::start::Monotonic;

/// When this share of a plan's files was found replaced, the app is learned from anew.
const STALE_SHARE: f64 = 0.1;

/// A launch, when it begins.
#[derive(Debug)]
pub struct Going {
    /// Whose and which.
    pub app: Owned,
    /// Its first process.
    pub first: ProcessKey,
    /// When its start was seen.
    pub at: Monotonic,
    /// The same on the calendar.
    pub began: DateTime<Utc>,
    /// What was executed, to know other instances by.
    pub program: std::path::PathBuf,
    /// How its windows are called.
    pub hints: Hints,
    /// What its person waits for.
    pub expected: Expected,
    /// What is done about it.
    pub decision: Decision,
    /// How cold it is.
    pub cached: Option<f64>,
    /// Which version of the app.
    pub version: u64,
    /// What is carried out.
    pub ready: Option<Arc<Ready>>,
    /// It, at work, and the gate that it began with.
    pub replay: Option<(Replay, Gate)>,
    /// What it is recorded with.
    pub standing: Option<Standing>,
}

/// A launch that is over.
#[derive(Debug)]
pub struct Over {
    /// Its first process.
    pub first: ProcessKey,
    /// Whose and which.
    pub app: Owned,
    /// It; `None` if it was a start that a running instance took over.
    pub finished: Option<Box<Finished>>,
    /// Whether many of its files were found replaced; `None` if nobody looked.
    pub stale: Option<bool>,
    /// The recorder that it took.
    pub took_recorder: Option<Backend>,
    /// The note that it goes on.
    pub note: Option<Note>,
}

impl Going {
    /// Watches it to its end.
    #[must_use]
    pub fn watch(mut self, told: &Receiver<Told>, roots: &Roots, notes: Option<&Notes>) -> Over {
        let took_recorder = self.standing.as_ref().map(Standing::backend);
        let recorder = self.standing.take().and_then(|standing| self.arm(standing, roots));
        let note = notes.and_then(|notes| self.note(notes));
        let mut observer = Observer::new(roots, self.begun(roots), told);
        if let Some(pages) = recorder.as_ref().and_then(Recorder::counter) {
            observer.count_pages(pages);
        }
        observer.watch(|| {});
        let recording = recorder.and_then(|recorder| self.finish(recorder));
        let account = self.replay.take().map(|(replay, gate)| (end(replay), gate));
        let read = account.as_ref().map_or(Bytes(0), |(account, _)| brought_in(account));
        let observed = observer.finish(read);
        let stale = account.as_ref().map(|(account, _)| self.is_stale(account));
        let finished = (!observed.is_hot()).then(|| {
            let learnable = !observed.milestones.is_empty()
                && !observed
                    .exclusions
                    .iter()
                    .any(|e| matches!(e, Exclusion::EndedEarly | Exclusion::Interrupted));
            let read_ahead =
                account.as_ref().map(|(account, gate)| self.read_ahead(account, gate, recording.as_ref()));
            let mut launch = self.launch();
            launch.milestones = observed.milestones;
            launch.exclusions = observed.exclusions;
            launch.usage = observed.usage;
            launch.read_ahead = read_ahead;
            launch.recorded = recording.is_some();
            if launch.recorded {
                launch.exclusions.push(Exclusion::Recorded);
            }
            if account.as_ref().is_some_and(|(account, _)| ran_short(account)) {
                launch.exclusions.push(Exclusion::ShortOfMemory);
            }
            let plans = self.ready.as_ref().map(|ready| ready.plans.as_slice()).unwrap_or_default();
            Box::new(Finished {
                uid: self.app.0,
                timeline: Timeline {
                    format: TIMELINE_FORMAT,
                    launch,
                    processes: observed.processes,
                    samples: observed.samples,
                    priorities: Vec::new(),
                },
                recording: recording.filter(|_| learnable),
                reads: if read > Bytes(0) { by_drive(plans, read) } else { Vec::new() },
            })
        });
        Over { first: self.first, app: self.app, finished, stale, took_recorder, note }
    }

    /// What the observer has to know.
    fn begun(&self, roots: &Roots) -> Begun {
        let running = processes::running_instances(roots, &self.program, self.app.0)
            .iter()
            .any(|other| *other != self.first && other.started < self.first.started);
        Begun {
            first: self.first,
            started: self.at,
            hints: self.hints.clone(),
            expected: self.expected,
            running,
        }
    }

    /// Begins to record.
    fn arm(&self, standing: Standing, roots: &Roots) -> Option<Recorder> {
        let first = self.first.pid;
        let all = || {
            let below = processes::descendants(roots, first);
            std::iter::once(first).chain(below.into_iter().map(|process| process.key.pid)).collect()
        };
        match standing.arm(all) {
            Ok(recorder) => Some(recorder),
            Err(error) => {
                log(Level::Warning, format_args!("cannot record a start of {}: {error}", self.app.1));
                None
            }
        }
    }

    fn finish(&self, recorder: Recorder) -> Option<Recording> {
        let prefetched = self.decision.arm == Arm::Prefetched;
        let run = Recorded { started: self.at, keeper: self.first.pid, prefetched };
        match recorder.finish(run) {
            Ok(recording) => Some(recording),
            Err(error) => {
                log(Level::Warning, format_args!("cannot record a start of {}: {error}", self.app.1));
                None
            }
        }
    }

    /// Notes that it goes on.
    fn note(&self, notes: &Notes) -> Option<Note> {
        match notes.begin(self.first, &Noted { uid: self.app.0, launch: self.launch() }) {
            Ok(note) => Some(note),
            Err(error) => {
                log(Level::Warning, format_args!("a start of {} is not noted: {error}", self.app.1));
                None
            }
        }
    }

    fn launch(&self) -> Launch {
        Launch {
            id: 0,
            app: self.app.1.clone(),
            began: self.began,
            arm: self.decision.arm,
            temperature: Temperature::of(self.cached),
            cached: self.cached,
            milestones: Vec::new(),
            exclusions: Vec::new(),
            usage: headstart_shared::launch::Usage::default(),
            read_ahead: None,
            version: self.version,
            recorded: false,
            tuned: false,
        }
    }

    fn read_ahead(&self, account: &replay::Account, gate: &Gate, recording: Option<&Recording>) -> ReadAhead {
        let opened = gate.opened_at().unwrap_or_default();
        let since_exec = |span: Nanos| (opened + span) - Nanos(self.at.0);
        let planned = self.ready.as_ref().map(|ready| ready.plans.as_slice()).unwrap_or_default();
        let read = account.data.brought_in();
        // Only tracing tells what was touched; what is resident after a prefetch is all that was read.
        let touched = recording.filter(|recording| recording.backend == Backend::Touched);
        ReadAhead {
            read: brought_in(account),
            cached: account.data.already_cached + account.metadata.already_cached,
            used: touched.map(|recording| used(planned, recording).min(read)),
            first_read: since_exec(account.reaction.unwrap_or_default()),
            done: account.time.map(since_exec),
        }
    }

    /// Whether so many files were replaced that the profile is another version's.
    fn is_stale(&self, account: &replay::Account) -> bool {
        let changed = account.skipped.iter().filter(|s| matches!(s.why, Refusal::Changed | Refusal::Missing));
        let all: usize = self.ready.iter().flat_map(|ready| &ready.plans).map(|plan| plan.files.len()).sum();
        #[expect(clippy::cast_precision_loss, reason = "counts of files")]
        let share = changed.count() as f64 / all.max(1) as f64;
        share >= STALE_SHARE
    }
}

fn end(replay: Replay) -> replay::Account {
    if !replay.is_done() {
        replay.stopper().stop();
    }
    replay.finish()
}

fn brought_in(account: &replay::Account) -> Bytes {
    account.data.brought_in() + account.metadata.brought_in()
}

fn ran_short(account: &replay::Account) -> bool {
    matches!(account.stopped, Some(Stopped::MemoryLow | Stopped::MemoryPressure))
}
