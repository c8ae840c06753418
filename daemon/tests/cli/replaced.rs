//! A file that was something else when the start was learned.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::support::{Place, is_root, stderr, stdout};

/// A program that reads a file of its own if that is one, learned.
fn learned(place: &Place) -> (PathBuf, PathBuf) {
    let data = place.path("data");
    fs::write(&data, vec![7; 1 << 20]).unwrap();
    let app = place.script("app", &format!("test ! -f {0} || cat {0} >/dev/null", data.display()));
    let output = place.attempt_of(2, 1, &["--"]).arg(&app).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let shown = place.headstartctl().args(["profile", "show"]).arg(&app).output().unwrap();
    assert!(stdout(&shown).contains("/data"), "it was not learned: {}", stdout(&shown));
    (app, data)
}

/// Whether the comparison is made, in time, and says why the file that is there now was not read ahead.
fn is_compared(place: &Place, app: &Path, why: &str) {
    let output = place.attempt(&["--timeout", "10", "--"]).arg(app).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("Not everything could be read ahead"), "{said}");
    assert!(said.contains(&format!("{} {why}", app.with_file_name("data").display())), "{said}");
}

#[test]
fn a_pipe_in_the_place_of_a_learned_file_is_never_opened() {
    if !is_root() {
        return;
    }
    let place = Place::of_lasting_files();
    let (app, data) = learned(&place);
    fs::remove_file(&data).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &data, 0o666.into()).unwrap();
    // A writer can only open it without waiting while a reader has it open.
    let watched = data.clone();
    let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stop = std::sync::Arc::clone(&done);
    let spy = thread::spawn(move || {
        let mut read = false;
        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
            let writer = fs::File::options().write(true).custom_flags(0o4000).open(&watched);
            read |= writer.is_ok();
            thread::sleep(Duration::from_micros(200));
        }
        read
    });
    is_compared(&place, &app, "is not a regular file any more");
    done.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(!spy.join().unwrap(), "the pipe was opened for reading");
}

#[test]
fn a_device_in_the_place_of_a_learned_file_is_not_read() {
    if !is_root() {
        return;
    }
    let place = Place::of_lasting_files();
    let (app, data) = learned(&place);
    fs::remove_file(&data).unwrap();
    let made = std::process::Command::new("mknod").arg(&data).args(["c", "1", "5"]).status().unwrap();
    assert!(made.success());
    is_compared(&place, &app, "is not a regular file any more");
    // The device gives zeros without end, so that whoever read it in full would not be here.
    let mut some = [1; 4];
    fs::File::open(&data).unwrap().read_exact(&mut some).unwrap();
    assert_eq!(some, [0; 4]);
}

#[test]
fn a_link_or_nothing_in_its_place_is_no_failure_either() {
    if !is_root() {
        return;
    }
    let place = Place::of_lasting_files();
    let (app, data) = learned(&place);
    fs::remove_file(&data).unwrap();
    std::os::unix::fs::symlink("/etc/shadow", &data).unwrap();
    is_compared(&place, &app, "leads over a symbolic link now");
    let output = place.headstartctl().args(["plan", "show"]).arg(&app).output().unwrap();
    assert!(!stdout(&output).contains("shadow"), "{}", stdout(&output));
    fs::remove_file(&data).unwrap();
    is_compared(&place, &app, "is not there any more");
}
