//! The loop that waits for starts and requests.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender as Channel};
use std::thread::Scope;
use std::time::Duration;

use chrono::Utc;
use headstart_shared::bus::{ActivityCode, PauseCode};
use headstart_shared::launch::Exclusion;
use headstart_shared::run::AppId;
use headstart_shared::units::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::LaunchesError;
use super::apps::Apps;
use super::archive::{Details, Job, Settings};
use super::going::{Going, Over};
use super::notes::{Note, Notes};
use super::pausing::Person;
use super::sessions::{self, Sessions};
use super::table::{Counts, Owned, Table};
use crate::mounts::Mounts;
use crate::observe::observer::Told;
use crate::recording::Backend;
use crate::roots::Roots;
use crate::service::config::Config;
use crate::service::log::{Level, log};
use crate::service::mailbox::{Mailbox, Sender};
use crate::service::messages::{Notice, Pause, Request, SharedFigures};
use crate::store::Store;
use crate::trace::backend;
use crate::trace::recorder::Standing;
use crate::watch::changes::{Change, Changes, Databases};
use crate::watch::execs::{Event, Execs};
use crate::watch::processes::ProcessKey;

/// How often it says that it is alive, and looks at what nobody tells of.
const TURN: Duration = Duration::from_secs(10);

/// What its own threads tell it.
#[derive(Debug)]
pub(super) enum Inside {
    /// A launch is over.
    Over(Box<Over>),
    /// The history says something else of an app; of all of a user's without an ID.
    Changed(u32, Option<AppId>),
    /// A recorder is ready.
    Ready(Backend, Box<Standing>),
    /// None can be.
    Unrecordable(String),
    /// What a user has installed.
    Installed(u32, sessions::Known),
}

/// The loop and what it knows.
pub(super) struct Work<'scope, 'env> {
    pub(super) scope: &'scope Scope<'scope, 'env>,
    pub(super) roots: &'env Roots,
    pub(super) store: Store,
    notes: Option<&'env Notes>,
    pub(super) config: Arc<Config>,
    pub(super) apps: Apps,
    pub(super) sessions: Sessions,
    pub(super) execs: Execs,
    changes: Changes,
    pub(super) mounts: Arc<Mounts>,
    pub(super) table: Table,
    going: Vec<Watched>,
    pub(super) standing: Option<Standing>,
    pub(super) pause: Pause,
    person: Person,
    pub(super) jobs: Channel<Job>,
    inside: Sender<Inside>,
    notices: &'env (dyn Fn(Notice) + Send + Sync),
    figures: SharedFigures,
    lost: u64,
    told_counts: Counts,
    read_today: (chrono::NaiveDate, Bytes),
}

/// A launch that has a thread.
struct Watched {
    first: ProcessKey,
    app: Owned,
    told: mpsc::Sender<Told>,
    /// Whether its person wants it forgotten.
    forgotten: bool,
    /// Whether packages changed while it went on, or shortly before.
    upgrading: bool,
}

