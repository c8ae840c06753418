use std::fs;
use std::io::{Read as _, Seek};
use std::path::Path;

use super::*;
use crate::watch::output::TAIL_BYTES;
use crate::watch::testing::{gate, is_root, session, shell, skip, start, until};

fn until_empty(run: &Run) {
    until("the end of the run", || run.is_empty());
}

fn exists(pid: i32) -> bool {
    processes::key_of(&Roots::default(), pid).is_some()
}

#[test]
fn the_output_and_the_status_of_a_program_are_known_after_its_end() {
    let run = start(&shell("echo out; echo err >&2; exit 7"));
    until_empty(&run);
    let words = run.last_words();
    assert!(words.contains("out") && words.contains("err"), "{words}");
    assert_eq!(run.ended().unwrap().status.code(), Some(7));
    assert!(run.ended().unwrap().at > run.started());
}

#[test]
fn a_death_by_signal_is_told_from_an_exit() {
    let run = start(&shell("kill -SEGV $$"));
    until_empty(&run);
    assert_eq!(run.ended().unwrap().status.signal(), Some(11));
}

#[test]
fn the_start_is_announced_before_the_program_executes_with_its_own_number() {
    let mut file = tempfile::tempfile().unwrap();
    let start = Arc::new(StartEvent::new().unwrap());
    let before = Monotonic::now();
    let gate = Gate { start: Arc::clone(&start), announce_to: vec![file.as_fd()] };
    let run = launch(&shell("echo $$"), &gate, &Roots::default()).unwrap();
    let started = start.wait(Some(Duration::from_secs(5))).unwrap();
    assert!(before < started && started < Monotonic::now());
    assert_eq!(run.started(), started);
    until_empty(&run);
    file.rewind().unwrap();
    let mut announced = String::new();
    file.read_to_string(&mut announced).unwrap();
    assert_eq!(announced, run.pid().to_string());
    assert_eq!(run.last_words(), announced);
}

/// A tracefs instance that goes with the test.
struct Instance(PathBuf);

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn the_kernels_tracer_takes_the_number_from_the_gate() {
    if !is_root() {
        return;
    }
    let path = Roots::default().tracefs.join(format!("instances/headstart-gate-test-{}", std::process::id()));
    if fs::create_dir(&path).is_err() {
        return skip("tracefs");
    }
    let instance = Instance(path);
    let filter = instance.0.join("set_event_pid");
    let sink = OpenOptions::new().write(true).open(&filter).unwrap();
    let gate = Gate { announce_to: vec![sink.as_fd()], ..gate() };
    let run = launch(&shell("sleep 60"), &gate, &Roots::default()).unwrap();
    assert_eq!(fs::read_to_string(&filter).unwrap().trim(), run.pid().to_string());
}

#[test]
fn a_program_that_cannot_be_executed_is_an_error_with_its_path_and_lets_waiters_go() {
    let mut command = shell("");
    command.program = "/nonexistent/program".into();
    let gate = gate();
    let error = launch(&command, &gate, &Roots::default()).unwrap_err().to_string();
    assert!(error.contains("/nonexistent/program") && error.contains("No such file"), "{error}");
    assert_eq!(gate.start.wait(Some(Duration::from_secs(5))), None);
}

#[test]
fn a_missing_working_directory_and_a_closed_recorder_are_named() {
    let mut command = shell("");
    command.cwd = Some("/nonexistent/folder".into());
    let error = launch(&command, &gate(), &Roots::default()).unwrap_err().to_string();
    assert!(error.contains("working directory"), "{error}");

    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let gate = Gate { announce_to: vec![full.as_fd()], ..gate() };
    let error = launch(&shell(""), &gate, &Roots::default()).unwrap_err().to_string();
    assert!(error.contains("recorder"), "{error}");
}

#[test]
fn a_script_without_an_interpreter_line_runs_as_a_shell_would_run_it() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("script");
    fs::write(&script, "echo ran $1\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let run = start(&Command::new(&session(), script, ["script", "well"].map(OsString::from).into()));
    until_empty(&run);
    assert_eq!(run.last_words(), "ran well");
}

