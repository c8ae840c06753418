//! The loop with the real kernel: an app of the test's own, started as a desktop starts it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use headstart_shared::bus::ActivityCode;
use headstart_shared::launch::{Arm, Exclusion, Launch, Temperature};
use headstart_shared::policy::{AppState, Policy};
use headstart_shared::run::{AppId, Milestone};
use headstart_shared::units::Bytes;
use tempfile::TempDir;

use super::decide::Shares;
use super::*;
use crate::service::mailbox::Sender;
use crate::service::messages::{Request, Session, Window};
use crate::sys::readahead::evict;
use crate::watch::processes::is_descendant;
use crate::watch::start::Monotonic;
use crate::watch::testing::is_root;

const APP: &str = "org.example.Test";
/// Large enough that no sample misses whether it is cached.
const SIZE: usize = 3 << 20;

/// An installed app that reads its data and stays.
struct App {
    folder: TempDir,
}

impl App {
    fn new() -> Self {
        // On a drive, and not where temporary files are: these are never learned from.
        let beside = std::env::current_exe().unwrap();
        let beside = beside.parent().unwrap();
        let app = Self { folder: tempfile::Builder::new().prefix("app-").tempdir_in(beside).unwrap() };
        for folder in ["share/applications", "bin", "data"] {
            fs::create_dir_all(app.path(folder)).unwrap();
        }
        for number in 0..4 {
            let path = app.path(&format!("data/{number}"));
            fs::write(&path, vec![number + 1; SIZE]).unwrap();
            fs::File::open(path).unwrap().sync_all().unwrap();
        }
        let data = app.path("data");
        // As with real applications, what is large is read when the loader and the libraries have been.
        app.install(&format!(
            "#!/bin/sh\nsleep 0.1\ncat {}/* >/dev/null\nsleep 60 &\nwait\n",
            data.display()
        ));
        let entry =
            format!("[Desktop Entry]\nType=Application\nName=Test\nExec={}\n", app.program().display());
        fs::write(app.path(&format!("share/applications/{APP}.desktop")), entry).unwrap();
        app
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn program(&self) -> PathBuf {
        self.path("bin/test-app")
    }

    /// Puts another program in the old one's place, as a package manager does.
    fn install(&self, script: &str) {
        let new = self.path("bin/new");
        fs::write(&new, script).unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(new, self.program()).unwrap();
    }

    fn make_cold(&self) {
        for file in fs::read_dir(self.path("data")).unwrap() {
            evict(fs::File::open(file.unwrap().path()).unwrap()).unwrap();
        }
    }

    fn session(&self) -> Session {
        Session {
            client: ":1.1".into(),
            uid: 0,
            data_dirs: vec![self.path("share")],
            path: vec![self.path("bin")],
            desktop: None,
            sees_windows: true,
        }
    }
}

/// The loop at work.
struct Service {
    requests: Sender<Request>,
    notices: Receiver<Notice>,
    figures: SharedFigures,
    thread: JoinHandle<Result<(), LaunchesError>>,
    state: TempDir,
}

impl Service {
    fn start(config: Config) -> Self {
        let state = tempfile::tempdir().unwrap();
        let (requests, mailbox) = mailbox().unwrap();
        let (sender, notices) = channel();
        let figures = SharedFigures::default();
        let inputs = Inputs {
            roots: Roots::default(),
            state_dir: state.path().into(),
            runtime_dir: state.path().join("run"),
            config: Arc::new(config),
            mailbox,
            notices: Box::new(move |notice| drop(sender.send(notice))),
            alive: Box::new(|| ()),
            figures: Arc::clone(&figures),
        };
        let thread = std::thread::spawn(move || run(inputs));
        Self { requests, notices, figures, thread, state }
    }

    fn tell(&self, request: Request) {
        assert!(self.requests.send(request));
    }

    /// Waits until something is told.
    fn until<T>(&self, what: &str, mut find: impl FnMut(&Notice) -> Option<T>) -> T {
        let deadline = Instant::now() + Duration::from_secs(40);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let notice =
                self.notices.recv_timeout(left).unwrap_or_else(|_| panic!("waited too long for {what}"));
            if let Some(found) = find(&notice) {
                return found;
            }
        }
    }

