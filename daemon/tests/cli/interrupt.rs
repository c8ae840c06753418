//! Ctrl-C at any moment leaves the system as it was.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::support::{Place, instances_of, is_root, stderr, stdout};

/// Moments from the first instruction to the middle of the rounds, in milliseconds; each test run shifts them a little.
const MOMENTS: [u64; 10] = [1, 5, 20, 60, 150, 300, 500, 800, 1300, 2500];

fn jitter() -> u64 {
    u64::from(std::process::id()) % 40
}

/// A program that is never finished within the test: it is started a thousand times.
fn endless(place: &Place) -> std::path::PathBuf {
    // A process of its own that outlives the script, as servers of desktop programs do.
    place.script("app", &format!("sleep 1000 & ls {} >/dev/null; sleep 0.05", place.path("").display()))
}

#[test]
fn ctrl_c_at_any_moment_leaves_nothing_behind() {
    if !is_root() {
        return;
    }
    for moment in MOMENTS {
        let place = Place::new();
        let app = endless(&place);
        let mut command = place.headstartctl();
        command.args(["try", "--rounds", "1000", "--learn", "3", "--"]).arg(&app);
        let child = command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        thread::sleep(Duration::from_millis(moment + jitter().min(moment)));
        // A terminal sends it to all of the group in front.
        kill_process_group(Pid::from_raw(child.id().cast_signed()).unwrap(), Signal::INT).unwrap();
        let pid = child.id();
        let output = child.wait_with_output().unwrap();
        let said = stderr(&output);
        // Before it listens, in its very first moments, it is ended by the signal: for a shell the same 130.
        let ended = output.status.code() == Some(130) || output.status.signal() == Some(2);
        assert!(ended, "after {moment} ms: {}\n{said}", output.status);
        assert!(moment < 60 || said.contains("stopped"), "after {moment} ms it says nothing:\n{said}");
        assert_eq!(place.processes(), [""; 0], "after {moment} ms");
        assert_eq!(instances_of(pid), [""; 0], "after {moment} ms");
        let output = place.headstartctl().args(["profile", "list", "--json"]).output().unwrap();
        assert!(output.status.success(), "after {moment} ms: {}", stderr(&output));
        serde_json::from_str::<serde_json::Value>(&stdout(&output)).unwrap();
        assert!(!stderr(&output).contains("damaged"), "after {moment} ms: {}", stderr(&output));
    }
}

#[test]
fn a_kill_leaves_no_process_and_the_next_run_clears_what_the_kernel_keeps() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let app = endless(&place);
    let mut command = place.headstartctl();
    command.args(["try", "--rounds", "1000", "--learn", "30", "--"]).arg(&app);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    thread::sleep(Duration::from_millis(700));
    let pid = child.id();
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
    child.wait().unwrap();
    for _ in 0..200 {
        if place.processes().is_empty() {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(place.processes(), [""; 0]);
    let output = place.attempt(&["--", "true"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(instances_of(pid), [""; 0]);
}
