//! What is of the run, and what is not.

use std::thread;

use super::program::{command, line};
use super::*;
use crate::sys::loop_images::LoopImage;

#[test]
fn children_grandchildren_and_threads_are_followed() {
    let Some(image) = LoopImage::new("ext4", 64) else { return };
    let names = ["own", "child", "grandchild", "thread", "thread of child"];
    let files = names.map(|name| image.file(name, bytes(20)));
    let _ = files.each_ref().map(|path| make_cold(path));
    let [own, child, grandchild, a_thread, childs] = files.each_ref();
    // A separator of its own for each level.
    let script = [
        line("read 1 1", own),
        format!("fork {};{}", line("read 2 1", child), line("thread read 5 1", childs)),
        line("fork fork read 3 1", grandchild),
        line("thread read 4 1", a_thread),
    ];
    let Some(recording) = record(Backend::Touched, &script) else { return };
    for (path, page) in [(own, 1), (child, 2), (grandchild, 3), (a_thread, 4), (childs, 5)] {
        assert_eq!(pages_of(&recording, path), [range(page, page + 1)], "{}", path.display());
    }
    assert!(first_need(&recording, own) < first_need(&recording, child));
    assert!(first_need(&recording, childs) < first_need(&recording, grandchild));
}

#[test]
fn another_process_is_not_recorded() {
    let Some(image) = LoopImage::new("ext4", 64) else { return };
    let (ours, theirs, both) =
        (image.file("ours", bytes(20)), image.file("theirs", bytes(20)), image.file("both", bytes(20)));
    let _ = [&ours, &theirs, &both].map(|path| make_cold(path));
    let (ready, done) = (image.join("ready"), image.join("done"));
    let script = [
        line("read 1 1", &ours),
        line("read 1 1", &both),
        line("tell", &ready),
        line("wait", &done),
        line("read 3 1", &ours),
    ];
    for backend in [Backend::Touched, Backend::Added] {
        let _ = [&ours, &theirs, &both].map(|path| make_cold(path));
        let _ = (std::fs::remove_file(&ready), std::fs::remove_file(&done));
        let Some(recorder) = recorder(backend) else { return };
        let running = Running::start(recorder, &command(&script));
        until("the program", || ready.exists());
        // Another program, and a thread of ours, which is where the recorder lives.
        let other =
            crate::watch::testing::start(&command(&[line("read 7 1", &theirs), line("read 7 1", &both)]));
        until("the other program", || other.is_empty());
        thread::scope(|scope| {
            scope.spawn(|| std::fs::read(&theirs).unwrap());
        });
        std::fs::write(&done, "").unwrap();
        running.until_over();
        let recording = running.finish();
        assert_eq!(pages_of(&recording, &ours), [range(1, 2), range(3, 4)]);
        assert_eq!(pages_of(&recording, &both), [range(1, 2)]);
        assert!(file_of(&recording, &theirs).is_none());
    }
}

#[test]
fn two_recorders_each_have_their_own_run() {
    let Some(image) = LoopImage::new("ext4", 64) else { return };
    let paths = ["one", "two"].map(|name| image.file(name, bytes(20)));
    let _ = paths.each_ref().map(|path| make_cold(path));
    let (Some(one), Some(two)) = (recorder(Backend::Touched), recorder(Backend::Touched)) else { return };
    let one = Running::start(one, &command(&[line("read 1 2", &paths[0])]));
    let two = Running::start(two, &command(&[line("read 5 2", &paths[1])]));
    two.until_over();
    let two = two.finish();
    one.until_over();
    let one = one.finish();
    assert_eq!(pages_of(&one, &paths[0]), [range(1, 3)]);
    assert_eq!(pages_of(&two, &paths[1]), [range(5, 7)]);
    assert!(file_of(&one, &paths[1]).is_none() && file_of(&two, &paths[0]).is_none());
}

#[test]
fn a_program_that_goes_on_is_recorded_until_now() {
    let Some(image) = LoopImage::new("ext4", 64) else { return };
    let (path, ready) = (image.file("file", bytes(20)), image.join("ready"));
    make_cold(&path);
    let Some(recorder) = recorder(Backend::Touched) else { return };
    let mut counter = recorder.counter().unwrap();
    let script = [line("read 1 2", &path), line("tell", &ready), "hold".to_owned()];
    let running = Running::start(recorder, &command(&script));
    until("the program", || ready.exists());
    assert!(counter().unwrap() > 0);
    let recording = running.finish();
    assert_eq!(pages_of(&recording, &path), [range(1, 3)]);
    assert_eq!(counter(), None, "there is nothing to count any more");
}