    /// Waits until the session's apps are watched and a recorder is ready.
    fn until_ready(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let figures = self.figures.lock().unwrap().clone();
            if figures.watched > 0 && figures.backend.is_some() {
                return;
            }
            assert!(Instant::now() < deadline, "not ready: {figures:?}");
            std::thread::sleep(Duration::from_millis(20));
            // Whatever it is told makes it count anew.
            self.tell(Request::Resume);
        }
    }

    fn launch(&self, app: &App) -> Launch {
        // The next recorder takes the kernel a while.
        std::thread::sleep(Duration::from_millis(500));
        self.launch_with(app, true).0
    }

    /// Starts the app, tells of its window if it is to have one, and gives the launch as it was stored.
    fn launch_with(&self, app: &App, window: bool) -> (Launch, Monotonic) {
        let before = Monotonic::now();
        let mut child = Command::new(app.program()).spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        if window {
            std::thread::sleep(Duration::from_millis(300));
            self.tell(Request::Window(Window {
                uid: 0,
                at: Monotonic::now(),
                pid: Some(pid),
                names: Vec::new(),
            }));
        } else {
            std::thread::sleep(Duration::from_millis(100));
            end(&mut child);
        }
        let launch = self.until("the launch", |notice| match notice {
            Notice::Launched { launch, .. } => Some((**launch).clone()),
            _ => None,
        });
        end(&mut child);
        (launch, before)
    }

    /// Waits until the app is in this state.
    fn until_state(&self, app: &AppId, state: AppState) {
        let store = Store::open(self.state.path()).unwrap().store;
        let deadline = Instant::now() + Duration::from_secs(20);
        while store.app_record(0, app).unwrap().and_then(|record| record.state) != Some(state) {
            assert!(Instant::now() < deadline, "{:?}", store.app_record(0, app));
            std::thread::sleep(Duration::from_millis(20));
        }
        // What the archive has told, the loop has yet to hear.
        std::thread::sleep(Duration::from_millis(100));
    }

    fn stop(self) -> (Store, TempDir) {
        self.tell(Request::Stop);
        self.thread.join().unwrap().unwrap();
        (Store::open(self.state.path()).unwrap().store, self.state)
    }
}

