//! Files that are not simply there: deleted, replaced, made by the run, of odd names or kinds, or opened by others.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process;

use super::program::{command, line};
use super::*;
use crate::sys::loop_images::{LoopImage, run};
use crate::watch::start::Monotonic;
use crate::watch::testing::Helper;

#[test]
fn only_files_that_stay_are_recorded() {
    let Some(image) = LoopImage::new("ext4", 64) else { return };
    let make = |name: &str| {
        let path = image.file(name, bytes(20));
        make_cold(&path);
        path
    };
    let [stays, deleted, replaced, replacement] = ["stays", "deleted", "replaced", "replacement"].map(make);
    let new = image.join("made");
    let (fifo, socket) = (image.join("fifo"), image.join("socket"));
    assert!(run("mkfifo", &[fifo.to_str().unwrap()]));
    let _listener = UnixListener::bind(&socket).unwrap();
    let device = own_device(&image);
    let script = [
        line("read 1 1", &stays),
        line("read 1 1", &deleted),
        line("delete", &deleted),
        line("read 1 1", &replaced),
        format!("replace {} {}", replacement.display(), replaced.display()),
        line("write", &new),
        line("open", &fifo),
        line("open", &socket),
        line("open", PathBuf::from("/dev/null").as_path()),
        line("stream", &device),
        line("stream", PathBuf::from("/proc/self/maps").as_path()),
    ];
    for backend in [Backend::Touched, Backend::Added, Backend::Resident] {
        let _ = [&stays].map(|path| make_cold(path));
        let Some(recording) = record(backend, &script) else { return };
        assert_eq!(pages_of(&recording, &stays), [range(1, 2)], "{backend:?}");
        for path in [&deleted, &replaced, &replacement, &new, &fifo, &socket, &device] {
            assert!(file_of(&recording, path).is_none(), "{backend:?} {}", path.display());
        }
        for file in &recording.files {
            assert!(fs::symlink_metadata(&file.path).unwrap().is_file(), "{}", file.path.display());
            assert!(!file.path.starts_with("/proc") && !file.path.starts_with("/dev"));
        }
        image.file("deleted", bytes(20));
        image.file("replaced", bytes(20));
        image.file("replacement", bytes(20));
        fs::remove_file(&new).unwrap();
    }
}

/// A block device node in the image that leads to nothing: the number of the image's own device stays untouched.
fn own_device(image: &LoopImage) -> PathBuf {
    let node = image.join("node");
    assert!(run("mknod", &[node.to_str().unwrap(), "c", "1", "3"]));
    node
}

#[test]
fn a_name_that_is_not_utf8_is_kept_as_it_is() {
    let Some(image) = LoopImage::new("ext4", 64) else { return };
    let path = image.file(PathBuf::from(OsString::from_vec(b"caf\xe9 \\ \n (deleted)".to_vec())), bytes(20));
    make_cold(&path);
    for backend in [Backend::Touched, Backend::Resident] {
        let Some(recording) = record(backend, &[line("read 1 3", &path)]) else { return };
        assert_eq!(pages_of(&recording, &path), [range(1, 4)], "{backend:?}");
        let json = serde_json::to_string(&recording).unwrap();
        assert_eq!(serde_json::from_str::<Recording>(&json).unwrap(), recording);
        let compact = postcard::to_stdvec(&recording).unwrap();
        assert_eq!(postcard::from_bytes::<Recording>(&compact).unwrap(), recording);
    }
}

/// A program that has opened a file before it is running: what it touches has to be asked for by other means.
#[test]
fn what_was_opened_before_the_recording_is_found_while_the_program_lives() {
    let Some(image) = LoopImage::new("ext4", 64) else { return };
    let (path, ready, go, done) =
        (image.file("file", bytes(20)), image.join("ready"), image.join("go"), image.join("done"));
    make_cold(&path);
    let mut program = process::Command::new("/bin/sh");
    program.args(["-c", "exec 3<\"$0\"; : >\"$1\"; while ! [ -e \"$2\" ]; do sleep 0.01; done; read -r line <&3; : >\"$3\"; exec sleep 60"]);
    program.args([&path, &ready, &go, &done]);
    let mut helper = Helper::spawn(&mut program);
    until("the program", || ready.exists());
    let Some(recorder) = recorder(Backend::Touched) else { return };
    let started = Monotonic::now();
    let pid = helper.0.id();
    for filter in recorder.announce_to() {
        rustix::io::write(filter, pid.to_string().as_bytes()).unwrap();
    }
    fs::write(&go, "").unwrap();
    until("the read", || done.exists());
    let keeper = i32::try_from(process::id()).unwrap();
    let recording = recorder.finish(Recorded { started, keeper, prefetched: false }).unwrap();
    let pages = pages_of(&recording, &path);
    assert_eq!(pages.first().map(|pages| pages.start), Some(0), "{pages:?}");
    assert_eq!(common(&pages, &resident(&path)), pages);
    helper.0.kill().unwrap();
}

/// What no living process can tell the name of is counted.
#[test]
fn pages_of_a_file_without_a_name_are_counted() {
    let Some(image) = LoopImage::new("ext4", 64) else { return };
    let path = image.file("file", bytes(20));
    let before = File::open(&path).unwrap();
    make_cold(&path);
    let Some(recorder) = recorder(Backend::Touched) else { return };
    // Standard input is opened by us, before the run.
    let mut program = process::Command::new("/bin/sh");
    let gate = image.join("go");
    program.args(["-c", "while ! [ -e \"$0\" ]; do sleep 0.01; done; read -r line"]).arg(&gate);
    let mut child = program.stdin(before).spawn().unwrap();
    let started = Monotonic::now();
    for filter in recorder.announce_to() {
        rustix::io::write(filter, child.id().to_string().as_bytes()).unwrap();
    }
    fs::write(&gate, "").unwrap();
    child.wait().unwrap();
    let keeper = i32::try_from(process::id()).unwrap();
    let recording = recorder.finish(Recorded { started, keeper, prefetched: false }).unwrap();
    assert!(file_of(&recording, &path).is_none());
    assert!(recording.unnamed_pages > 0);
}

#[test]
fn a_file_that_grows_or_shrinks_is_recorded_as_far_as_it_reaches() {
    let Some(image) = LoopImage::new("ext4", 64) else { return };
    let (path, ready) = (image.file("file", bytes(40)), image.join("ready"));
    make_cold(&path);
    let Some(recorder) = recorder(Backend::Touched) else { return };
    let script = [line("read 1 30", &path), line("tell", &ready), "hold".to_owned()];
    let running = Running::start(recorder, &command(&script));
    until("the program", || ready.exists());
    File::options().write(true).open(&path).unwrap().set_len(bytes(8) as u64 + 1).unwrap();
    assert_eq!(pages_of(&running.finish(), &path), [range(1, 9)]);
}
