//! Real clients on a real X server. The client is this test binary, started again with a little script of what to do.

use std::os::unix::process::CommandExt;
use std::process::Stdio;

use x11rb::protocol::xproto::{CreateWindowAux, PropMode};
use x11rb::wrapper::ConnectionExt as _;

use super::*;
use crate::roots::Roots;
use crate::watch::launch::{Command, Run};
use crate::watch::milestone::{Evidence, Goal, Outcome, Ownership, Watcher};
use crate::watch::testing::{Helper, has, is_root, session, start, until};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const SCRIPT: &str = "HEADSTART_TEST_X11_CLIENT";
const CLIENT: &str = "watch::milestone::x11::tests::client";
const CLASS: &str = "HeadstartTestClient";

/// Not a test: the client, if the environment has a script for it. Words, done one after the other.
#[test]
fn client() {
    let Ok(script) = std::env::var(SCRIPT) else { return };
    let mut windows = None;
    let mut words = script.split(' ');
    while let Some(word) = words.next() {
        let (verb, argument) = word.split_once(':').unwrap_or((word, ""));
        match verb {
            "sleep" => thread::sleep(Duration::from_millis(argument.parse().unwrap())),
            "exit" => std::process::exit(argument.parse().unwrap()),
            "say" => eprintln!("{argument}"),
            "detach" => {
                let rest: Vec<&str> = words.by_ref().collect();
                let mut next = std::process::Command::new(std::env::current_exe().unwrap());
                next.args(["--exact", CLIENT, "--nocapture"]).env(SCRIPT, rest.join(" "));
                // SAFETY of the name only: a session of its own, as daemons take.
                next.process_group(0).spawn().unwrap();
                std::process::exit(0);
            }
            _ => windows.get_or_insert_with(Windows::open).act(verb),
        }
    }
}

struct Windows {
    connection: RustConnection,
    atoms: Atoms,
    last: Window,
}

impl Windows {
    fn open() -> Self {
        let (connection, _) = x11rb::connect(None).unwrap();
        let atoms = Atoms::new(&connection).unwrap().reply().unwrap();
        Self { connection, atoms, last: 0 }
    }

    fn act(&mut self, verb: &str) {
        match verb {
            "window" => self.create(300, 200, false, None),
            "tiny" => self.create(10, 10, false, None),
            "override" => self.create(300, 200, true, None),
            "splash" => self.create(300, 200, false, Some(self.atoms._NET_WM_WINDOW_TYPE_SPLASH)),
            "grow" => {
                let larger = x11rb::protocol::xproto::ConfigureWindowAux::new().width(400).height(300);
                self.connection.configure_window(self.last, &larger).unwrap();
            }
            "wait" => self.wait_for_close(),
            other => panic!("no such act: {other}"),
        }
        self.connection.flush().unwrap();
    }

    fn create(&mut self, width: u16, height: u16, override_redirect: bool, kind: Option<u32>) {
        let c = &self.connection;
        let screen = &c.setup().roots[0];
        self.last = c.generate_id().unwrap();
        let aux = CreateWindowAux::new().override_redirect(u32::from(override_redirect));
        c.create_window(
            0,
            self.last,
            screen.root,
            0,
            0,
            width,
            height,
            0,
            WindowClass::INPUT_OUTPUT,
            0,
            &aux,
        )
        .unwrap();
        let class = format!("instance\0{CLASS}\0");
        c.change_property8(
            PropMode::REPLACE,
            self.last,
            AtomEnum::WM_CLASS,
            AtomEnum::STRING,
            class.as_bytes(),
        )
        .unwrap();
        c.change_property8(PropMode::REPLACE, self.last, AtomEnum::WM_NAME, AtomEnum::STRING, b"the title")
            .unwrap();
        let protocols = [self.atoms.WM_DELETE_WINDOW];
        c.change_property32(
            PropMode::REPLACE,
            self.last,
            self.atoms.WM_PROTOCOLS,
            AtomEnum::ATOM,
            &protocols,
        )
        .unwrap();
        if let Some(kind) = kind {
            c.change_property32(
                PropMode::REPLACE,
                self.last,
                self.atoms._NET_WM_WINDOW_TYPE,
                AtomEnum::ATOM,
                &[kind],
            )
            .unwrap();
        }
        c.map_window(self.last).unwrap();
        c.flush().unwrap();
        println!("mapped {}", Monotonic::now().0);
    }

    fn wait_for_close(&self) {
        loop {
            if let Event::ClientMessage(_) = self.connection.wait_for_event().unwrap() {
                println!("closed by request");
                return;
            }
        }
    }
}

/// A server of the test's own, and a session on it.
struct Display {
    _server: Helper,
    session: Session,
}

fn display(args: &[&str]) -> Option<Display> {
    has("Xvfb").then(|| {
        let mut command = std::process::Command::new("Xvfb");
        command.args(["-displayfd", "1", "-screen", "0", "800x600x24", "-nolisten", "tcp"]).args(args);
        let mut server = Helper::spawn(command.stdout(Stdio::piped()).stderr(Stdio::null()));
        let number = server.first_line();
        let mut session = session();
        session.env.insert("DISPLAY".into(), format!(":{number}").into());
        session.env.remove(OsStr::new("WAYLAND_DISPLAY"));
        session.env.remove(OsStr::new("XAUTHORITY"));
        Display { _server: server, session }
    })
}

