//! Programs that see other mounts, or another root, than the recorder.

use std::fs;

use super::program::{command, in_shell, line};
use super::*;
use crate::sys::loop_images::LoopImage;

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
    for (path, _) in expected {
        make_cold(path);
    }
    for backend in [Backend::Touched, Backend::Resident] {
        let Some(recorder) = recorder(backend) else { return };
        let running = Running::start(recorder, &prepared(before, script));
        running.until_over();
        let recording = running.finish();
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
    if crate::sys::loop_images::run("sh", &["-ec", &mount]) {
        // The mount that it is seen through there is one of ours.
        let seen = root.join(path.strip_prefix("/").unwrap());
        check(&chroot, &inside, &[(&seen, range(4, 6))]);
        crate::sys::loop_images::run("umount", &["-R", "-l", root.to_str().unwrap()]);
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
    // A file system that the run mounts itself is listened to a moment later.
    let before = format!("exec unshare --mount sh -ec '{mount}; sleep 0.3; {PROGRAM}'");
    let script = [line("read 4 2", &image.join("merged/low")), line("read 5 3", &image.join("merged/up"))];
    check(&before, &script, &[(&lower, range(4, 6)), (&upper, range(5, 8))]);
}