#[test]
fn the_environment_is_exactly_the_given_one_and_nothing_leaks() {
    let leaky = fs::File::open("/dev/null").unwrap();
    // Cleared on purpose: somebody else's library may open files so.
    rustix::io::fcntl_setfd(&leaky, rustix::io::FdFlags::empty()).unwrap();
    let mut command = Command::new(&session(), "/usr/bin/env".into(), vec!["env".into()]);
    command.env = [("A".into(), "1".into()), ("B".into(), "x=y".into())].into();
    let run = start(&command);
    until_empty(&run);
    assert_eq!(run.last_words(), "A=1\nB=x=y");

    let run = start(&shell("ls /proc/$$/fd; grep -E 'SigBlk|SigIgn' /proc/self/status"));
    until_empty(&run);
    let words = run.last_words();
    assert!(words.starts_with("0\n1\n2\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000"), "{words}");
}

#[test]
fn a_program_is_started_as_the_person_and_cannot_become_root_again() {
    if !is_root() {
        return;
    }
    let mut command = shell("grep -E '^(Uid|Gid|Groups|CapPrm|CapEff|NoNewPrivs)' /proc/self/status; pwd");
    command.credentials = Some(Credentials { uid: 65534, gid: 65533, groups: vec![65533, 65532] });
    command.cwd = Some("/tmp".into());
    let run = start(&command);
    until_empty(&run);
    let words = run.last_words().replace(char::is_whitespace, " ");
    assert_eq!(
        words,
        "Uid: 65534 65534 65534 65534 Gid: 65533 65533 65533 65533 Groups: 65532 65533  CapPrm: 0000000000000000 \
         CapEff: 0000000000000000 NoNewPrivs: 0 /tmp"
    );
}

#[test]
fn a_process_that_detaches_stays_of_the_run_and_is_ended_with_it() {
    let mut run = start(&shell("(setsid sh -c 'sleep 1000 & echo $!; wait' &) ; exit 0"));
    until("the program's end", || run.ended().is_some());
    let mut sleeper = None;
    until("the detached process", || {
        sleeper = run.processes().into_iter().find(|p| p.comm == "sleep");
        sleeper.is_some()
    });
    let sleeper = sleeper.unwrap();
    assert!(run.contains(sleeper.key.pid) && !run.is_empty());
    assert!(!run.contains(std::process::id().cast_signed()));
    assert_eq!(sleeper.exe, Path::new("/usr/bin/sleep").canonicalize().ok());
    let ending = run.end(Duration::from_secs(5));
    assert!(ending.asked.iter().any(|p| p.key == sleeper.key), "{ending:?}");
    assert_eq!((ending.killed.len(), ending.left.len()), (0, 0), "{ending:?}");
    assert!(!exists(sleeper.key.pid) && !exists(run.keeper()));
    assert_eq!(run.end(Duration::from_secs(5)), Ending::default());
}

#[test]
fn what_does_not_hear_is_killed_and_named() {
    let mut run = start(&shell("trap '' TERM; echo ready; while :; do sleep 0.05; done"));
    until("the trap", || run.last_words().contains("ready"));
    let pid = run.pid();
    let before = Monotonic::now();
    let ending = run.end(Duration::from_millis(200));
    assert!(Duration::from(Monotonic::now().since(before)) < Duration::from_secs(3));
    assert!(ending.killed.iter().any(|p| p.key.pid == pid && p.comm == "sh"), "{ending:?}");
    assert!(!exists(pid) && ending.left.is_empty());
}

#[test]
fn a_stopped_process_is_ended_too() {
    let mut run = start(&shell("kill -STOP $$; exit 0"));
    let stopped = || fs::read_to_string(format!("/proc/{}/stat", run.pid())).unwrap().contains(") T ");
    until("the stop", stopped);
    let ending = run.end(Duration::from_secs(5));
    assert!(ending.killed.is_empty(), "{ending:?}");
}