impl Display {
    fn command(&self, script: &str) -> Command {
        let this = std::env::current_exe().unwrap();
        let args = [this.as_os_str(), OsStr::new("--exact"), OsStr::new(CLIENT), OsStr::new("--nocapture")];
        let mut command = Command::new(&self.session, this.clone(), args.map(OsStr::to_owned).into());
        command.env.insert(SCRIPT.into(), script.into());
        command
    }

    fn watcher(&self) -> Watcher {
        let hints = Hints { names: vec![CLASS.to_lowercase()], sure: true, program: "/nonexistent".into() };
        Watcher::prepare(Goal::Window, &self.session, hints, &Roots::default()).unwrap()
    }

    fn run(&self, script: &str) -> (Outcome, Run, Watcher) {
        let mut watcher = self.watcher();
        let mut run = start(&self.command(script));
        let outcome = watcher.wait(&mut run, Duration::from_secs(20), &AtomicBool::new(false));
        (outcome, run, watcher)
    }
}

fn reached(outcome: &Outcome) -> (headstart_shared::units::Nanos, Ownership) {
    match outcome {
        Outcome::Reached { at, by: Evidence::Window { by, title, .. }, .. } if title == "the title" => {
            (*at, *by)
        }
        other => panic!("{other:?}"),
    }
}

/// When the client asked for its windows, since its start, in the order in which it did.
fn asked(run: &Run) -> Vec<headstart_shared::units::Nanos> {
    let words = run.last_words();
    let lines = words.lines().filter_map(|line| line.trim_start_matches("test ").split("mapped ").nth(1));
    lines.map(|ns| Monotonic(ns.trim().parse().unwrap()).since(run.started())).collect()
}

/// The window counts within 50 ms of the `nth` request, on a loaded machine.
fn assert_on_time(outcome: &Outcome, run: &Run, nth: usize) {
    let (at, _) = reached(outcome);
    until("the client's word", || asked(run).len() > nth);
    let asked = asked(run)[nth];
    eprintln!("asked at {asked}, seen at {at}");
    let off = at.0.abs_diff(asked.0);
    assert!(off < 50_000_000, "asked at {asked}, seen at {at}");
}

#[test]
fn the_first_window_is_seen_when_it_is_mapped() {
    let Some(display) = display(&[]) else { return };
    let (outcome, run, watcher) = display.run("sleep:300 window wait");
    assert!(reached(&outcome).0.0 > 300_000_000, "{outcome:?}");
    assert_eq!(reached(&outcome).1, Ownership::Process);
    assert_on_time(&outcome, &run, 0);
    assert_eq!(watcher.close_windows(&run), 1);
    until("the client's end", || run.is_empty());
    assert!(run.last_words().contains("closed by request"), "{}", run.last_words());
}

#[test]
fn splash_screens_menus_and_tiny_windows_do_not_end_a_start() {
    let Some(display) = display(&[]) else { return };
    let (outcome, run, _) = display.run("splash tiny override sleep:300 window wait");
    assert_on_time(&outcome, &run, 3);
}

#[test]
fn a_tiny_window_that_grows_counts_from_then_on() {
    let Some(display) = display(&[]) else { return };
    let (outcome, ..) = display.run("tiny sleep:300 grow wait");
    assert!(reached(&outcome).0.0 > 300_000_000, "{outcome:?}");
}

#[test]
fn a_window_manager_that_frames_windows_makes_no_difference() {
    let Some(display) = display(&[]) else { return };
    if !has("openbox") {
        return;
    }
    let mut openbox = std::process::Command::new("openbox");
    openbox.env("DISPLAY", display.session.var("DISPLAY").unwrap()).stderr(Stdio::null());
    let _openbox = Helper::spawn(&mut openbox);
    // It says that it is there by a property of the root.
    let server =
        Server::connect(display.session.var("DISPLAY").unwrap().to_str().unwrap(), &display.session).unwrap();
    let atom =
        server.connection.intern_atom(false, b"_NET_SUPPORTING_WM_CHECK").unwrap().reply().unwrap().atom;
    let root = server.connection.setup().roots[0].root;
    until("the window manager", || {
        let check =
            server.connection.get_property(false, root, atom, AtomEnum::ANY, 0, 1).unwrap().reply().unwrap();
        check.value_len > 0
    });
    let (outcome, run, watcher) = display.run("splash sleep:200 window wait");
    assert_on_time(&outcome, &run, 1);
    assert_eq!(watcher.close_windows(&run), 1);
    until("the client's end", || run.is_empty());
}

#[test]
fn a_client_that_detaches_from_its_launcher_is_still_of_the_run() {
    let Some(display) = display(&[]) else { return };
    let (outcome, mut run, _) = display.run("detach sleep:300 window wait");
    assert_eq!(reached(&outcome).1, Ownership::Process);
    assert!(run.ended().is_some_and(|ended| ended.status.success()) && !run.is_empty());
    assert!(run.end(Duration::from_secs(5)).left.is_empty());
}

