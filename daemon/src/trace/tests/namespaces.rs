//! Programs that see other mounts, or another root, than the recorder.

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

use super::program::{command, in_shell, line};
use super::*;
use crate::mounts::Mounts;
use crate::recording::DeviceNumber;
use crate::sys::loop_images::{LoopImage, own_mounts, private_mounts, run};
use crate::trace::namespaces::Namespaces;
use crate::trace::opens;

/// How a shell starts the program, whatever namespace or root it got itself into.
const PROGRAM: &str = "exec sh -ec \"$HEADSTART_TEST_PROGRAM\"";

/// The program, started by a shell by way of `before`.
fn prepared(before: &str, script: &[String]) -> Command {
    let mut prepared = shell(before);
    prepared.env = command(script).env;
    prepared.env.insert("HEADSTART_TEST_PROGRAM".into(), in_shell().into());
    prepared
}

fn check(before: &str, script: &[String], expected: &[(&Path, PageRange)]) {
    check_held(before, script, expected, |_| {});
}

/// Records until nobody has emptied the caches of the whole machine meanwhile: what is not resident any more in the end
/// is not recorded.
fn undisturbed(record: impl Fn() -> Option<Recording>) -> Option<Recording> {
    let dropped = || {
        let text = fs::read_to_string("/proc/vmstat").unwrap();
        text.lines().find(|line| line.starts_with("drop_pagecache")).map(str::to_owned)
    };
    loop {
        let before = dropped();
        let recording = record()?;
        if dropped() == before {
            return Some(recording);
        }
    }
}

/// [`check`], with something to do once the run has started.
fn check_held(
    before: &str,
    script: &[String],
    expected: &[(&Path, PageRange)],
    meanwhile: impl Fn(&Running),
) {
    for (path, _) in expected {
        make_cold(path);
    }
    for backend in [Backend::Touched, Backend::Resident] {
        let Some(recording) = undisturbed(|| {
            let running = Running::start(recorder(backend)?, &prepared(before, script));
            meanwhile(&running);
            running.until_over();
            Some(running.finish())
        }) else {
            return;
        };
        for (path, pages) in expected {
            assert_eq!(pages_of(&recording, path), [*pages], "{backend:?} {}", path.display());
        }
        if backend == Backend::Touched {
            assert_eq!(recording.unnamed_pages, 0);
        }
    }
}

#[test]
fn a_folder_bound_elsewhere_is_known_by_its_name_here() {
    let Some(image) = LoopImage::new("ext4", 64) else { return };
    fs::create_dir(image.join("folder")).unwrap();
    fs::create_dir(image.join("elsewhere")).unwrap();
    let path = image.file("folder/file", bytes(20));
    let elsewhere = image.join("elsewhere");
    let mount = format!("mount --bind {} {}", image.join("folder").display(), elsewhere.display());
    let before = format!("exec unshare --mount sh -ec '{mount}; {PROGRAM}'");
    check(&before, &[line("read 4 2", &elsewhere.join("file"))], &[(&path, range(4, 6))]);
}

#[test]
fn a_file_below_another_root_is_known_by_its_name_here() {
    let Some(image) = LoopImage::new("ext4", 64) else { return };
    let path = image.file("file", bytes(20));
    // The whole of the tree once more, as a root.
    let root = image.join("root");
    fs::create_dir(&root).unwrap();
    let mount = format!("mount --rbind / {}", root.display());
    let chroot = format!("exec chroot {} sh -ec \"$HEADSTART_TEST_PROGRAM\"", root.display());
    let inside = [line("read 4 2", &path)];
    check(&format!("exec unshare --mount sh -ec '{mount}; {chroot}'"), &inside, &[(&path, range(4, 6))]);
    if run("sh", &["-ec", &mount]) {
        // The mount that it is seen through there is one of ours.
        let seen = root.join(path.strip_prefix("/").unwrap());
        check(&chroot, &inside, &[(&seen, range(4, 6))]);
        run("umount", &["-R", "-l", root.to_str().unwrap()]);
    }
}

