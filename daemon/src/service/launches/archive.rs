//! What becomes of a launch that is over: it is stored, learned from and judged.
//!
//! One thread, which alone writes what launches bring, so that no start waits for a database or a plan. A launch that cannot
//! be stored because the disk is full is kept, within limits, until it can.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use chrono::Utc;
use headstart_shared::bus::ActivityCode;
use headstart_shared::launch::{Arm, Exclusion, Launch, Timeline};
use headstart_shared::policy::AppState;
use headstart_shared::run::{AppId, Milestone};
use headstart_shared::units::Bytes;
use headstart_shared::verdict::{self, Verdict};

use super::advance::{After, advance};
use super::layout::{circumstances, layout};
use super::notes::{Note, Noted, Notes};
use super::table::Owned;
use crate::learn::learn;
use crate::measure::prefetch::{Choices, Prefetch};
use crate::mounts::Mounts;
use crate::observe::temperature::Sample;
use crate::plan::Plan;
use crate::recording::Recording;
use crate::roots::Roots;
use crate::service::log::{Level, log};
use crate::service::messages::Notice;
use crate::store::{Activity, Retention, Store, StoreError, StoredPlans};

/// Launches of an app among which one is looked for that was just stored.
const LATEST: u32 = 100;
/// Launches that are kept for a disk with room.
const BACKLOG: usize = 64;
/// How often it is looked whether it has.
const RETRY: Duration = Duration::from_mins(1);
/// How often what is too old is removed.
const UPKEEP: Duration = Duration::from_hours(24);
/// The first time, when the machine has had its boot to itself.
const FIRST_UPKEEP: Duration = Duration::from_mins(10);

/// A launch that is over.
#[derive(Debug)]
pub struct Finished {
    /// Whose.
    pub uid: u32,
    /// It, and what is needed to draw it.
    pub timeline: Timeline,
    /// What it touched, if that is to be learned from.
    pub recording: Option<Recording>,
    /// What was read ahead, by drive.
    pub reads: Vec<(String, Bytes)>,
}

/// What there is to do.
#[derive(Debug)]
pub enum Job {
    /// A launch is over.
    Finished(Box<Finished>, Option<Note>),
    /// A start was handed to a running instance.
    Hot(Owned, Option<Note>),
    /// A person chose something for an app, or for all of a user's.
    Chosen(u32, Option<AppId>),
    /// Mounts or drives have changed: look whether plans still fit.
    Replan,
    /// Something happened to the machine or a user.
    Happened(Option<u32>, ActivityCode, Details),
    /// Another configuration.
    Settings(Settings),
    /// Finish what is queued, and end.
    Stop,
}

/// What an entry about what happened holds beside its kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// The app.
    pub app: Option<AppId>,
    /// The launch.
    pub launch: Option<u64>,
    /// How many.
    pub count: Option<u64>,
    /// A file, a line, a system's message.
    pub detail: Option<String>,
}

/// What of the configuration concerns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Launches that an app is learned from.
    pub learn: u32,
    /// What is kept.
    pub retention: Retention,
}

/// The archive.
pub struct Archive<'a> {
    /// Where the kernel's file systems are.
    pub roots: &'a Roots,
    /// The history.
    pub store: Store,
    /// What of the configuration concerns it.
    pub settings: Settings,
    /// Takes what there is to tell.
    pub notices: &'a dyn Fn(Notice),
    /// Told whose and which app is another than before; all of a user's without an ID.
    pub changed: &'a dyn Fn(u32, Option<AppId>),
    /// Launches that wait for room.
    pub backlog: VecDeque<(Finished, Option<Note>)>,
    /// Whether the last attempt to write failed, so that it is told once.
    pub failing: bool,
}

impl std::fmt::Debug for Archive<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Archive").field("store", &self.store).finish_non_exhaustive()
    }
}

