//! Real clients on real compositors without a screen: Weston lists no windows, sway does.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::*;
use crate::roots::Roots;
use crate::watch::launch::{Command, Run};
use crate::watch::milestone::{Evidence, Goal, Outcome, Watcher};
use crate::watch::testing::{Helper, has, session, start, until};

const CLIENT: &str = "weston-flower";
const NOBODY: u32 = 65534;
const APP_ID: &str = "org.freedesktop.weston.flower";

struct Compositor {
    _process: Helper,
    session: Session,
    _runtime: tempfile::TempDir,
}

/// Starts a compositor that makes its socket in a runtime folder of the test's own.
fn compositor(program: &str, args: &[&str], env: &[(&str, &str)]) -> Option<Compositor> {
    if !has(program) || !has(CLIENT) {
        return None;
    }
    let runtime = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new(program);
    command.args(args).env("XDG_RUNTIME_DIR", runtime.path()).envs(env.iter().copied());
    command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
    if program == "sway" && rustix::process::geteuid().is_root() {
        // It refuses to run as root.
        std::os::unix::fs::chown(runtime.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        command.uid(NOBODY).gid(NOBODY);
    }
    let process = Helper::spawn(command.stdout(Stdio::null()).stderr(Stdio::null()));
    let mut display = OsString::new();
    until("the compositor's socket", || {
        let names = std::fs::read_dir(runtime.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let sockets = names
            .filter(|n| n.to_str().unwrap().starts_with("wayland-") && Path::new(n).extension().is_none());
        display = sockets.last().unwrap_or_default();
        !display.is_empty() && UnixStream::connect(runtime.path().join(&display)).is_ok()
    });
    let mut session = session();
    session.env.insert("XDG_RUNTIME_DIR".into(), runtime.path().into());
    session.env.insert("WAYLAND_DISPLAY".into(), display);
    session.env.remove(std::ffi::OsStr::new("DISPLAY"));
    Some(Compositor { _process: process, session, _runtime: runtime })
}

fn weston() -> Option<Compositor> {
    compositor("weston", &["--backend=headless-backend.so", "--socket=wayland-test", "--idle-time=0"], &[])
}

fn sway() -> Option<Compositor> {
    let headless =
        [("WLR_BACKENDS", "headless"), ("WLR_RENDERER", "pixman"), ("WLR_LIBINPUT_NO_DEVICES", "1")];
    compositor("sway", &["-c", "/dev/null"], &headless)
}

impl Compositor {
    fn watcher(&self, sure: bool) -> Watcher {
        let hints = Hints { names: vec![APP_ID.into()], sure, program: "/nonexistent".into() };
        Watcher::prepare(Goal::Window, &self.session, hints, &Roots::default()).unwrap()
    }

    /// Starts the client after `delay` seconds; whether the watcher had to change the command, and how it came out.
    fn run(&self, delay: &str, sure: bool) -> (bool, Outcome, Run, Watcher) {
        let mut watcher = self.watcher(sure);
        let script = format!("echo own words >&2; sleep {delay}; exec {CLIENT}");
        let args = ["sh", "-c", &script].map(OsString::from);
        let mut command = Command::new(&self.session, "/bin/sh".into(), args.into());
        let changed = watcher.configure(&mut command);
        let mut run = start(&command);
        let outcome = watcher.wait(&mut run, Duration::from_secs(20), &AtomicBool::new(false));
        (changed, outcome, run, watcher)
    }
}

fn assert_between(outcome: &Outcome, from_ms: u64, to_ms: u64) {
    let Outcome::Reached { at, .. } = outcome else { panic!("{outcome:?}") };
    assert!((from_ms * 1_000_000..to_ms * 1_000_000).contains(&at.0), "{at}");
}

#[test]
fn where_the_compositor_lists_nothing_the_programs_own_log_tells() {
    let Some(weston) = weston() else { return };
    let (changed, outcome, run, watcher) = weston.run("0.3", true);
    assert!(changed && watcher.wayland.is_none());
    assert_between(&outcome, 300, 3000);
    assert!(matches!(outcome, Outcome::Reached { by: Evidence::ProtocolLog, .. }), "{outcome:?}");
    // The log is no part of what the program said.
    assert_eq!(run.last_words(), "own words");
}

#[test]
fn a_compositor_that_lists_windows_tells_of_a_new_one_by_its_application_id() {
    let Some(sway) = sway() else { return };
    let (changed, outcome, run, watcher) = sway.run("0.3", true);
    assert!(!changed);
    assert_between(&outcome, 300, 3000);
    let expected = Evidence::Toplevel { app_id: APP_ID.into() };
    assert!(matches!(&outcome, Outcome::Reached { by, .. } if *by == expected), "{outcome:?}");
    assert_eq!(watcher.close_windows(&run), 1);
    until("the client's end", || run.is_empty());
}

#[test]
fn an_application_whose_id_is_not_known_is_watched_by_its_own_log() {
    let Some(sway) = sway() else { return };
    let mut watcher = sway.watcher(false);
    watcher.hints.names.clear();
    let mut command = Command::new(&sway.session, format!("/usr/bin/{CLIENT}").into(), vec![CLIENT.into()]);
    assert!(watcher.configure(&mut command));
    let mut run = start(&command);
    let outcome = watcher.wait(&mut run, Duration::from_secs(20), &AtomicBool::new(false));
    assert!(matches!(outcome, Outcome::Reached { by: Evidence::ProtocolLog, .. }), "{outcome:?}");
}

#[test]
fn a_window_that_was_listed_before_is_not_the_start_but_an_earlier_instance() {
    let Some(sway) = sway() else { return };
    let (_, earlier, _run, _watcher) = sway.run("0", true);
    assert!(matches!(earlier, Outcome::Reached { .. }), "{earlier:?}");
    let mut watcher = sway.watcher(true);
    let mut run = start(&Command::new(&sway.session, "/bin/true".into(), vec!["true".into()]));
    let outcome = watcher.wait(&mut run, Duration::from_secs(20), &AtomicBool::new(false));
    assert!(matches!(&outcome, Outcome::HandedOver { to } if !to.window.is_empty()), "{outcome:?}");
}

#[test]
fn a_compositor_that_is_not_there_is_named() {
    let mut session = session();
    session.env.insert("WAYLAND_DISPLAY".into(), "/nonexistent/wayland-9".into());
    session.env.remove(std::ffi::OsStr::new("DISPLAY"));
    let error = Watcher::prepare(Goal::Window, &session, Hints::default(), &Roots::default()).unwrap_err();
    assert!(error.to_string().contains("/nonexistent/wayland-9"), "{error}");
    session.env.remove(std::ffi::OsStr::new("WAYLAND_DISPLAY"));
    let error = Watcher::prepare(Goal::Window, &session, Hints::default(), &Roots::default()).unwrap_err();
    assert!(error.to_string().contains("no display"), "{error}");
}

#[test]
fn a_window_of_another_application_is_passed_over_and_told() {
    let Some(sway) = sway() else { return };
    let mut watcher = sway.watcher(true);
    watcher.hints.names = vec!["org.example.other".into()];
    let command = Command::new(&sway.session, format!("/usr/bin/{CLIENT}").into(), vec![CLIENT.into()]);
    let mut run = start(&command);
    let outcome = watcher.wait(&mut run, Duration::from_secs(2), &AtomicBool::new(false));
    assert!(matches!(outcome, Outcome::TooLate { running: true, .. }), "{outcome:?}");
    assert!(outcome.to_string().contains(APP_ID), "{outcome}");
}