impl<'scope, 'env> Work<'scope, 'env> {
    /// Everything made ready.
    #[expect(
        clippy::too_many_arguments,
        reason = "what the two halves of the service share, each of another kind"
    )]
    pub(super) fn new(
        scope: &'scope Scope<'scope, 'env>,
        roots: &'env Roots,
        store: Store,
        notes: Option<&'env Notes>,
        config: Arc<Config>,
        jobs: Channel<Job>,
        inside: Sender<Inside>,
        notices: &'env (dyn Fn(Notice) + Send + Sync),
        figures: SharedFigures,
    ) -> Result<Self, LaunchesError> {
        let today = Utc::now().date_naive();
        let read = store.read_on(today)?;
        let this = Self {
            apps: Apps::load(&store)?,
            sessions: Sessions::default(),
            execs: Execs::new()?,
            changes: Changes::new(roots, Databases::default())?,
            mounts: Arc::new(Mounts::of(roots, None)?),
            table: Table::default(),
            going: Vec::new(),
            standing: None,
            pause: Pause::default(),
            person: Person::default(),
            lost: 0,
            told_counts: Counts::default(),
            read_today: (today, read),
            scope,
            roots,
            store,
            notes,
            config,
            jobs,
            inside,
            notices,
            figures,
        };
        this.prepare_recorder(None);
        this.job(Job::Replan);
        Ok(this)
    }

    /// Works until it is told to stop; then waits for the launches that go on to be stored as interrupted.
    pub(super) fn run(mut self, requests: &Mailbox<Request>, inside: &Mailbox<Inside>, alive: &dyn Fn()) {
        let mut execs = Vec::new();
        loop {
            alive();
            self.turn();
            self.wait(requests, inside);
            self.execs.read(&mut execs);
            for event in execs.drain(..) {
                match event {
                    Event::Exec(exec) => self.begin(exec),
                    Event::Lost => self.lost += 1,
                }
            }
            for message in inside.take() {
                self.hear(message);
            }
            for request in requests.take() {
                if matches!(request, Request::Stop) {
                    return self.stop(inside);
                }
                self.take(request);
            }
            for change in self.changes.take() {
                self.follow(&change);
            }
        }
    }

    /// Waits for whatever comes first.
    fn wait(&self, requests: &Mailbox<Request>, inside: &Mailbox<Inside>) {
        let mut fds = [self.execs.as_fd(), requests.as_fd(), inside.as_fd(), self.changes.as_fd()]
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let timeout = Timespec::try_from(TURN).ok();
        // Interrupted, or out of memory for a moment: the descriptors are read without waiting.
        let _ = poll(&mut fds, timeout.as_ref());
    }

    /// What is looked at each time, because nobody tells of it.
    fn turn(&mut self) {
        let now = Utc::now();
        self.person = self.person.at(now);
        if now.date_naive() != self.read_today.0 {
            self.read_today = (now.date_naive(), Bytes(0));
        }
        let pause = self.person.and(self.machine());
        if pause != self.pause {
            self.pause = pause;
            (self.notices)(Notice::Pause(pause));
            let (paused, detail) = (pause.reason != PauseCode::NotPaused, Details::default());
            let kind = if paused { ActivityCode::Paused } else { ActivityCode::Resumed };
            self.happened(
                None,
                kind,
                Details { count: paused.then(|| u32::from(pause.reason).into()), ..detail },
            );
        }
        self.count();
    }

    /// Why the machine's state asks for a pause.
    fn machine(&self) -> Option<PauseCode> {
        let spent = self.config.daily_budget.is_some_and(|budget| self.read_today.1 >= budget);
        spent.then_some(PauseCode::BudgetSpent)
    }

    /// Tells what is counted.
    fn count(&mut self) {
        let counts = self.table.counts();
        let unwatched = counts.unwatched - self.told_counts.unwatched;
        if unwatched > 0 {
            self.happened(
                None,
                ActivityCode::Burst,
                Details { count: Some(unwatched), ..Details::default() },
            );
        }
        self.told_counts = counts;
        let mut figures = self.figures.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if self.lost > figures.lost {
            let count = Some(self.lost - figures.lost);
            self.happened(None, ActivityCode::EventsLost, Details { count, ..Details::default() });
        }
        (figures.prefetching, figures.learning) = self.apps.counts();
        figures.watched = u32::try_from(self.execs.len()).unwrap_or(u32::MAX);
        figures.lost = self.lost;
        figures.starts = counts;
    }

    /// Takes what its own threads tell.
    fn hear(&mut self, message: Inside) {
        match message {
            Inside::Over(over) => self.over(*over),
            Inside::Changed(uid, app) => {
                if let Err(error) = self.apps.reload(&self.store, uid, app.as_ref()) {
                    log(Level::Error, &error);
                }
            }
            Inside::Ready(backend, standing) => {
                self.standing = Some(*standing);
                self.set_backend(Some(backend));
            }
            Inside::Installed(uid, known) => {
                self.sessions.set_installed(uid, known);
                self.watch_programs();
            }
            Inside::Unrecordable(why) => {
                log(
                    Level::Warning,
                    format_args!("launches cannot be recorded, so nothing new is learned: {why}"),
                );
                self.set_backend(None);
            }
        }
    }

    fn set_backend(&self, backend: Option<Backend>) {
        self.figures.lock().unwrap_or_else(std::sync::PoisonError::into_inner).backend = backend;
    }

    /// A launch is over.
    fn over(&mut self, over: Over) {
        self.table.over(over.first);
        let Some(at) = self.going.iter().position(|going| going.first == over.first) else { return };
        let going = self.going.swap_remove(at);
        if let Some(backend) = over.took_recorder {
            self.prepare_recorder(Some(backend));
        }
        if let Some(stale) = over.stale {
            self.apps.set_stale(&over.app, stale);
        }
        if going.forgotten {
            return over.note.into_iter().for_each(Note::done);
        }
        let Some(mut finished) = over.finished else { return self.job(Job::Hot(over.app, over.note)) };
        if going.upgrading {
            finished.timeline.launch.exclusions.push(Exclusion::Upgrading);
        }
        self.read_today.1 += finished.reads.iter().map(|(_, bytes)| *bytes).sum();
        self.job(Job::Finished(finished, over.note));
    }

    /// Takes a request.
    fn take(&mut self, request: Request) {
        match request {
            Request::Session(session) => {
                let uid = session.uid;
                if self.sessions.begin(session) {
                    self.read_installed(uid);
                }
            }
            Request::SessionOver { client } => {
                self.sessions.end(&client);
                self.watch_programs();
            }
            Request::Window(window) => {
                for going in self.going.iter().filter(|going| going.app.0 == window.uid) {
                    let _ = going.told.send(Told::Window(window.clone()));
                }
            }
            Request::AppChanged { uid, app } => {
                // The state follows what a person chose, and then what is known here follows the state.
                self.job(Job::Chosen(uid, app));
            }
            Request::Forgotten { uid, app } => {
                for going in &mut self.going {
                    going.forgotten |=
                        going.app.0 == uid && app.as_ref().is_none_or(|app| going.app.1 == *app);
                }
                self.hear(Inside::Changed(uid, app));
            }
            Request::Pause(until) => {
                self.person = Person::Paused(until);
                self.turn();
            }
            Request::Resume => {
                self.person = Person::Silent;
                self.turn();
            }
            Request::Config(config) => {
                self.job(Job::Settings(Settings::from(&*config)));
                self.config = config;
                self.turn();
            }
            Request::Stop => {}
        }
    }

    /// Follows a change of the machine.
    fn follow(&mut self, change: &Change) {
        match change {
            Change::Entries | Change::Executables(_) => {
                self.sessions.users().into_iter().for_each(|uid| self.read_installed(uid));
            }
            Change::Mounts => {
                match Mounts::of(self.roots, None) {
                    Ok(mounts) => self.mounts = Arc::new(mounts),
                    Err(error) => log(Level::Error, &error),
                }
                self.watch_programs();
                self.job(Job::Replan);
            }
            // Each launch looks itself whether the machine slept; what was cached may be gone, which each looks at as well.
            Change::Resumed => {}
            Change::Packages => self.going.iter_mut().for_each(|going| going.upgrading = true),
        }
    }

    /// Watches the programs of all apps of all sessions.
    fn watch_programs(&mut self) {
        let programs = self.sessions.programs();
        let unwatched = self.changes.watch(&self.sessions.folders());
        if unwatched > 0 {
            log(
                Level::Warning,
                format_args!(
                    "{unwatched} folders with apps are not watched; is fs.inotify.max_user_watches low?"
                ),
            );
        }
        for error in self.execs.watch_only(programs) {
            log(Level::Error, &error);
        }
    }

    /// Gives a launch its thread.
    pub(super) fn watch(&mut self, going: Going) {
        let (sender, told) = mpsc::channel();
        let (first, app) = (going.first, going.app.clone());
        let (roots, notes, inside) = (self.roots, self.notes, self.inside.clone());
        let thread = std::thread::Builder::new().name("launch".into()).stack_size(512 << 10);
        let watched = thread.spawn_scoped(self.scope, move || {
            inside.send(Inside::Over(Box::new(going.watch(&told, roots, notes))));
        });
        match watched {
            Ok(_) => {
                let upgrading = self.changes.is_upgrading();
                self.going.push(Watched { first, app, told: sender, forgotten: false, upgrading });
            }
            Err(error) => {
                log(Level::Warning, format_args!("a start of {} is not watched: {error}", app.1));
                self.table.over(first);
            }
        }
    }

    /// Reads in a thread what a user has installed, since that touches drives.
    fn read_installed(&self, uid: u32) {
        let (inside, mounts) = (self.inside.clone(), Arc::clone(&self.mounts));
        let sessions = self.sessions.of(uid);
        let thread = std::thread::Builder::new().name("installed".into());
        let started = thread.spawn_scoped(self.scope, move || {
            inside.send(Inside::Installed(uid, sessions::read(uid, &sessions, &mounts)));
        });
        if let Err(error) = started {
            log(Level::Warning, format_args!("the apps of user {uid} are not known: {error}"));
        }
    }

    /// Makes a recorder ready in a thread, since that takes the kernel a while; of a way that is known to work, or of the
    /// finest that does.
    fn prepare_recorder(&self, known: Option<Backend>) {
        let (roots, inside) = (self.roots, self.inside.clone());
        let thread = std::thread::Builder::new().name("recorder".into());
        let started = thread.spawn_scoped(self.scope, move || {
            inside.send(prepared(known, roots));
        });
        if let Err(error) = started {
            log(Level::Warning, format_args!("the next launch is not recorded: {error}"));
        }
    }

    pub(super) fn happened(&self, uid: Option<u32>, kind: ActivityCode, details: Details) {
        self.job(Job::Happened(uid, kind, details));
    }

    fn job(&self, job: Job) {
        // The archive ends when this does, not before.
        let _ = self.jobs.send(job);
    }

    /// Ends the launches that go on, stores them, and lets the archive end.
    fn stop(mut self, inside: &Mailbox<Inside>) {
        for going in &self.going {
            let _ = going.told.send(Told::Stop);
        }
        while !self.going.is_empty() {
            let mut fds = [PollFd::new(inside, PollFlags::IN)];
            let _ = poll(&mut fds, Timespec::try_from(TURN).ok().as_ref());
            for message in inside.take() {
                if let Inside::Over(mut over) = message {
                    // No further recorder.
                    over.took_recorder = None;
                    self.over(*over);
                }
            }
        }
        self.job(Job::Stop);
    }
}

/// A recorder that is ready, or why there is none.
fn prepared(known: Option<Backend>, roots: &Roots) -> Inside {
    let backend = match known {
        Some(known) => known,
        None => match backend::choose(roots) {
            backend::Choice { backend: Some(backend), .. } => backend,
            backend::Choice { failures, .. } => {
                let why: Vec<String> = failures.into_iter().map(|(_, why)| why).collect();
                return Inside::Unrecordable(why.join("; "));
            }
        },
    };
    match Standing::prepare(backend, roots) {
        Ok(standing) => Inside::Ready(backend, Box::new(standing)),
        Err(error) => Inside::Unrecordable(error.to_string()),
    }
}