impl Archive<'_> {
    /// Works until it is told to stop, or nobody is left to tell it.
    pub fn run(mut self, jobs: &Receiver<Job>) {
        let mut upkeep = Instant::now() + FIRST_UPKEEP;
        loop {
            let next = if self.backlog.is_empty() { upkeep } else { upkeep.min(Instant::now() + RETRY) };
            match jobs.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(Job::Stop) | Err(RecvTimeoutError::Disconnected) => return self.retry(),
                Ok(job) => self.carry_out(job),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if Instant::now() >= upkeep {
                upkeep = Instant::now() + UPKEEP;
                let kept = self.store.maintain(Utc::now(), &self.settings.retention).map(drop);
                self.written(kept);
            }
            if !self.failing {
                self.retry();
            }
        }
    }

    fn carry_out(&mut self, job: Job) {
        match job {
            Job::Finished(finished, note) => self.keep(*finished, note),
            Job::Hot((uid, app), note) => {
                let counted = self.store.record_hot(uid, &app);
                note.into_iter().for_each(Note::done);
                if self.written(counted) {
                    self.tell_of(uid, app);
                }
            }
            Job::Chosen(uid, app) => {
                let moved = self.chosen(uid, app.as_ref());
                self.written(moved);
                (self.changed)(uid, app);
            }
            Job::Replan => {
                let replanned = self.replan_all();
                self.written(replanned);
            }
            Job::Happened(uid, kind, details) => self.happened(uid, kind, details),
            Job::Settings(settings) => self.settings = settings,
            Job::Stop => {}
        }
    }

    /// Stores a launch, or keeps it for later.
    fn keep(&mut self, finished: Finished, note: Option<Note>) {
        let stored = self.store_launch(&finished);
        if self.written(stored) {
            return note.into_iter().for_each(Note::done);
        }
        if self.backlog.len() == BACKLOG {
            self.backlog.pop_front();
        }
        self.backlog.push_back((finished, note));
    }

    /// Stores what a daemon before this one saw begin and was killed before it saw the end of.
    pub fn take_over(&mut self, notes: Option<&Notes>) {
        let left = match notes.map_or_else(|| Ok(Vec::new()), Notes::left) {
            Ok(left) => left,
            Err(error) => {
                return log(
                    Level::Warning,
                    format_args!("launches that were interrupted are not counted: {error}"),
                );
            }
        };
        for (note, Noted { uid, mut launch }) in left {
            launch.exclusions.push(Exclusion::Interrupted);
            let stored = match self.is_stored(uid, &launch) {
                Ok(true) => Ok(()),
                Ok(false) => self.store.record_launch(uid, &launch, None).map(drop),
                Err(error) => Err(error),
            };
            if self.written(stored) {
                note.done();
                self.tell_of(uid, launch.app);
            }
        }
    }

    /// Whether the daemon that noted it came to store it as well.
    fn is_stored(&self, uid: u32, launch: &Launch) -> Result<bool, StoreError> {
        let latest = self.store.launches(uid, Some(&launch.app), None, LATEST)?.value;
        Ok(latest.iter().any(|stored| stored.began == launch.began))
    }

    fn retry(&mut self) {
        while let Some((finished, note)) = self.backlog.pop_front() {
            let stored = self.store_launch(&finished);
            if !self.written(stored) {
                self.backlog.push_front((finished, note));
                return;
            }
            note.into_iter().for_each(Note::done);
        }
    }

    /// Stores a launch, and then makes of it what there is to make. Once it is stored it is not stored again: what fails
    /// after that is made with the next launch.
    fn store_launch(&mut self, finished: &Finished) -> Result<(), StoreError> {
        let Finished { uid, timeline, .. } = finished;
        let mut launch = timeline.launch.clone();
        launch.id = self.store.record_launch(*uid, &launch, Some(timeline))?;
        (self.notices)(Notice::Launched { uid: *uid, launch: Box::new(launch.clone()) });
        let made = self.make_of(finished, &launch);
        self.written(made);
        self.tell_of(*uid, launch.app);
        Ok(())
    }

    fn make_of(&mut self, finished: &Finished, launch: &Launch) -> Result<(), StoreError> {
        let today = Utc::now().date_naive();
        for (drive, bytes) in &finished.reads {
            self.store.add_read(today, drive, *bytes)?;
        }
        if let Some(recording) = &finished.recording {
            self.learn(finished.uid, launch, recording)?;
        }
        self.move_on(finished.uid, &launch.app, Some(launch))
    }

    fn learn(&mut self, uid: u32, launch: &Launch, recording: &Recording) -> Result<(), StoreError> {
        let app = &launch.app;
        let known = self.store.profile(uid, app)?.value;
        let profile = learn(known, app, recording);
        self.store.save_profile(uid, &profile)?;
        let sample = Sample::of(&profile).to_bytes();
        self.plan(uid, app, &profile, sample)?;
        let details = Details {
            app: Some(app.clone()),
            launch: Some(launch.id),
            count: Some(u64::from(profile.runs)),
            detail: None,
        };
        self.happened(Some(uid), ActivityCode::Learned, details);
        Ok(())
    }

    fn plan(
        &mut self,
        uid: u32,
        app: &AppId,
        profile: &crate::profile::Profile,
        sample: Vec<u8>,
    ) -> Result<(), StoreError> {
        let Ok(mounts) = Mounts::of(self.roots, None) else { return Ok(()) };
        let plans = Prefetch::plan(profile, Choices::default(), &mounts, self.roots).plans;
        let layout = layout(&plans, &mounts, self.roots);
        self.store.save_plans(uid, app, &StoredPlans { layout, plans, sample })
    }

    /// Makes the claim about an app anew, and moves its state on.
    fn move_on(&mut self, uid: u32, app: &AppId, launch: Option<&Launch>) -> Result<(), StoreError> {
        let Some(record) = self.store.app_record(uid, app)? else { return Ok(()) };
        let plans = self.store.plans(uid, app)?.value.map(|stored| stored.plans).unwrap_or_default();
        let version = launch.map(|launch| launch.version).or(record.version).unwrap_or_default();
        let now = circumstances(version, &plans);
        let verdict = self.judge(uid, app)?;
        self.store.save_verdict(uid, app, &verdict)?;
        let state = record.state.unwrap_or(AppState::Learning { runs: 0, needed: self.settings.learn });
        let after = After {
            policy: record.policy,
            learned: record.profile.map_or(0, |profile| profile.runs),
            needed: self.settings.learn,
            plans_read: plans.iter().any(|plan| plan.data() + plan.metadata() > Bytes(0)),
            give_up: verdict::give_up(&verdict),
            changed: record.circumstances.is_some_and(|then| then != now),
        };
        let next = advance(state, &after);
        if record.state == Some(next) && record.circumstances == Some(now) {
            return Ok(());
        }
        let gave_up = |state| matches!(state, AppState::WithoutGain { .. });
        if gave_up(state) && !gave_up(next) {
            self.store.restart_verdict(uid, app)?;
        }
        self.store.set_state(uid, app, next, now)?;
        if let Some(kind) = told_as(state, next) {
            let details = Details {
                app: Some(app.clone()),
                launch: launch.map(|launch| launch.id),
                ..Details::default()
            };
            self.happened(Some(uid), kind, details);
        }
        Ok(())
    }

    fn judge(&self, uid: u32, app: &AppId) -> Result<Verdict, StoreError> {
        let each = u32::try_from(verdict::WINDOW).unwrap_or(u32::MAX);
        Ok(judge(&self.store.counted(uid, app, each)?))
    }

    /// A person chose something: the state follows at once.
    fn chosen(&mut self, uid: u32, app: Option<&AppId>) -> Result<(), StoreError> {
        let records = match app {
            Some(app) => self.store.app_record(uid, app)?.into_iter().collect(),
            None => self.store.app_records(uid)?,
        };
        // An app that was never launched has no state yet.
        for record in records.into_iter().filter(|record| record.state.is_some()) {
            self.move_on(uid, &record.app, None)?;
        }
        Ok(())
    }

    /// Makes plans anew that are for other mounts or drives.
    fn replan_all(&mut self) -> Result<(), StoreError> {
        let Ok(mounts) = Mounts::of(self.roots, None) else { return Ok(()) };
        for uid in self.store.users()? {
            for record in self.store.app_records(uid)?.into_iter().filter(|r| r.profile.is_some()) {
                let stored = self.store.plans(uid, &record.app)?.value;
                let fits = |stored: &StoredPlans| layout(&stored.plans, &mounts, self.roots) == stored.layout;
                if stored.as_ref().is_some_and(fits) {
                    continue;
                }
                let Some(profile) = self.store.profile(uid, &record.app)?.value else { continue };
                let sample = stored.map_or_else(|| Sample::of(&profile).to_bytes(), |stored| stored.sample);
                self.plan(uid, &record.app, &profile, sample)?;
                self.move_on(uid, &record.app, None)?;
                (self.changed)(uid, Some(record.app));
            }
        }
        Ok(())
    }

    /// Remembers and tells what happened.
    fn happened(&mut self, uid: Option<u32>, kind: ActivityCode, details: Details) {
        let Details { app, launch, count, detail } = details;
        let mut activity = Activity { id: 0, at: Utc::now(), kind: kind.into(), app, launch, count, detail };
        match self.store.add_activity(uid, &activity) {
            Ok(id) => activity.id = id,
            Err(error) => log(Level::Error, &error),
        }
        (self.notices)(Notice::Activity { uid, activity });
    }

    fn tell_of(&self, uid: u32, app: AppId) {
        (self.changed)(uid, Some(app.clone()));
        (self.notices)(Notice::AppChanged { uid, app });
    }

    /// Whether something could be written; if not, that is told, once.
    fn written(&mut self, result: Result<(), StoreError>) -> bool {
        let Err(error) = result else {
            self.failing = false;
            return true;
        };
        log(Level::Error, &error);
        if !self.failing {
            self.failing = true;
            let details = Details { detail: Some(error.to_string()), ..Details::default() };
            self.happened(None, ActivityCode::StorageFailed, details);
        }
        false
    }
}