/// Ends an app and what it has started.
fn end(child: &mut Child) {
    let roots = Roots::default();
    let pid = i32::try_from(child.id()).unwrap();
    let own: Vec<i32> = crate::watch::processes::descendants(&roots, pid).iter().map(|p| p.key.pid).collect();
    assert!(own.iter().all(|below| is_descendant(&roots, pid, *below) || !Path::new(&format!("/proc/{below}")).exists()));
    for pid in own.into_iter().chain([pid]) {
        if let Some(pid) = rustix::process::Pid::from_raw(pid) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
    child.wait().unwrap();
}

fn config(learn: u32, holdout: f64) -> Config {
    Config { learn, shares: Shares { holdout, record: 0.0 }, ..Config::default() }
}

fn app_id() -> AppId {
    AppId(APP.into())
}

#[test]
fn an_app_is_learned_from_and_then_prefetched_and_an_upgrade_is_learned_again() {
    if !is_root() {
        return;
    }
    let app = App::new();
    let service = Service::start(config(1, 0.0));
    service.tell(Request::Session(app.session()));
    service.until_ready();

    app.make_cold();
    let learned = service.launch(&app);
    assert_eq!((learned.arm, learned.recorded, learned.temperature), (Arm::Off, true, Temperature::Unknown));
    assert!(learned.exclusions.contains(&Exclusion::Recorded), "{learned:?}");
    let times: Vec<Milestone> = learned.milestones.iter().map(|(milestone, _)| *milestone).collect();
    assert!(times.contains(&Milestone::FirstWindow) && times.contains(&Milestone::Settled), "{learned:?}");
    assert!(
        learned.usage.processes >= 2 && learned.usage.read.unwrap() >= Bytes(4 * SIZE as u64),
        "{learned:?}"
    );
    service.until_state(&app_id(), AppState::Prefetching);

    service.until_ready();
    app.make_cold();
    let prefetched = service.launch(&app);
    assert_eq!((prefetched.arm, prefetched.recorded), (Arm::Prefetched, false), "{prefetched:?}");
    assert_eq!(prefetched.temperature, Temperature::Cold, "{prefetched:?}");
    let ahead = prefetched.read_ahead.unwrap();
    // The program reads beside, so some of it may be in memory before it is read ahead.
    assert!(ahead.read + ahead.cached >= Bytes(3 * SIZE as u64), "{ahead:?}");
    let warm = service.launch(&app);
    assert_eq!(
        (warm.arm, warm.temperature, warm.read_ahead),
        (Arm::Off, Temperature::Warm, None),
        "{warm:?}"
    );

    app.install(&format!(
        "#!/bin/sh\nsleep 0.1\ncat {}/1 >/dev/null\nsleep 60 &\nwait\n",
        app.path("data").display()
    ));
    // The mark is on the file that was replaced, until the folder's change was noticed.
    std::thread::sleep(Duration::from_secs(4));
    let upgraded = service.launch(&app);
    assert!(upgraded.recorded && upgraded.version != warm.version, "{upgraded:?}");

    let (store, _state) = service.stop();
    let record = store.app_record(0, &app_id()).unwrap().unwrap();
    assert_eq!((record.launches, record.profile.unwrap().runs), (4, 2), "{record:?}");
    let kinds: Vec<u32> = store.activity(0, None, 100).unwrap().iter().map(|a| a.kind).collect();
    for kind in [ActivityCode::Learned, ActivityCode::NowPrefetched, ActivityCode::Upgraded] {
        assert!(kinds.contains(&kind.into()), "{kind:?} in {kinds:?}");
    }
}

#[test]
fn cold_launches_are_held_out_and_what_a_person_chose_is_followed() {
    if !is_root() {
        return;
    }
    let app = App::new();
    let service = Service::start(config(1, 1.0));
    service.tell(Request::Session(app.session()));
    service.until_ready();
    app.make_cold();
    service.launch(&app);
    service.until_state(&app_id(), AppState::Prefetching);
    app.make_cold();
    let held_out = service.launch(&app);
    assert_eq!((held_out.arm, held_out.recorded), (Arm::HeldOut, false), "{held_out:?}");
    assert_eq!(held_out.read_ahead, None);

    let mut store = Store::open(service.state.path()).unwrap().store;
    store.set_policy(0, &app_id(), Policy::Off).unwrap();
    service.tell(Request::AppChanged { uid: 0, app: Some(app_id()) });
    service.until_state(&app_id(), AppState::SwitchedOff);
    app.make_cold();
    assert_eq!(service.launch(&app).arm, Arm::Off);

    store.set_policy(0, &app_id(), Policy::AtLaunch).unwrap();
    service.tell(Request::AppChanged { uid: 0, app: Some(app_id()) });
    service.until_state(&app_id(), AppState::Prefetching);
    service.tell(Request::Pause(None));
    app.make_cold();
    assert_eq!(service.launch(&app).arm, Arm::Off, "paused");

    store.forget(0, None).unwrap();
    service.tell(Request::Forgotten { uid: 0, app: None });
    let (store, _state) = service.stop();
    assert_eq!(store.app_records(0).unwrap(), []);
}

#[test]
fn a_start_that_ends_at_once_is_hot_only_if_an_instance_runs() {
    if !is_root() {
        return;
    }
    let app = App::new();
    let service = Service::start(config(1, 0.0));
    service.tell(Request::Session(app.session()));
    service.until_ready();
    let (early, _) = service.launch_with(&app, false);
    assert!(early.exclusions.contains(&Exclusion::EndedEarly), "{early:?}");
    std::thread::sleep(Duration::from_millis(500));

    let mut first = Command::new(app.program()).spawn().unwrap();
    let pid = i32::try_from(first.id()).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    service.tell(Request::Window(Window { uid: 0, at: Monotonic::now(), pid: Some(pid), names: Vec::new() }));
    service.until("the first launch", |notice| matches!(notice, Notice::Launched { .. }).then_some(()));
    let mut second = Command::new(app.program()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(100));
    end(&mut second);
    service.until("the hot start", |notice| matches!(notice, Notice::AppChanged { .. }).then_some(()));
    std::thread::sleep(Duration::from_secs(3));
    end(&mut first);
    let (store, _state) = service.stop();
    let record = store.app_record(0, &app_id()).unwrap().unwrap();
    assert_eq!((record.launches, record.hot), (2, 1), "{record:?}");
    assert_eq!(record.profile.map(|profile| profile.runs), Some(1), "what ended early is not learned from");
}

#[test]
fn a_launch_that_goes_on_when_the_service_stops_is_stored_as_interrupted() {
    if !is_root() {
        return;
    }
    let app = App::new();
    let service = Service::start(config(1, 0.0));
    service.tell(Request::Session(app.session()));
    service.until_ready();
    let mut child = Command::new(app.program()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let (store, _state) = service.stop();
    end(&mut child);
    let [launch] = &store.launches(0, None, None, 10).unwrap().value[..] else { panic!("one launch") };
    assert!(launch.exclusions.contains(&Exclusion::Interrupted), "{launch:?}");
}
