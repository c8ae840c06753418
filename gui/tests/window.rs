//! The window as a person meets it: on a display of its own, read through AT-SPI, driven by the keyboard.
//!
//! The scenarios are in `window.py`, since Debian's `python3-pyatspi` is the assistive technology. Each runs under its
//! own X server, session bus and home folder.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

/// An X server on a display of its own choice: a fixed number, or one that a script guesses, can be taken meanwhile.
struct Display {
    server: Child,
    name: String,
}

impl Display {
    /// Servers that start at the same moment can settle on one display, and only one of them then answers: so one at a
    /// time here, and again where another program was in between.
    fn new() -> Self {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _one = ONE_AT_A_TIME.lock();
        for _ in 0..10 {
            let display = Self::start();
            let mut answers = Command::new("xdotool");
            answers.arg("getdisplaygeometry").env("DISPLAY", &display.name).stderr(Stdio::null());
            if answers.output().is_ok_and(|output| output.stdout.starts_with(b"1000 900")) {
                return display;
            }
        }
        panic!("no X server could be started");
    }

    fn start() -> Self {
        let mut server = Command::new("Xvfb")
            .args(["-displayfd", "1", "-screen", "0", "1000x900x24", "-nolisten", "tcp", "-noreset"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut number = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut number).unwrap();
        Self { server, name: format!(":{}", number.trim()) }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// What is missing to open a window and read it.
fn missing() -> Option<&'static str> {
    let runs = |program: &str, arguments: &[&str]| {
        Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
    };
    let found = |program: &str| runs("sh", &["-c", &format!("command -v {program}")]);
    ["Xvfb", "dbus-run-session", "xdotool", "xmllint", "msgfmt"]
        .into_iter()
        .find(|program| !found(program))
        .or((!runs("/usr/bin/python3", &["-c", "import pyatspi"])).then_some("python3-pyatspi"))
}

fn sample_program() -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built =
        Command::new(cargo).args(["build", "-q", "-p", "headstart-shared", "--example", "sample"]).status();
    assert!(built.unwrap().success());
    Path::new(env!("CARGO_BIN_EXE_headstart")).parent().unwrap().join("examples/sample")
}

fn scenario(name: &str, variables: &[(&str, &str)]) {
    if let Some(program) = missing() {
        assert!(std::env::var_os("HEADSTART_REQUIRE_ROOT_TESTS").is_none(), "{program} is missing");
        eprintln!("SKIPPED: {program} is missing, the window was not opened");
        return;
    }
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(home.path().join("state/headstart")).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/window.py");
    let display = Display::new();
    let mut command = Command::new("dbus-run-session");
    command.args(["--", "/usr/bin/python3"]).env("DISPLAY", &display.name);
    command
        .arg(script)
        .args([env!("CARGO_BIN_EXE_headstart")])
        .arg(sample_program())
        .arg(name)
        .arg(home.path());
    command.env("LC_ALL", "C.UTF-8").env_remove("LANGUAGE").env_remove("WAYLAND_DISPLAY");
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("PASS"), "{name}:\n{said}\n{errors}");
    for complaint in ["CRITICAL", "panicked", "Gtk-WARNING", "GLib-GObject-WARNING"] {
        assert!(!errors.contains(complaint), "{name} complains:\n{errors}");
    }
}

#[test]
fn every_state_is_said_in_words_and_follows_the_file() {
    scenario("states", &[]);
}

#[test]
fn the_keyboard_reaches_menus_and_windows() {
    scenario("keyboard", &[]);
}

#[test]
fn a_result_is_saved_as_a_whole_file() {
    scenario("export", &[]);
}

#[test]
fn the_window_speaks_german() {
    let folder = tempfile::tempdir().unwrap();
    let catalogue = folder.path().join("de/LC_MESSAGES");
    std::fs::create_dir_all(&catalogue).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../po/de.po");
    let compiled = Command::new("msgfmt").arg("-o").arg(catalogue.join("headstart.mo")).arg(source).status();
    match compiled {
        Ok(status) => assert!(status.success()),
        Err(_) => return scenario("language", &[]),
    }
    scenario(
        "language",
        &[("LANGUAGE", "de"), ("HEADSTART_LOCALEDIR", &folder.path().display().to_string())],
    );
}