/// What a change of state is told as, if at all.
fn told_as(before: AppState, after: AppState) -> Option<ActivityCode> {
    match (before, after) {
        (AppState::WithoutGain { .. }, AppState::Prefetching | AppState::Learning { .. }) => {
            Some(ActivityCode::TriedAgain)
        }
        (AppState::Prefetching, AppState::Prefetching)
        | (AppState::WithoutGain { .. }, AppState::WithoutGain { .. }) => None,
        (_, AppState::Prefetching) => Some(ActivityCode::NowPrefetched),
        (_, AppState::WithoutGain { .. }) => Some(ActivityCode::GaveUp),
        _ => None,
    }
}

/// The claim that counted launches allow. All times of it are to the same milestone: the one a person waits for, if most
/// launches have it.
fn judge(counted: &[Launch]) -> Verdict {
    let has = |milestone| counted.iter().filter(|launch| launch.time_to(milestone).is_some()).count();
    let milestone = [Milestone::FirstWindow, Milestone::Exit]
        .into_iter()
        .find(|milestone| has(*milestone) * 2 > counted.len())
        .unwrap_or(Milestone::Settled);
    let times = |arm| -> Vec<f64> {
        let of_arm = counted.iter().filter(|launch| launch.arm == arm);
        of_arm.filter_map(|launch| Some(launch.time_to(milestone)?.as_secs_f64())).collect()
    };
    verdict::judge(milestone, &times(Arm::HeldOut), &times(Arm::Prefetched))
}