#[test]
fn dropping_a_run_leaves_nothing_even_while_it_forks_without_end() {
    let run = start(&shell("while :; do (setsid sleep 1000 &); sleep 0.01; done"));
    until("some processes", || run.processes().len() > 8);
    let (keeper, seen) = (run.keeper(), run.processes());
    drop(run);
    assert!(!exists(keeper));
    for process in seen {
        assert_ne!(processes::key_of(&Roots::default(), process.key.pid), Some(process.key));
    }
}

#[test]
fn the_keeper_ends_the_run_when_its_control_pipe_closes() {
    let mut run = start(&shell("(setsid sleep 1000 &); trap '' TERM INT HUP; while :; do sleep 1; done"));
    until("some processes", || run.processes().len() >= 3);
    let seen = run.processes();
    // What happens when we are killed: the kernel closes it, and nobody walks any list.
    run.control = None;
    until("the end of all", || seen.iter().all(|p| processes::key_of(&run.roots, p.key.pid) != Some(p.key)));
    run.wait_for_keeper();
    assert!(!exists(run.keeper()));
}

#[test]
fn a_killed_keeper_takes_the_program_with_it() {
    let mut run = start(&shell("trap '' TERM INT HUP; while :; do sleep 0.1; done"));
    until("the program", || run.processes().iter().any(|p| p.key.pid == run.pid()));
    rustix::process::kill_process(run.keeper, Signal::KILL).unwrap();
    until("the end", || run.is_empty() && !exists(run.pid()));
    assert_eq!(run.end(Duration::from_secs(1)).left, []);
}

#[test]
fn the_account_has_what_ended_processes_used() {
    let burn = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    let mut run = start(&shell(&format!("({burn}) & ({burn}; setsid sh -c '{burn}' &) & wait; sleep 1000")));
    until("the burning", || run.processes().len() == 2 && run.account().cpu > Nanos(0));
    let during = run.account();
    let ending = run.end(Duration::from_secs(5));
    assert!(ending.account.cpu >= during.cpu, "{during:?} {ending:?}");
    assert!(ending.account.cpu > Nanos(100_000_000), "{ending:?}");
}

#[test]
fn bytes_read_from_a_drive_are_summed_over_living_and_ended_processes() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = dir.path().join("data");
    fs::write(&file, vec![7; 4 << 20]).unwrap();
    // Read past the page cache: what direct I/O reads comes from the drive for certain.
    let read = format!("dd if={} of=/dev/null bs=1M iflag=direct status=none", file.display());
    let mut run = start(&shell(&format!("{read} && {read}; echo done; sleep 1000")));
    until("the reading", || !run.last_words().is_empty());
    if run.last_words() != "done" {
        return skip("direct I/O in /var/tmp");
    }
    let read = run.account().read.unwrap();
    assert!(read.0 >= 8 << 20, "{read}");
    assert!(run.end(Duration::ZERO).account.read.unwrap() >= read);
}

#[test]
fn runs_side_by_side_do_not_mix() {
    let runs: Vec<Run> = (0..4).map(|_| start(&shell("(setsid sleep 1000 &); exit 0"))).collect();
    for run in &runs {
        until("one detached process each", || run.ended().is_some() && run.processes().len() == 1);
    }
    let pids: Vec<i32> = runs.iter().map(|run| run.processes()[0].key.pid).collect();
    for (run, own) in runs.iter().zip(&pids) {
        assert!(pids.iter().all(|pid| run.contains(*pid) == (pid == own)));
    }
}

#[test]
fn a_flood_of_output_neither_stops_the_program_nor_fills_memory() {
    let run = start(&shell("head -c 20000000 /dev/zero | tr '\\0' x; echo; echo the end"));
    until_empty(&run);
    assert!(run.last_words().ends_with("the end"));
    assert!(run.last_words().len() <= TAIL_BYTES);
}
