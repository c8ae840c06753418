use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::*;
use crate::sys::loop_images::{LoopImage, private_mounts, run};
use crate::watch::testing::is_root;

fn executable(path: &Path, content: impl AsRef<[u8]>) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A program that does nothing, copied to where it has an inode of its own.
fn program(path: &Path) {
    executable(path, fs::read("/bin/true").unwrap());
}

fn id(path: &Path) -> FileId {
    FileId::from(&rustix::fs::stat(path).unwrap())
}

/// All that is reported until nothing comes for a while.
fn all(execs: &Execs) -> Vec<Event> {
    let mut events = Vec::new();
    let patience = Timespec::try_from(Duration::from_millis(100)).unwrap();
    while poll(&mut [PollFd::new(execs, PollFlags::IN)], Some(&patience)).unwrap() > 0 {
        execs.read(&mut events);
    }
    events
}

fn execute(path: &Path) -> i32 {
    let mut child = Command::new(path).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    child.wait().unwrap();
    child.id().try_into().unwrap()
}

fn files(events: &[Event]) -> Vec<(FileId, i32)> {
    let exec = |event: &Event| match event {
        Event::Exec(exec) => (exec.file, exec.pid),
        Event::Lost => panic!("lost"),
    };
    events.iter().map(exec).collect()
}

#[test]
fn a_watched_program_is_reported_with_its_process_and_no_other_is() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let [watched, other] = ["watched", "other"].map(|name| folder.path().join(name));
    program(&watched);
    program(&other);
    let mut execs = Execs::new().unwrap();
    assert!(execs.watch([&watched]).is_empty());
    execute(&other);
    let pid = execute(&watched);
    fs::read(&watched).unwrap();
    assert_eq!(files(&all(&execs)), [(id(&watched), pid)]);
    execs.unwatch([&watched]);
    execute(&watched);
    assert!(all(&execs).is_empty() && execs.is_empty());
}

#[test]
fn a_script_is_reported_as_itself_and_what_is_only_read_is_not() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let [script, interpreter, argument] =
        ["script", "interpreter", "argument"].map(|n| folder.path().join(n));
    fs::copy("/bin/sh", &interpreter).unwrap();
    executable(&script, format!("#!{}\nexit 0\n", interpreter.display()));
    executable(&argument, "exit 0\n");
    let mut execs = Execs::new().unwrap();
    assert!(execs.watch([&script, &argument]).is_empty());
    let pid = execute(&script);
    assert_eq!(files(&all(&execs)), [(id(&script), pid)]);
    // The interpreter is opened as a program too, once it is known which.
    assert!(execs.watch([&interpreter]).is_empty());
    let pid = execute(&script);
    assert_eq!(files(&all(&execs)), [(id(&script), pid), (id(&interpreter), pid)]);
    execs.unwatch([&interpreter]);
    assert!(Command::new("/bin/sh").arg(&argument).status().unwrap().success());
    // Nor is what the dynamic loader is told to run, which it maps by itself.
    if let Some(loader) = fs::read_dir("/lib64").into_iter().flatten().flatten().find(|e| e.path().is_file())
    {
        program(&argument);
        assert!(execs.watch([&argument]).is_empty());
        assert!(Command::new(loader.path()).arg(&argument).status().unwrap().success());
    }
    assert!(all(&execs).is_empty());
}

#[test]
fn a_replaced_program_is_reported_again_once_it_is_watched_anew() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let [path, new, link] = ["app", "app.new", "link"].map(|name| folder.path().join(name));
    program(&path);
    let mut execs = Execs::new().unwrap();
    assert!(execs.watch([&path]).is_empty());
    // The old file lives on by another name, with its mark.
    fs::hard_link(&path, &link).unwrap();
    let old = id(&path);
    program(&new);
    fs::rename(&new, &path).unwrap();
    execute(&path);
    assert!(all(&execs).is_empty());
    assert!(execs.watch([&path]).is_empty());
    execute(&link);
    let pid = execute(&path);
    assert_ne!(id(&path), old);
    assert_eq!(files(&all(&execs)), [(id(&path), pid)]);
    assert_eq!((execs.len(), execs.file(&path)), (1, Some(id(&path))));
}

#[test]
fn two_names_of_a_file_are_one_mark_and_the_last_takes_it_away() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
    program(&one);
    std::os::unix::fs::symlink(&one, &two).unwrap();
    let mut execs = Execs::new().unwrap();
    assert!(execs.watch([&one, &two]).is_empty() && execs.watch([&two]).is_empty());
    assert_eq!(execs.len(), 1);
    execs.unwatch([&one]);
    execute(&one);
    assert_eq!(all(&execs).len(), 1);
    assert!(execs.watch_only([] as [&Path; 0]).is_empty());
    execute(&one);
    assert!(all(&execs).is_empty() && execs.is_empty());
}

