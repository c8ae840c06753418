//! What is done at the start of an app, from the kernel's event to the first read. A person waits for it: what takes longer
//! is left to the launch's own thread.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use headstart_shared::bus::{ActivityCode, PauseCode};
use headstart_shared::launch::{Arm, Temperature};
use headstart_shared::policy::AppState;
use headstart_shared::run::AppId;
use rand::RngExt as _;

use super::apps::Ready;
use super::archive::Details;
use super::decide::{Decision, Lots, Situation, decide};
use super::going::Going;
use super::layout::version;
use super::table::{Admission, Ongoing, Owned};
use super::work::Work;
use crate::identify::{self, Facts, Index};
use crate::observe::observer::Expected;
use crate::replay::{self, Gate, Replay};
use crate::service::log::{Level, log};
use crate::sys::identity::User;
use crate::watch::execs::{Exec, FileId};
use crate::watch::milestone::Hints;
use crate::watch::processes::{is_descendant, read_status};
use crate::watch::start::Monotonic;

/// A start that is a launch.
struct Start {
    app: Owned,
    facts: Facts,
    exec: Exec,
    program: PathBuf,
    index: Arc<Index>,
}

/// What a start was recognised as.
enum Recognised {
    App(Box<Start>),
    /// No app.
    Other,
    /// One of too many at once.
    Burst,
}

impl Work<'_, '_> {
    /// A watched program is executed.
    pub(super) fn begin(&mut self, exec: Exec) {
        let start = match self.recognise(exec) {
            Recognised::App(start) => *start,
            Recognised::Other => return self.table.pass(),
            Recognised::Burst => return self.table.let_go(),
        };
        let Start { app, facts, .. } = &start;
        let ongoing = Ongoing { app: app.clone(), process: facts.key };
        let roots = self.roots;
        let is_part = |other: &Ongoing| {
            facts.ancestors.iter().any(|ancestor| ancestor.key == other.process)
                || is_descendant(roots, other.process.pid, facts.key.pid)
        };
        if self.table.admit(ongoing, is_part) == Admission::Watch {
            let going = self.start(start);
            self.watch(going);
        }
    }

    /// Which app it is, if it is one.
    fn recognise(&mut self, exec: Exec) -> Recognised {
        let Some((uid, index)) = self.starter(exec.pid) else { return Recognised::Other };
        // Whichever of the apps with this program it is: that many of them come from no person.
        let Some(likely) = index.apps_of(exec.file).into_iter().next().cloned() else {
            return Recognised::Other;
        };
        if self.table.is_burst(&(uid, likely), exec.at) {
            return Recognised::Burst;
        }
        let Some(facts) = identify::await_exec(self.roots, &index, &exec) else { return Recognised::Other };
        let identify::Decision::App(app) = identify::decide(&facts, &index) else { return Recognised::Other };
        match program(&index, &app, exec.file).or_else(|| facts.image.exe.clone()) {
            Some(program) => {
                Recognised::App(Box::new(Start { app: (uid, app), facts, exec, program, index }))
            }
            None => Recognised::Other,
        }
    }

    /// Whose process it is, and the apps of that user.
    fn starter(&self, pid: i32) -> Option<(u32, Arc<Index>)> {
        let uid = std::fs::metadata(self.roots.proc.join(pid.to_string())).ok()?.uid();
        Some((uid, self.sessions.index(uid)?))
    }

    /// Decides about a launch, and begins to read ahead for it.
    fn start(&mut self, start: Start) -> Going {
        let Start { app, facts, exec, program, index } = start;
        let known = self.apps.get(&app);
        let ready = self.ready(&app);
        let cached = ready.as_ref().and_then(|ready| ready.sample.cached_share(&self.roots.proc));
        let version = version(&program).or(known.version).unwrap_or_default();
        let upgraded = known.version.is_some_and(|before| before != version);
        if upgraded {
            let details = Details { app: Some(app.1.clone()), ..Details::default() };
            self.happened(Some(app.0), ActivityCode::Upgraded, details);
        }
        let situation = Situation {
            policy: known.policy,
            state: known.state.unwrap_or(AppState::Learning { runs: 0, needed: self.config.learn }),
            temperature: Temperature::of(cached),
            planned: ready.as_ref().is_some_and(|ready| !ready.plans.is_empty()),
            paused: self.pause.reason != PauseCode::NotPaused,
            upgraded: upgraded || known.stale,
            recorder: self.standing.is_some(),
        };
        let mut rng = rand::rng();
        let lots = Lots { holdout: rng.random(), record: rng.random() };
        let mut decision = decide(&situation, lots, self.config.shares);
        let replay = match (decision.arm, &ready) {
            (Arm::Prefetched, Some(ready)) => self.replay(&app, facts.key.pid, ready),
            _ => None,
        };
        if replay.is_none() && decision.arm == Arm::Prefetched {
            decision = Decision { arm: Arm::Off, ..decision };
        }
        let entry = index.app(&app.1);
        Going {
            first: facts.key,
            at: exec.at,
            began: on_calendar(exec.at),
            hints: entry.map_or_else(|| Hints::of(None, &program), |entry| entry.windows.clone()),
            expected: match entry {
                Some(entry) if entry.terminal => Expected::Exit,
                _ if self.sessions.sees_windows(app.0) => Expected::Window,
                _ => Expected::Unseen,
            },
            standing: if decision.record { self.standing.take() } else { None },
            app,
            program,
            decision,
            cached,
            version,
            ready,
            replay,
        }
    }

    fn ready(&mut self, app: &Owned) -> Option<Arc<Ready>> {
        match self.apps.ready(&self.store, app) {
            Ok(ready) => ready,
            Err(error) => {
                log(Level::Error, &error);
                None
            }
        }
    }

    /// Begins to read ahead.
    fn replay(&self, app: &Owned, pid: i32, ready: &Ready) -> Option<(Replay, Gate)> {
        let status = read_status(self.roots, pid)?;
        let user = User { uid: status.uid, gid: status.gid, groups: status.groups };
        let options =
            replay::Options { roots: self.roots.clone(), user: Some(user), ..replay::Options::default() };
        let begun = Gate::new().map_err(replay::ReplayError::Start).and_then(|gate| {
            gate.open();
            Ok((Replay::prepare(ready.plans.clone(), &self.mounts, &gate, options)?, gate))
        });
        match begun {
            Ok(begun) => Some(begun),
            Err(error) => {
                log(Level::Warning, format_args!("nothing is read ahead for {}: {error}", app.1));
                None
            }
        }
    }
}

/// A moment just passed on the calendar.
fn on_calendar(at: Monotonic) -> DateTime<Utc> {
    let ago = Monotonic::now().since(at);
    Utc::now() - TimeDelta::nanoseconds(ago.0.cast_signed())
}

/// The path of an app's program that is this file.
fn program(index: &Index, app: &AppId, file: FileId) -> Option<PathBuf> {
    index.app(app)?.programs.iter().find(|program| program.file == file).map(|program| program.real.clone())
}
