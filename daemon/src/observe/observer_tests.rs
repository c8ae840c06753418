use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc::{Sender, channel};

use super::*;

fn start(script: &str) -> Child {
    Command::new("sh").args(["-c", script]).spawn().unwrap()
}

fn begun(child: &Child, expected: Expected) -> Begun {
    let first = key_of(&Roots::default(), i32::try_from(child.id()).unwrap()).unwrap();
    let hints = Hints::of(None, Path::new("/usr/bin/test-app"));
    Begun { first, started: Monotonic::now(), hints, expected, running: false }
}

fn window(pid: Option<i32>, name: &str) -> Told {
    Told::Window(Window { uid: 0, at: Monotonic::now(), pid, names: vec![name.into()] })
}

/// Watches a child to the end, as `tell` tells it.
fn watched(child: &mut Child, begun: Begun, tell: impl FnOnce(Sender<Told>) + Send) -> Observed {
    let roots = Roots::default();
    let (sender, told) = channel();
    let seen = std::thread::scope(|scope| {
        scope.spawn(|| tell(sender));
        let mut observer = Observer::new(&roots, begun, &told);
        observer.watch(|| {});
        observer.finish(Bytes(0))
    });
    let _ = child.kill();
    child.wait().unwrap();
    seen
}

fn without_load(observed: &Observed) -> Vec<Exclusion> {
    // Other tests run beside.
    observed.exclusions.iter().copied().filter(|e| *e != Exclusion::ForeignLoad).collect()
}

fn keep(sender: Sender<Told>) {
    std::thread::sleep(Duration::from_secs(3));
    drop(sender);
}

#[test]
fn a_launch_with_a_window_is_over_when_it_is_shown_and_all_is_quiet() {
    let mut child = start("i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done; sleep 60 & wait");
    let pid = i32::try_from(child.id()).unwrap();
    let seen = {
        let begun = begun(&child, Expected::Window);
        watched(&mut child, begun, |sender| {
            std::thread::sleep(Duration::from_millis(1500));
            sender.send(window(Some(pid), "anything")).unwrap();
            keep(sender);
        })
    };
    assert_eq!(without_load(&seen), []);
    let [(first, quiet), (second, shown)] = seen.milestones[..] else { panic!("{seen:?}") };
    assert_eq!((first, second), (Milestone::Settled, Milestone::FirstWindow));
    assert!(quiet < Nanos(1_000_000_000) && shown >= Nanos(1_500_000_000), "{seen:?}");
    assert!(seen.processes.len() >= 2 && seen.samples.len() > 10, "{seen:?}");
}

#[test]
fn a_start_that_ends_at_once_while_an_older_instance_shows_a_window_is_hot() {
    let mut older = start("sleep 60");
    std::thread::sleep(Duration::from_millis(30));
    let mut child = start("sleep 0.2");
    let pid = i32::try_from(older.id()).unwrap();
    let seen = {
        let begun = begun(&child, Expected::Window);
        watched(&mut child, begun, |sender| {
            sender.send(window(Some(pid), "Test-App")).unwrap();
            keep(sender);
        })
    };
    older.kill().unwrap();
    older.wait().unwrap();
    assert_eq!(without_load(&seen), [Exclusion::Hot]);
    assert!(seen.is_hot());
}

#[test]
fn a_start_that_ends_without_a_window_ended_early_and_a_command_has_just_ended() {
    let mut child = start("sleep 0.1");
    let begun_as = begun(&child, Expected::Window);
    assert_eq!(without_load(&watched(&mut child, begun_as, keep)), [Exclusion::EndedEarly]);
    let mut child = start("sleep 0.1");
    let running = Begun { running: true, ..begun(&child, Expected::Window) };
    assert_eq!(without_load(&watched(&mut child, running, keep)), [Exclusion::Hot]);
    let mut child = start("sleep 0.1");
    let begun_as = begun(&child, Expected::Exit);
    let seen = watched(&mut child, begun_as, keep);
    assert_eq!(without_load(&seen), []);
    assert!(matches!(seen.milestones[..], [(Milestone::Exit, _)]), "{seen:?}");
}

#[test]
fn without_anybody_who_tells_of_windows_quiet_is_the_milestone() {
    let mut child = start("sleep 60");
    let begun = begun(&child, Expected::Unseen);
    let seen = watched(&mut child, begun, keep);
    assert_eq!(without_load(&seen), []);
    assert!(matches!(seen.milestones[..], [(Milestone::Settled, _)]), "{seen:?}");
}

#[test]
fn a_launch_that_the_service_does_not_see_the_end_of_is_interrupted() {
    let mut child = start("sleep 60");
    let begun = begun(&child, Expected::Window);
    let seen = watched(&mut child, begun, |sender| sender.send(Told::Stop).unwrap());
    assert_eq!(without_load(&seen), [Exclusion::Interrupted]);
}

#[test]
fn windows_of_other_apps_and_of_before_are_not_the_launchs() {
    let mut other = start("sleep 60");
    let mut child = start("sleep 0.3");
    let begun = begun(&child, Expected::Window);
    let pid = i32::try_from(child.id()).unwrap();
    let early = Window { uid: 0, at: Monotonic(1), pid: Some(pid), names: Vec::new() };
    let foreign = i32::try_from(other.id()).unwrap();
    let seen = watched(&mut child, begun, |sender| {
        sender.send(Told::Window(early)).unwrap();
        sender.send(window(Some(foreign), "another")).unwrap();
        sender.send(window(None, "another")).unwrap();
        keep(sender);
    });
    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!(without_load(&seen), [Exclusion::EndedEarly]);
}
