use std::io::Seek;

use super::*;

fn session() -> Session {
    Session::invoking(&Roots::default()).unwrap()
}

fn shell(script: &str) -> Command {
    Command::new(&session(), "/bin/sh".into(), ["sh", "-c", script].map(OsString::from).into())
}

fn gate() -> Gate<'static> {
    Gate { start: Arc::new(StartEvent::new().unwrap()), announce_to: Vec::new() }
}

fn start(command: &Command) -> Run {
    launch(command, &gate(), &Roots::default()).unwrap()
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Monotonic::now().after(Duration::from_secs(10));
    while !done() {
        assert!(Monotonic::now() < deadline, "waited too long for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn until_empty(run: &Run) {
    until("the end of the run", || run.is_empty());
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

#[test]
fn a_program_that_cannot_be_executed_is_an_error_with_its_path_and_lets_waiters_go() {
    let mut command = shell("");
    command.program = "/nonexistent/program".into();
    let gate = gate();
    let error = launch(&command, &gate, &Roots::default()).unwrap_err().to_string();
    assert!(error.contains("/nonexistent/program") && error.contains("No such file"), "{error}");
    assert_eq!(gate.start.wait(Some(Duration::from_secs(5))), None);
}