#[test]
fn what_cannot_be_watched_is_named_and_hides_no_other() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = |name: &str| folder.path().join(name);
    program(&path("app"));
    rustix::fs::mknodat(CWD, path("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let mut execs = Execs::new().unwrap();
    let errors = execs.watch([path("none"), path("pipe"), folder.path().to_path_buf(), path("app")]);
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert!(
        errors[0].contains("none: No such file") && errors[1].contains("not a regular file"),
        "{errors:?}"
    );
    assert_eq!(execs.len(), 1);
}

#[test]
fn a_thousand_starts_a_second_are_all_reported_and_soon() {
    const RATE: u64 = 1000;
    const SECONDS: u64 = 2;
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = folder.path().join("app");
    program(&path);
    let mut execs = Execs::new().unwrap();
    assert!(execs.watch([&path]).is_empty());
    let starter = std::thread::spawn({
        let path = path.clone();
        move || {
            let began = Instant::now();
            let mut children = Vec::new();
            for n in 0..RATE * SECONDS {
                let at = Monotonic::now();
                children.push((at, Command::new(&path).spawn().unwrap()));
                if n % 20 == 19 {
                    // So that numbers stay in use, and no process is mistaken for another.
                    for (_, child) in children.iter_mut().rev().take(20) {
                        child.wait().unwrap();
                    }
                    let due = Duration::from_micros(n * 1_000_000 / RATE);
                    std::thread::sleep(due.saturating_sub(began.elapsed()));
                }
            }
            let took = began.elapsed();
            (children.iter().map(|(at, child)| (child.id(), *at)).collect::<Vec<_>>(), took)
        }
    });
    let mut events = Vec::new();
    while !starter.is_finished() {
        let patience = Timespec::try_from(Duration::from_millis(50)).unwrap();
        poll(&mut [PollFd::new(&execs, PollFlags::IN)], Some(&patience)).unwrap();
        execs.read(&mut events);
    }
    events.extend(all(&execs));
    let (children, took) = starter.join().unwrap();
    assert!(!events.contains(&Event::Lost));
    assert_eq!(events.len(), children.len());
    let mut delays: Vec<u64> = events
        .iter()
        .zip(&children)
        .map(|(event, (_, began))| match event {
            Event::Exec(exec) => exec.at.since(*began).0 / 1000,
            Event::Lost => 0,
        })
        .collect();
    delays.sort_unstable();
    let at = |share: usize| delays[delays.len() * share / 100 - 1];
    println!(
        "{} starts in {took:?}; from before the fork to the event, µs: median {}, 99 % {}",
        delays.len(),
        at(50),
        at(99)
    );
    assert!(at(50) < 20_000, "median {} µs", at(50));
}

#[test]
fn more_than_the_kernel_keeps_is_reported_as_lost() {
    if !is_root() {
        return;
    }
    let limit = fs::read_to_string("/proc/sys/fs/fanotify/max_queued_events");
    let limit: usize = limit.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(16384);
    if limit > 20_000 {
        eprintln!("SKIPPED: a limit of {limit} events takes too long to reach");
        return;
    }
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = folder.path().join("app");
    // Opened for execution and refused, which is faster than starting it; another file each time, as what one process
    // does to one file is told once.
    let paths: Vec<PathBuf> = (0..=limit / 64).map(|n| folder.path().join(n.to_string())).collect();
    executable(&path, [0_u8; 4]);
    for link in &paths {
        executable(link, [0_u8; 4]);
    }
    let mut execs = Execs::new().unwrap();
    assert!(execs.watch(&paths).is_empty());
    for _ in 0..70 {
        let script = "for f in \"$1\"/*; do exec_fails() { \"$f\"; }; exec_fails; done 2>/dev/null; true";
        // Each shell's children are other processes.
        run("sh", &["-c", script, "sh", folder.path().to_str().unwrap()]);
    }
    assert!(all(&execs).contains(&Event::Lost));
}

#[test]
fn files_on_btrfs_and_overlays_are_known_by_the_numbers_they_are_reported_with() {
    if !is_root() || !private_mounts() {
        return;
    }
    let mut execs = Execs::new().unwrap();
    if let Some(image) = LoopImage::in_this_namespace("btrfs", 128) {
        assert!(run("btrfs", &["subvolume", "create", image.join("sub").to_str().unwrap()]));
        check(&mut execs, &image.join("sub/app"));
    }
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["lower", "upper", "work", "merged"] {
        fs::create_dir(path(name)).unwrap();
    }
    program(&path("lower/app"));
    let [lower, upper, work] = ["lower", "upper", "work"].map(|name| path(name).display().to_string());
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
    let merged = path("merged").display().to_string();
    if run("mount", &["-t", "overlay", "overlay", "-o", &options, &merged]) {
        let app = path("merged/app");
        assert!(execs.watch([&app]).is_empty());
        let pid = execute(&app);
        assert_eq!(files(&all(&execs)), [(id(&app), pid)]);
        check(&mut execs, &path("merged/new"));
        assert!(run("umount", &[&merged]));
        // Neither the mark nor anything else keeps the mount busy.
        assert!(!app.exists());
    }
}

fn check(execs: &mut Execs, path: &Path) {
    program(path);
    assert!(execs.watch([path]).is_empty());
    let pid = execute(path);
    assert_eq!(files(&all(execs)), [(id(path), pid)]);
}
