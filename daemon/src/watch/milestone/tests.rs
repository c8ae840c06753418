//! Starts that need no display: commands that end, and programs that come to rest.

use super::*;
use crate::watch::testing::{session, shell, start};

fn wait(goal: Goal, script: &str, deadline_ms: u64) -> (Outcome, Run) {
    let hints = Hints::of(None, Path::new("/bin/sh"));
    let mut watcher = Watcher::prepare(goal, &session(), hints, &Roots::default()).unwrap();
    let mut command = shell(script);
    assert!(!watcher.configure(&mut command));
    let mut run = start(&command);
    let outcome = watcher.wait(&mut run, Duration::from_millis(deadline_ms), &AtomicBool::new(false));
    (outcome, run)
}

fn at(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::Reached { at, .. } => at.0 / 1_000_000,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_command_is_over_when_it_ends_whatever_it_leaves_behind() {
    let (outcome, run) = wait(Goal::Exit, "(setsid sleep 1000 &); sleep 0.2; exit 4", 20_000);
    assert!((200..2000).contains(&at(&outcome)), "{outcome:?}");
    assert!(
        matches!(&outcome, Outcome::Reached { by: Evidence::Exit(status), .. } if status.code() == Some(4))
    );
    assert!(!run.is_empty());
}

#[test]
fn a_command_that_does_not_end_in_time_is_told_so() {
    let (outcome, _run) = wait(Goal::Exit, "echo still here; sleep 1000", 300);
    assert!(matches!(&outcome, Outcome::TooLate { running: true, .. }), "{outcome:?}");
    let told = outcome.to_string();
    assert!(
        told.starts_with("it did not end within 0.300 s; it still runs") && told.ends_with("still here"),
        "{told}"
    );
}

#[test]
fn work_is_over_when_it_comes_to_rest() {
    let quiet = Quiet { span: Duration::from_millis(500), cpu_share: 0.1 };
    let work = "end=$(($(date +%s%N) + 600000000)); while [ $(date +%s%N) -lt $end ]; do :; done; sleep 1000";
    let (outcome, _run) = wait(Goal::Settled(quiet), work, 20_000);
    assert!((400..3000).contains(&at(&outcome)), "{outcome:?}");
}

#[test]
fn new_pages_keep_a_start_from_being_settled() {
    let quiet = Quiet { span: Duration::from_millis(300), cpu_share: 0.1 };
    let mut watcher =
        Watcher::prepare(Goal::Settled(quiet), &session(), Hints::default(), &Roots::default()).unwrap();
    let mut samples = 0;
    // As a recorder would see a program that touches new pages for a while.
    watcher.count_pages(Box::new(move || {
        samples += 1;
        Some(u64::min(samples, 30))
    }));
    let mut run = start(&shell("sleep 1000"));
    let outcome = watcher.wait(&mut run, Duration::from_secs(20), &AtomicBool::new(false));
    assert!(at(&outcome) >= 500, "{outcome:?}");
}

#[test]
fn a_program_that_ends_before_it_settles_is_told_so() {
    let (outcome, _run) = wait(Goal::Settled(Quiet::default()), "echo gone >&2; exit 1", 20_000);
    assert!(
        matches!(&outcome, Outcome::ExitedEarly { last_words, .. } if last_words == "gone"),
        "{outcome:?}"
    );
}

#[test]
fn last_words_do_not_command_the_terminal() {
    let outcome = Outcome::ExitedEarly {
        status: std::process::ExitStatus::default(),
        after: Nanos(1),
        last_words: "\u{1b}]0;title\u{7}\nsecond".into(),
        notes: Vec::new(),
    };
    let told = outcome.to_string();
    assert!(told.contains("]0;title") && told.ends_with("\nsecond"), "{told:?}");
    assert!(!told.contains('\u{1b}') && !told.contains('\u{7}'), "{told:?}");
}

#[test]
fn an_application_is_known_by_all_its_names() {
    let hints = Hints::of(None, Path::new("/usr/lib/firefox/Firefox-bin"));
    assert!(hints.matches("firefox-BIN") && !hints.matches("firefox") && !hints.matches(""));
}