#[test]
fn an_overlay_that_only_the_run_sees_is_known_by_its_layers() {
    let Some(image) = LoopImage::new("ext4", 64) else { return };
    for name in ["lower", "upper", "work", "merged"] {
        fs::create_dir(image.join(name)).unwrap();
    }
    let lower = image.file("lower/low", bytes(20));
    let upper = image.file("upper/up", bytes(20));
    let at = |name: &str| image.join(name).display().to_string();
    let mount = format!(
        "mount -t overlay overlay -o lowerdir={},upperdir={},workdir={} {}",
        at("lower"),
        at("upper"),
        at("work"),
        at("merged")
    );
    // A file system that the run mounts itself is heard from a moment later on: the run is held until then.
    let gate = image.join("gate");
    if !run("mkfifo", &[gate.to_str().unwrap()]) {
        return;
    }
    let before = format!("exec unshare --mount sh -ec '{mount}; read _ < {}; {PROGRAM}'", gate.display());
    let script = [line("read 4 2", &image.join("merged/low")), line("read 5 3", &image.join("merged/up"))];
    let expected = [(lower.as_path(), range(4, 6)), (upper.as_path(), range(5, 8))];
    check_held(&before, &script, &expected, |running| {
        let mut device = None;
        until("the overlay", || {
            device = mounted_by_run(running.run.keeper(), &image.join("merged"));
            device.is_some()
        });
        until("the listener", || running.recorder.hears(device.unwrap()));
        fs::write(&gate, "go\n").unwrap();
    });
}

/// What a process of the run has mounted at this place.
fn mounted_by_run(keeper: i32, at: &Path) -> Option<DeviceNumber> {
    let roots = Roots::default();
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let mut pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.find_map(|pid| {
        let of_run = crate::watch::processes::is_descendant(&roots, keeper, pid);
        let mounts = of_run.then(|| Mounts::of(&roots, Some(pid.unsigned_abs())).ok()).flatten()?;
        mounts.iter().find(|mount| mount.mount_point == at).map(|mount| mount.device)
    })
}

#[test]
fn a_mount_that_is_gone_with_its_opener_does_not_take_the_name_along() {
    let Some(image) = LoopImage::new("ext4", 64) else { return };
    fs::create_dir(image.join("folder")).unwrap();
    fs::create_dir(image.join("elsewhere")).unwrap();
    let path = image.file("folder/file", bytes(20));
    let (ours, elsewhere) = (own_mounts(), image.join("elsewhere"));
    // A namespace that nobody has met, whose mounts are taken apart before the open file is looked at.
    let file = std::thread::spawn({
        let folder = image.join("folder");
        move || {
            assert!(private_mounts());
            assert!(run("mount", &["--bind", folder.to_str().unwrap(), elsewhere.to_str().unwrap()]));
            let file = File::open(elsewhere.join("file")).unwrap();
            assert!(run("umount", &["-l", elsewhere.to_str().unwrap()]));
            file
        }
    })
    .join()
    .unwrap();
    let found = opens::find(&file).unwrap();
    assert!(ours.by_id(found.mount).is_none());
    let nobody = i32::MAX;
    let place = Namespaces::new(&ours, &Roots::default(), 0).place(file.as_fd(), found, nobody).unwrap();
    assert_eq!((place.path, place.mount), (path.clone(), ours.at(&path).unwrap().id));
    // Where the name leads to another file there is none.
    fs::rename(&path, image.join("folder/renamed")).unwrap();
    fs::write(&path, "another").unwrap();
    let place = Namespaces::new(&ours, &Roots::default(), 0).place(file.as_fd(), found, nobody).unwrap();
    assert_eq!(place.path, image.join("folder/renamed"));
    fs::remove_file(image.join("folder/renamed")).unwrap();
    assert_eq!(Namespaces::new(&ours, &Roots::default(), 0).place(file.as_fd(), found, nobody), None);
}

#[test]
fn a_file_of_a_btrfs_subvolume_is_found_through_the_mount_that_shows_it() {
    let Some(image) = LoopImage::new("btrfs", 128) else { return };
    let subvolume = |name: &str| {
        run("btrfs", &["-q", "subvolume", "create", image.join(name).to_str().unwrap()])
            .then(|| image.file(format!("{name}/file"), bytes(4)))
    };
    let (Some(one), Some(two)) = (subvolume("one"), subvolume("two")) else { return };
    let inode = |path: &Path| fs::metadata(path).unwrap().ino();
    assert_eq!(inode(&one), inode(&two), "only the subvolume tells them apart");
    let ours = own_mounts();
    for path in [one, two] {
        let file = std::thread::spawn({
            let path = path.clone();
            move || {
                assert!(private_mounts());
                File::open(path).unwrap()
            }
        })
        .join()
        .unwrap();
        let found = opens::find(&file).unwrap();
        let place =
            Namespaces::new(&ours, &Roots::default(), 0).place(file.as_fd(), found, i32::MAX).unwrap();
        assert_eq!(place.path, path);
    }
}