#[test]
fn a_start_that_ends_at_once_is_told_with_its_last_words() {
    let Some(display) = display(&[]) else { return };
    let (outcome, ..) = display.run("say:no-licence-found exit:3");
    match &outcome {
        Outcome::ExitedEarly { status, last_words, .. } => {
            assert_eq!(status.code(), Some(3));
            assert!(last_words.contains("no-licence-found"));
        }
        other => panic!("{other:?}"),
    }
    assert!(outcome.to_string().contains("no-licence-found"));
}

#[test]
fn a_start_without_a_window_is_given_up_at_the_deadline() {
    let Some(display) = display(&[]) else { return };
    let mut watcher = display.watcher();
    let mut run = start(&display.command("splash sleep:60000"));
    let outcome = watcher.wait(&mut run, Duration::from_millis(1500), &AtomicBool::new(false));
    match &outcome {
        Outcome::TooLate { running: true, notes, .. } => assert!(notes[0].contains("splash"), "{notes:?}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_start_is_stopped_when_asked() {
    let Some(display) = display(&[]) else { return };
    let mut watcher = display.watcher();
    let mut run = start(&display.command("sleep:60000"));
    let cancel = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(100));
            cancel.store(true, Ordering::Relaxed);
        });
        assert_eq!(watcher.wait(&mut run, Duration::from_mins(1), &cancel), Outcome::Cancelled);
    });
}

#[test]
fn a_hand_over_to_an_earlier_instance_is_no_start() {
    let Some(display) = display(&[]) else { return };
    let (earlier, run, _watcher) = display.run("window wait");
    reached(&earlier);
    // The second one ends well and shows nothing.
    let (outcome, ..) = display.run("sleep:50 exit:0");
    match &outcome {
        Outcome::HandedOver { to } => assert_eq!(to.window, "the title"),
        other => panic!("{other:?}"),
    }
    drop(run);
    // With nobody to hand over to it just ended.
    let (outcome, ..) = display.run("sleep:50 exit:0");
    assert!(matches!(outcome, Outcome::ExitedEarly { .. }), "{outcome:?}");
}

#[test]
fn an_earlier_instance_that_opens_a_window_was_handed_over_to() {
    let Some(display) = display(&[]) else { return };
    let _earlier = start(&display.command("sleep:1000 window wait"));
    thread::sleep(Duration::from_millis(200));
    let (outcome, ..) = display.run("sleep:60000");
    assert!(matches!(&outcome, Outcome::HandedOver { to } if to.pid.is_some()), "{outcome:?}");
}

#[test]
fn a_client_of_another_user_on_a_server_with_a_cookie_is_watched() {
    if !is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("authority");
    let mut entry = 256u16.to_be_bytes().to_vec();
    let host = rustix::system::uname().nodename().to_bytes().to_vec();
    for field in [&host[..], b"", b"MIT-MAGIC-COOKIE-1", b"0123456789abcdef"] {
        entry.extend(u16::try_from(field.len()).unwrap().to_be_bytes());
        entry.extend(field);
    }
    std::fs::write(&file, entry).unwrap();
    let Some(mut display) = display(&["-auth", file.to_str().unwrap()]) else { return };
    let hints = || Hints { names: Vec::new(), sure: true, program: "/nonexistent".into() };
    // Without the cookie the server refuses.
    display.session.home = "/nonexistent".into();
    let refused = Watcher::prepare(Goal::Window, &display.session, hints(), &Roots::default()).unwrap_err();
    assert!(refused.to_string().contains("X display :"), "{refused}");

    display.session.env.insert("XAUTHORITY".into(), file.clone().into());
    display.session.elevated = true;
    display.session.credentials =
        crate::sys::spawn::Credentials { uid: 65534, gid: 65534, groups: Vec::new() };
    std::os::unix::fs::chown(&file, Some(65534), None).unwrap();
    std::os::unix::fs::chown(dir.path(), Some(65534), None).unwrap();
    let mut watcher = Watcher::prepare(Goal::Window, &display.session, hints(), &Roots::default()).unwrap();
    // The build folder may be in a home that nobody else can enter.
    let client = dir.path().join("client");
    std::fs::copy(std::env::current_exe().unwrap(), &client).unwrap();
    let mut command = display.command("sleep:100 window wait");
    command.program = client;
    let mut run = start(&command);
    let outcome = watcher.wait(&mut run, Duration::from_secs(20), &AtomicBool::new(false));
    assert_eq!(reached(&outcome).1, Ownership::Process);
}

#[test]
fn a_server_that_dies_leaves_the_watcher_to_its_deadline() {
    let Some(display) = display(&[]) else { return };
    let mut watcher = display.watcher();
    let mut run = start(&display.command("sleep:60000"));
    drop(display);
    let outcome = watcher.wait(&mut run, Duration::from_millis(1500), &AtomicBool::new(false));
    assert!(matches!(outcome, Outcome::TooLate { running: true, .. }), "{outcome:?}");
    assert_eq!(watcher.close_windows(&run), 0);
}
