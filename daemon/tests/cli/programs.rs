//! Programs that are not there, or do not start as one would wish.

use std::process::Command;

use crate::support::{Place, Screen, assert_fails, is_root, stderr};

#[test]
fn an_unknown_application_is_named_with_those_like_it() {
    let place = Place::new();
    let program = place.script("editor", "exit 0");
    place.install("org.example.Editor", "Plain Editor", &program);
    place.install("org.example.Player", "Player", &program);
    let output = place.headstartctl().args(["try", "editro"]).output().unwrap();
    assert_fails(
        &output,
        &["no installed application is called \"editro\"", "org.example.Editor", "try -- COMMAND"],
    );
    assert!(!stderr(&output).contains("Player"), "{}", stderr(&output));
    assert!(!place.state().exists());
}

#[test]
fn a_name_that_two_applications_have_is_not_guessed() {
    let place = Place::new();
    let program = place.script("editor", "exit 0");
    place.install("org.example.One", "Editor", &program);
    place.install("org.example.Two", "Editor", &program);
    let output = place.headstartctl().args(["try", "editor"]).output().unwrap();
    assert_fails(&output, &["org.example.One", "org.example.Two", "give one of these"]);
}

#[test]
fn an_unknown_command_is_named_with_those_like_it() {
    let place = Place::new();
    place.script("frobnicate", "exit 0");
    let mut command = place.headstartctl();
    let output = command.args(["try", "--", "frobnicat"]).env("PATH", place.path("")).output().unwrap();
    assert_fails(&output, &["no command frobnicat", "did you mean frobnicate?"]);
}

#[test]
fn what_is_no_program_is_not_started() {
    let place = Place::new();
    std::fs::write(place.path("text"), "not a program").unwrap();
    let output = place.headstartctl().args(["try", "--"]).arg(place.path("text")).output().unwrap();
    assert_fails(&output, &["text cannot be executed", "chmod +x"]);
    let output = place.headstartctl().args(["try", "--"]).arg(place.path("")).output().unwrap();
    assert_fails(&output, &["it is not a regular file"]);
    let output = place.headstartctl().args(["try", "--"]).arg(place.path("none")).output().unwrap();
    assert_fails(&output, &["none", "No such file"]);
}

#[test]
fn a_command_that_fails_is_not_counted_unless_asked_for() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let program = place.script("fails", "exit 3");
    let failing = [program.to_str().unwrap()];
    let output = place.attempt(&["--"]).args(failing).output().unwrap();
    assert_fails(&output, &["exit status: 3", "--ignore-failure"]);
    let output = place.attempt(&["--ignore-failure", "--"]).args(failing).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn an_application_without_a_window_is_given_up_and_ended() {
    let (true, Some(screen)) = (is_root(), Screen::start()) else { return };
    let place = Place::new();
    let program =
        place.script("windowless", &format!("sleep 1000 & exec tail -f {}", place.path("home").display()));
    place.install("org.example.Windowless", "Windowless", &program);
    let mut command = place.attempt(&["--timeout", "1", "windowless"]);
    let output = command.env("DISPLAY", &screen.name).output().unwrap();
    assert_fails(&output, &["Windowless: it showed no window within", "it still runs", "--until settled"]);
    assert_eq!(place.processes(), [""; 0]);
}

#[test]
fn an_application_that_exits_at_once_is_told_with_its_last_words() {
    let (true, Some(screen)) = (is_root(), Screen::start()) else { return };
    let place = Place::new();
    let program = place.script("gone", "echo cannot open the shop >&2; exit 4");
    place.install("org.example.Gone", "Gone", &program);
    let output = place.attempt(&["gone"]).env("DISPLAY", &screen.name).output().unwrap();
    assert_fails(&output, &["before the start was over", "exit status: 4", "cannot open the shop"]);
}

#[test]
fn a_start_that_is_handed_to_a_running_instance_does_not_count() {
    let (true, Some(screen)) = (is_root(), Screen::start()) else { return };
    let place = Place::new();
    let lock = place.path("lock");
    let text = format!("[ -e {0} ] && exit 0; touch {0}; sleep 1000", lock.display());
    let program = place.script("single", &text);
    place.install("org.example.Single", "Single", &program);
    let mut first = Command::new(&program).spawn().unwrap();
    while !lock.exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let output = place.attempt(&["single"]).env("DISPLAY", &screen.name).output().unwrap();
    let alive = first.try_wait().unwrap().is_none();
    let children = format!("/proc/{0}/task/{0}/children", first.id());
    for child in std::fs::read_to_string(children).unwrap().split_whitespace() {
        let _ = Command::new("kill").arg(child).status();
    }
    first.kill().unwrap();
    first.wait().unwrap();
    assert_fails(&output, &["handed over", &format!("process {}", first.id()), "close"]);
    assert!(alive, "the instance that was there is the person's");
}

#[test]
fn a_known_command_is_timed_to_its_exit_again_where_there_is_a_screen() {
    let (true, Some(screen)) = (is_root(), Screen::start()) else { return };
    let place = Place::of_lasting_files();
    std::fs::write(place.path("data"), vec![7; 1 << 20]).unwrap();
    for _ in 0..2 {
        let mut command = place.attempt(&["--", "/bin/cat"]);
        let output = command.arg(place.path("data")).env("DISPLAY", &screen.name).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }
}

#[test]
fn nothing_is_said_twice() {
    let place = Place::new();
    let output = place.headstartctl().args(["try", "--", "frobnicat"]).output().unwrap();
    assert_eq!(stderr(&output).matches("no command frobnicat").count(), 1, "{}", stderr(&output));
    let output = place.headstartctl().args(["try", "no such application"]).output().unwrap();
    assert_eq!(stderr(&output).matches("no installed application").count(), 1, "{}", stderr(&output));
}