/// What was read ahead from each drive, of an account of all of them: in proportion to what was planned.
#[must_use]
pub fn by_drive(plans: &[Plan], read: Bytes) -> Vec<(String, Bytes)> {
    let planned = |plan: &Plan| (plan.data() + plan.metadata()).0;
    let all: u64 = plans.iter().map(planned).sum();
    let part = |plan: &Plan| {
        let part = u128::from(read.0) * u128::from(planned(plan)) / u128::from(all.max(1));
        Bytes(u64::try_from(part).unwrap_or(u64::MAX))
    };
    plans.iter().map(|plan| (plan.target.name.clone(), part(plan))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::launches::testing::launch;
    use crate::watch::processes::ProcessKey;

    #[test]
    fn what_a_killed_daemon_left_is_counted_once() {
        let (folder, roots) = (tempfile::tempdir().unwrap(), Roots::default());
        let notes = Notes::open(folder.path()).unwrap();
        let settings = Settings::from(&crate::service::config::Config::default());
        let mut archive = Archive {
            roots: &roots,
            store: Store::in_memory().unwrap(),
            settings,
            notices: &|_| (),
            changed: &|_, _| (),
            backlog: VecDeque::new(),
            failing: false,
        };
        let (stored, cut_off) = (launch("org.example.Stored"), launch("org.example.CutOff"));
        archive.store.record_launch(1000, &stored, None).unwrap();
        for (pid, launch) in [(1, &stored), (2, &cut_off)] {
            let noted = Noted { uid: 1000, launch: launch.clone() };
            notes.begin(ProcessKey { pid, started: 1 }, &noted).unwrap();
        }
        archive.take_over(Some(&notes));
        let launches = archive.store.launches(1000, None, None, 10).unwrap().value;
        assert_eq!(launches.len(), 2, "{launches:?}");
        assert_eq!(
            (&launches[0].app, &launches[0].exclusions[..]),
            (&cut_off.app, &[Exclusion::Interrupted][..])
        );
        assert_eq!(launches[1].exclusions, []);
        assert!(notes.left().unwrap().is_empty());
    }
}
