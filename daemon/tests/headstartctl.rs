//! The program as a person or a script meets it: what it prints where, and how it ends. Needs root: `try` does.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A folder on a drive with a file to read, and places for what is kept.
struct Folder(tempfile::TempDir);

impl Folder {
    /// `None`, said on standard error, where `try` cannot work.
    fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            assert!(
                std::env::var_os("HEADSTART_REQUIRE_ROOT_TESTS").is_none(),
                "required, but missing: root"
            );
            eprintln!("SKIPPED: root");
            return None;
        }
        let folder = Self(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
        fs::write(folder.join("file"), vec![7; 1 << 20]).unwrap();
        File::open(folder.join("file")).unwrap().sync_all().unwrap();
        fs::create_dir(folder.join("state")).unwrap();
        Some(folder)
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// `headstartctl try` with the shortest of comparisons.
    fn try_command(&self, options: &[&str], script: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headstartctl"));
        command.env("XDG_STATE_HOME", self.join("person")).env("FILE", self.join("file"));
        command.arg("--state-dir").arg(self.join("state")).args(["try", "-n", "1"]);
        command.args(["--until", "exit", "--linger", "0"]).args(options).args(["--", "sh", "-c", script]);
        command.stdin(Stdio::null());
        command
    }

    fn try_(&self, options: &[&str], script: &str) -> Output {
        self.try_command(options, script).output().unwrap()
    }
}

const READ: &str = "cat \"$FILE\"";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether any process has this in its command line.
fn is_running(mark: &str) -> bool {
    fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        text(&words).contains(mark)
    })
}

#[test]
fn a_result_goes_to_the_screen_to_files_and_to_the_window() {
    let Some(folder) = Folder::new() else { return };
    let (csv, svg) = (folder.join("starts.csv"), folder.join("result.svg"));
    let files = [format!("--csv={}", csv.display()), format!("--svg={}", svg.display())];
    let output = folder.try_(&["--json", &files[0], &files[1]], READ);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["runs"].as_array().unwrap().len(), 3);
    assert_eq!(fs::read_to_string(csv).unwrap().lines().count(), 4);
    assert!(fs::read_to_string(svg).unwrap().contains("<svg"));
    let window = fs::read(folder.join("person/headstart/last-try.json")).unwrap();
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&window).unwrap(), json);
}

#[test]
fn what_cannot_be_written_keeps_nothing_else_from_being_shown() {
    let Some(folder) = Folder::new() else { return };
    // The person's own folder cannot be made either: a file is in its place.
    fs::write(folder.join("person"), "").unwrap();
    let csv = folder.join("starts.csv");
    let files = [format!("--json={}", folder.join("none/x").display()), format!("--csv={}", csv.display())];
    let output = folder.try_(&[&files[0], &files[1]], READ);
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stderr);
    assert!(told.contains("none/x") && told.contains("the window will not show this result"), "{told}");
    assert!(text(&output.stdout).contains("prefetch") && csv.exists(), "{told}");
}

#[test]
fn a_full_disk_does_not_take_the_comparison_along() {
    let Some(folder) = Folder::new() else { return };
    let state = folder.join("state");
    // The command itself fills the disk that the history is on.
    let fill = format!("cat \"$FILE\"; cat /dev/zero 2>/dev/null >{}/fill; true", state.display());
    let inner = folder.try_command(&[], &fill);
    let mut command = Command::new("unshare");
    let mount = format!("mount -t tmpfs -o size=1m tmpfs '{}' && exec \"$@\"", state.display());
    command.args(["--mount", "sh", "-c", &mount, "sh"]).arg(inner.get_program()).args(inner.get_args());
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?)))).stdin(Stdio::null());
    let output = command.output().unwrap();
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("is not kept") && told.contains("disk is full"), "{told}");
    assert!(text(&output.stdout).contains("prefetch"), "{told}");
}

#[test]
fn a_reader_that_has_enough_is_no_failure() {
    let Some(folder) = Folder::new() else { return };
    let csv = folder.join("starts.csv");
    let mut command = folder.try_command(&["--csv", &format!("--svg={}", csv.display())], READ);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command.stdout(writer).stderr(Stdio::piped()).output().unwrap();
    assert_eq!((output.status.code(), output.status.signal()), (Some(0), None), "{}", text(&output.stderr));
    assert!(csv.exists());
}

/// Interrupts a comparison once `begun` is there; its output, when it has ended.
fn interrupted(folder: &Folder, learn: &str, script: &str, begun: &Path) -> Output {
    let mut command = folder.try_command(&["--timeout", "100", "--learn", learn], script);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_mins(1);
    while !begun.exists() {
        assert!(Instant::now() < deadline, "the command was not started");
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn stopping_the_first_start_leaves_nothing() {
    let Some(folder) = Folder::new() else { return };
    let begun = folder.join("begun");
    let script = format!("cat \"$FILE\"; touch {}; exec sleep 1000", begun.display());
    let output = interrupted(&folder, "1", &script, &begun);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{told}");
    assert!(told.contains("nothing is left behind") && output.stdout.is_empty(), "{told}");
    assert!(!is_running(begun.to_str().unwrap()));
}

#[test]
fn stopping_while_learning_keeps_what_was_learned() {
    let Some(folder) = Folder::new() else { return };
    let (once, begun) = (folder.join("once"), folder.join("begun"));
    // The first start is over at once, the second one stays.
    let (first, second) = (once.display(), begun.display());
    let script =
        format!("cat \"$FILE\"; if [ -e {first} ]; then touch {second}; exec sleep 1000; fi; touch {first}");
    let output = interrupted(&folder, "2", &script, &begun);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{told}");
    assert!(told.contains("what was learned is kept"), "{told}");
}
