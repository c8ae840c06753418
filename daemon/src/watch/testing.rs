//! What the tests of this part share.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::roots::Roots;
use crate::watch::launch::{Command, Gate, Run, launch};
use crate::watch::session::Session;
use crate::watch::start::{Monotonic, StartEvent};

/// Says that a test cannot run here, or fails it where it must.
pub(crate) fn skip(missing: &str) {
    assert!(std::env::var_os("HEADSTART_REQUIRE_ROOT_TESTS").is_none(), "missing: {missing}");
    eprintln!("SKIPPED: {missing}");
}

/// Whether we are root; says so if not.
pub(crate) fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skip("root");
    }
    root
}

/// Whether a program is installed; says so if not.
pub(crate) fn has(program: &str) -> bool {
    let found = Path::new("/usr/bin").join(program).exists();
    if !found {
        skip(program);
    }
    found
}

pub(crate) fn session() -> Session {
    Session::invoking(&Roots::default()).unwrap()
}

pub(crate) fn shell(script: &str) -> Command {
    Command::new(&session(), "/bin/sh".into(), ["sh", "-c", script].map(OsString::from).into())
}

pub(crate) fn gate() -> Gate<'static> {
    Gate { start: Arc::new(StartEvent::new().unwrap()), announce_to: Vec::new() }
}

pub(crate) fn start(command: &Command) -> Run {
    launch(command, &gate(), &Roots::default()).unwrap()
}

/// Waits for something that must come.
pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Monotonic::now().after(Duration::from_secs(20));
    while !done() {
        assert!(Monotonic::now() < deadline, "waited too long for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A helper program that is killed when the test ends, however it ends.
pub(crate) struct Helper(pub(crate) Child);

impl Helper {
    pub(crate) fn spawn(command: &mut std::process::Command) -> Self {
        Self(command.stdin(Stdio::null()).spawn().unwrap())
    }

    /// The first line of its output.
    pub(crate) fn first_line(&mut self) -> String {
        let mut line = Vec::new();
        let stdout = self.0.stdout.as_ref().unwrap();
        let mut byte = [0];
        while rustix::io::read(stdout.as_fd(), &mut byte).unwrap() == 1 && byte[0] != b'\n' {
            line.push(byte[0]);
        }
        String::from_utf8(line).unwrap()
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
