//! A place of its own for a test: folders, a screen, and a look at what is left.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;

use tempfile::TempDir;

/// The user and group of nobody.
pub(crate) const NOBODY: u32 = 65534;

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

/// Folders of a test's own, on a real file system: what is in memory only is never read ahead.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self::beneath("/var/tmp")
    }

    /// Where files are learned: in folders of temporary files they are not. Only root can make it.
    pub(crate) fn of_lasting_files() -> Self {
        Self::beneath("/usr/local")
    }

    fn beneath(folder: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("headstart-cli-").tempdir_in(folder).unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["home", "applications/applications"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path("state")
    }

    /// A script that anybody may execute.
    pub(crate) fn script(&self, name: impl AsRef<Path>, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// An installed application that executes this program.
    pub(crate) fn install(&self, id: &str, name: &str, program: &Path) {
        let entry = format!("[Desktop Entry]\nType=Application\nName={name}\nExec={}\n", program.display());
        fs::write(self.path(format!("applications/applications/{id}.desktop")), entry).unwrap();
    }

    /// `headstartctl`, in this place, without a screen.
    pub(crate) fn headstartctl(&self) -> Command {
        self.program(assert_cmd::cargo::cargo_bin!("headstartctl"))
    }

    /// The same as somebody without any rights. The build folder may be in a home that nobody else can enter, so it is a
    /// copy.
    pub(crate) fn headstartctl_of_nobody(&self) -> Command {
        let copy = self.path("headstartctl");
        fs::copy(assert_cmd::cargo::cargo_bin!("headstartctl"), &copy).unwrap();
        let mut command = self.program(&copy);
        command.uid(NOBODY).gid(NOBODY).current_dir("/");
        command
    }

    fn program(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.arg("--state-dir").arg(self.state()).stdin(Stdio::null());
        command.env("HOME", self.path("home")).env("XDG_DATA_DIRS", self.path("applications"));
        // Whoever called sudo to run the tests has no part in them.
        command.env("SUDO_UID", "0").env("LC_ALL", "C.UTF-8");
        for variable in
            ["DISPLAY", "WAYLAND_DISPLAY", "XDG_STATE_HOME", "XDG_DATA_HOME", "HEADSTART_STATE_DIR"]
        {
            command.env_remove(variable);
        }
        command
    }

    /// `headstartctl try` with as few starts as there can be.
    pub(crate) fn attempt(&self, arguments: &[&str]) -> Command {
        self.attempt_of(1, 1, arguments)
    }

    /// `headstartctl try` that learns from so many starts and makes so many rounds.
    pub(crate) fn attempt_of(&self, learn: u32, rounds: u32, arguments: &[&str]) -> Command {
        let mut command = self.headstartctl();
        command.args([
            "try",
            "--linger",
            "0",
            "--learn",
            &learn.to_string(),
            "--rounds",
            &rounds.to_string(),
        ]);
        command.args(arguments);
        command
    }

    /// Processes that have this place in their command line.
    pub(crate) fn processes(&self) -> Vec<String> {
        let place = self.folder.path().to_str().unwrap();
        let pids = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path().join("cmdline"));
        let lines = pids.filter_map(|path| fs::read(path).ok());
        let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
        lines.filter(|line| line.contains(place)).collect()
    }
}

/// A tracefs instance that belongs to a process, by its name.
pub(crate) fn instances_of(pid: u32) -> Vec<String> {
    let Ok(instances) = fs::read_dir("/sys/kernel/tracing/instances") else { return Vec::new() };
    let names = instances.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.split(|c: char| !c.is_ascii_digit()).any(|n| n == pid.to_string())).collect()
}

/// An X server on a display of its own choice.
pub(crate) struct Screen {
    server: Child,
    pub(crate) name: String,
}

impl Screen {
    /// `None`, said on standard error, without an X server.
    pub(crate) fn start() -> Option<Self> {
        // Servers that start at the same moment can settle on one display.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _one = ONE_AT_A_TIME.lock();
        let mut server = Command::new("Xvfb");
        server.args(["-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp", "-noreset"]);
        let Ok(mut server) = server.stdout(Stdio::piped()).stderr(Stdio::null()).spawn() else {
            skip("Xvfb");
            return None;
        };
        let mut number = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut number).unwrap();
        Some(Self { server, name: format!(":{}", number.trim()) })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// It failed in the ordinary way, and said each of these.
#[track_caller]
pub(crate) fn assert_fails(output: &Output, words: &[&str]) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(1), "{}\n{said}", output.status);
    assert!(output.stdout.is_empty(), "figures although it failed: {}", stdout(output));
    for word in words {
        assert!(said.contains(word), "it does not say {word:?}:\n{said}");
    }
    assert!(!said.contains("panicked"), "{said}");
}
