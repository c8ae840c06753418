use std::process::{Child, Command};
use std::time::Duration;

use super::*;
use crate::watch::processes::key_of;

fn sampler(child: &Child) -> Sampler {
    let roots = Roots::default();
    let first = key_of(&roots, i32::try_from(child.id()).unwrap()).unwrap();
    Sampler::new(&roots, first, Monotonic::now())
}

fn until(sampler: &mut Sampler, over: impl Fn(&Sampler) -> bool) -> Totals {
    for _ in 0..500 {
        let totals = sampler.sample();
        if over(sampler) {
            return totals;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("not within 5 s: {sampler:?}");
}

#[test]
fn what_children_used_is_counted_once_whether_they_live_or_were_reaped() {
    // Two seconds of user time would take too long: some turns of the shell's own loop, in a child and in itself.
    let script = "spin() { i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; }; (spin); spin; exec sleep 60";
    let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
    let mut sampler = sampler(&child);
    let before = until(&mut sampler, |s| s.seen.values().any(|p| p.name == "sleep"));
    let again = sampler.sample();
    let own = read_times(&Roots::default(), i32::try_from(child.id()).unwrap()).unwrap();
    let (own, reaped) = (own.user + own.system, own.reaped_user + own.reaped_system);
    assert!(own.0 > 0 && reaped.0 > 0, "{own:?} {reaped:?}");
    let all = own + reaped;
    assert!(before.cpu() <= all && again.cpu() == all, "{before:?} {again:?} {all:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    let after = until(&mut sampler, Sampler::is_empty);
    assert!(after.cpu() >= again.cpu(), "its end undoes nothing: {after:?}");
}

#[test]
fn a_process_whose_parent_has_ended_is_still_the_launchs() {
    let mut child = Command::new("sh").args(["-c", "sleep 60 & sleep 0.3"]).spawn().unwrap();
    let mut sampler = sampler(&child);
    until(&mut sampler, |s| s.seen.values().filter(|p| p.name == "sleep").count() == 2);
    child.wait().unwrap();
    until(&mut sampler, Sampler::first_is_gone);
    sampler.sample();
    let left: Vec<ProcessKey> = sampler.alive().collect();
    assert_eq!(left.len(), 1, "{sampler:?}");
    assert!(!sampler.is_empty() && sampler.has(left[0].pid));
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(left[0].pid).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    until(&mut sampler, Sampler::is_empty);
    let (spans, samples) = sampler.into_timeline();
    assert_eq!(spans.len(), 3);
    assert_eq!((spans[0].parent, spans[0].began), (0, Nanos(0)));
    assert!(spans.iter().all(|span| span.ended.is_some()));
    assert!(samples.windows(2).all(|pair| pair[0].at < pair[1].at));
}

#[test]
fn a_number_that_was_given_to_another_process_is_not_the_launch() {
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let mut sampler = sampler(&child);
    sampler.first.started += 1;
    sampler.sample();
    assert!(sampler.is_empty() && sampler.seen.is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn an_interpreted_script_is_told_by_its_own_name() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("frobnicate");
    std::fs::write(&script, "#!/bin/sh\nsleep 60; true\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut child = Command::new(&script).spawn().unwrap();
    let mut sampler = sampler(&child);
    until(&mut sampler, |s| s.seen.values().any(|p| p.name == "frobnicate"));
    until(&mut sampler, |s| s.seen.len() == 2);
    for key in sampler.alive().collect::<Vec<_>>() {
        let pid = rustix::process::Pid::from_raw(key.pid).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
    child.wait().unwrap();
}

#[test]
fn what_is_in_the_control_group_of_the_launch_belongs_to_it_though_its_parent_was_never_seen() {
    let dir = tempfile::tempdir().unwrap();
    let group = dir.path().join("fs/cgroup/user.slice/app-org.example.Test-4711.scope");
    fs::create_dir_all(&group).unwrap();
    let roots = Roots { sys: dir.path().into(), ..Roots::default() };
    let mut older = Command::new("sleep").arg("60").spawn().unwrap();
    std::thread::sleep(Duration::from_millis(30));
    let mut first = Command::new("sleep").arg("60").spawn().unwrap();
    let mut escaped = Command::new("sleep").arg("60").spawn().unwrap();
    let [old, pid, other] = [&older, &first, &escaped].map(|child| i32::try_from(child.id()).unwrap());
    // What /proc says of control groups is the kernel's own; here only one that the test made up can be told of.
    let proc = dir.path().join("proc");
    fs::create_dir(&proc).unwrap();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        if entry.file_name() != *pid.to_string() {
            std::os::unix::fs::symlink(entry.path(), proc.join(entry.file_name())).unwrap();
        }
    }
    fs::create_dir(proc.join(pid.to_string())).unwrap();
    for name in ["stat", "task", "io", "exe", "cmdline"] {
        std::os::unix::fs::symlink(format!("/proc/{pid}/{name}"), proc.join(format!("{pid}/{name}")))
            .unwrap();
    }
    fs::write(proc.join(format!("{pid}/cgroup")), "0::/user.slice/app-org.example.Test-4711.scope\n")
        .unwrap();
    let roots = Roots { proc, ..roots };
    let key = key_of(&roots, pid).unwrap();
    let members = |pids: &[i32]| {
        let list = pids.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        fs::write(group.join("cgroup.procs"), list).unwrap();
        let mut sampler = Sampler::new(&roots, key, Monotonic::now());
        sampler.sample();
        let mut alive: Vec<i32> = sampler.alive().map(|key| key.pid).collect();
        alive.sort_unstable();
        alive
    };
    let mut both = vec![pid, other];
    both.sort_unstable();
    assert_eq!(members(&[pid, other]), both);
    assert_eq!(
        members(&[old, pid, other]),
        [pid],
        "a group that is older, as a terminal's, is not the launch's"
    );
    for child in [&mut older, &mut first, &mut escaped] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
