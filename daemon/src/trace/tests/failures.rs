//! When something does not go well: events lost, a recorder dropped or killed, tracefs not mounted, no permission.

use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::program::{command, line};
use super::*;
use crate::mounts::Mounts;
use crate::sys::loop_images::{LoopImage, own_mounts, private_mounts, run};
use crate::sys::spawn::Credentials;
use crate::trace::pipes::LIMIT;
use crate::trace::tracefs::Tracefs;

fn dd(path: &Path, reads: u64) -> Command {
    shell(&format!("dd if={} of=/dev/null bs=64 count={reads} status=none", path.display()))
}

fn has_task(id: i32) -> bool {
    Path::new(&format!("/proc/self/task/{id}")).exists()
}

#[test]
fn events_lost_for_want_of_room_are_counted() {
    let Some(image) = LoopImage::new("ext4", 64) else { return };
    let path = image.file("file", bytes(2000));
    drop(recorder(Backend::Touched));
    let once = || {
        let small = Recorder::with_buffer(Backend::Touched, &Roots::default(), Some(4)).unwrap();
        let running = Running::start(small, &dd(&path, 120_000));
        running.until_over();
        running.finish()
    };
    // On an idle machine the collector may keep up even so.
    let recording =
        std::iter::repeat_with(once).take(20).find(|recording| recording.lost_events > 0).unwrap();
    assert!(recording.lost_events < 121_000, "{}", recording.lost_events);
    // The beginning is what is kept.
    assert!(!recording.files.is_empty());
}

#[test]
fn a_flood_of_events_takes_no_more_than_its_share_of_memory() {
    let Some(image) = LoopImage::new("ext4", 64) else { return };
    let path = image.file("file", bytes(2000));
    let Some(recorder) = recorder(Backend::Touched) else { return };
    // An event has some 40 bytes: twice as many as are kept.
    let events = (LIMIT * 2 / 40) as u64;
    let loops = events / 120_000;
    let one = format!("dd if={} of=/dev/null bs=64 count=120000 status=none", path.display());
    let running = Running::start(recorder, &shell(&format!("for i in $(seq {loops}); do {one}; done")));
    running.until_over();
    let recording = running.finish();
    assert!(recording.lost_events > events / 4, "{} of {events}", recording.lost_events);
    assert_eq!(pages_of(&recording, &path), [range(0, (120_000_u64 * 64).div_ceil(page_size()))]);
}

#[test]
fn a_dropped_recorder_leaves_neither_instance_nor_thread() {
    for with_run in [false, true] {
        let Some(recorder) = recorder(Backend::Touched) else { return };
        let (path, thread) = recorder.instance().map(|(path, id)| (path.to_owned(), id)).unwrap();
        assert!(path.exists() && has_task(thread));
        if with_run {
            let running = Running::start(recorder, &shell("sleep 60"));
            drop(running);
        } else {
            drop(recorder);
        }
        assert!(!path.exists() && !has_task(thread));
    }
}

#[test]
fn a_finished_recorder_leaves_neither_instance_nor_thread() {
    let Some(recorder) = recorder(Backend::Touched) else { return };
    let (path, thread) = recorder.instance().map(|(path, id)| (path.to_owned(), id)).unwrap();
    let running = Running::start(recorder, &shell("true"));
    running.until_over();
    running.finish();
    assert!(!has_task(thread));
    until("the end of the instance", || !path.exists());
}

#[test]
fn what_a_killed_recorder_leaves_is_removed_by_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let told = dir.path().join("told");
    if recorder(Backend::Touched).is_none() {
        return;
    }
    let mut owner = crate::watch::testing::start(&command(&[line("record", &told)]));
    let named = || fs::read(&told).ok().filter(|name| !name.is_empty());
    until("the other recorder", || named().is_some());
    let instance = PathBuf::from(std::ffi::OsString::from_vec(named().unwrap()));
    Tracefs::find(&Roots::default()).unwrap();
    assert!(instance.exists(), "of a process that lives");
    owner.end(Duration::ZERO);
    assert!(instance.exists(), "it was killed");
    Tracefs::find(&Roots::default()).unwrap();
    assert!(!instance.exists());
}

#[test]
fn without_a_mounted_tracefs_a_mount_of_its_own_is_used_and_nothing_stays_mounted() {
    if recorder(Backend::Touched).is_none() || !private_mounts() {
        return;
    }
    let tracefs = Roots::default().tracefs;
    if !run("umount", &["-l", tracefs.to_str().unwrap()]) {
        return;
    }
    assert!(!tracefs.join("events").exists(), "the case to be tested");
    let before = own_mounts();
    let Some(image) = LoopImage::in_this_namespace("ext4", 64) else { return };
    let path = image.file("file", bytes(20));
    make_cold(&path);
    let recorder = recorder(Backend::Touched).unwrap();
    let name = recorder.instance().unwrap().0.file_name().unwrap().to_owned();
    let running = Running::start(recorder, &command(&[line("read 4 2", &path)]));
    running.until_over();
    assert_eq!(pages_of(&running.finish(), &path), [range(4, 6)]);
    drop(image);
    let ids = |mounts: &Mounts| mounts.iter().map(|mount| mount.id).collect::<Vec<_>>();
    assert_eq!(ids(&own_mounts()), ids(&before));
    let again = Tracefs::find(&Roots::default()).unwrap();
    until("the end of the instance", || !again.root().join("instances").join(&name).exists());
}

#[test]
fn without_permission_the_error_says_so() {
    if recorder(Backend::Touched).is_none() {
        return;
    }
    let mut refused = command(&["refused".to_owned()]);
    refused.credentials = Some(Credentials { uid: 65_534, gid: 65_534, groups: Vec::new() });
    let Ok(run) = launch(&refused, &crate::watch::testing::gate(), &Roots::default()) else {
        return skip("a build folder that nobody may read");
    };
    until("the end of the program", || run.is_empty());
    let words = run.last_words();
    for backend in ["Touched", "Added", "Resident"] {
        let line = words.lines().find(|line| line.starts_with(backend)).unwrap_or_else(|| panic!("{words}"));
        assert!(line.contains("CAP_SYS_ADMIN") && !line.contains("CONFIG_FTRACE"), "{line}");
    }
}
