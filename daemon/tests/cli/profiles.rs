//! Profiles as files: what was cut short, altered or never one is refused.

use std::fs;
use std::path::PathBuf;

use crate::support::{Place, assert_fails, is_root, stderr, stdout};

/// A profile of `true`, learned and exported.
fn exported(place: &Place) -> Option<PathBuf> {
    if !is_root() {
        return None;
    }
    let file = place.path("true.profile");
    let learned = place.attempt(&["--", "true"]).output().unwrap();
    assert!(learned.status.success(), "{}", stderr(&learned));
    let output = place.headstartctl().args(["export", "true"]).arg(&file).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    Some(file)
}

#[test]
fn a_profile_travels_to_another_history() {
    let place = Place::new();
    let Some(file) = exported(&place) else { return };
    let other = Place::new();
    let output = other.headstartctl().arg("import").arg(&file).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let show = |place: &Place| {
        stdout(&place.headstartctl().args(["profile", "show", "true", "--json"]).output().unwrap())
    };
    assert_eq!(show(&place), show(&other));
    let output =
        other.headstartctl().args(["plan", "show", "--drive", "hdd", "--file"]).arg(&file).output().unwrap();
    assert!(output.status.success() && !stdout(&output).is_empty(), "{}", stderr(&output));
}

#[test]
fn a_profile_that_is_damaged_is_refused_wherever_it_is_damaged() {
    let place = Place::new();
    let Some(file) = exported(&place) else { return };
    let whole = fs::read(&file).unwrap();
    for length in [0, 1, 17, 60, whole.len() / 2, whole.len() - 1] {
        fs::write(&file, &whole[..length]).unwrap();
        let output = place.headstartctl().arg("import").arg(&file).output().unwrap();
        let words: &[&str] = if length > 100 { &["cut short", "copy it again"] } else { &["true.profile"] };
        assert_fails(&output, words);
    }
    for at in (0..whole.len()).step_by(whole.len() / 40 + 1) {
        let mut altered = whole.clone();
        altered[at] ^= 1;
        fs::write(&file, altered).unwrap();
        let output = place.headstartctl().args(["import", "--check"]).arg(&file).output().unwrap();
        assert_fails(&output, &["true.profile"]);
    }
}

#[test]
fn what_was_never_a_profile_is_refused_and_not_waited_for() {
    let place = Place::new();
    let fifo = place.path("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o644.into()).unwrap();
    let others = [fifo, PathBuf::from("/dev/zero"), place.path("home"), PathBuf::from("/bin/sh")];
    for other in others {
        let output = place.headstartctl().args(["import", "--check"]).arg(&other).output().unwrap();
        assert_fails(&output, &[other.to_str().unwrap(), "export"]);
    }
    let output = place.headstartctl().args(["import", "--check", "/nowhere/at-all"]).output().unwrap();
    assert_fails(&output, &["/nowhere/at-all", "No such file"]);
}

#[test]
fn an_app_that_was_never_tried_has_no_profile_and_that_is_said() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    for arguments in [&["profile", "show", "true"][..], &["plan", "show", "true"], &["export", "true", "x"]] {
        let output = place.headstartctl().args(arguments).current_dir(place.path("")).output().unwrap();
        assert_fails(&output, &["nothing was learned of true yet", "headstartctl try"]);
    }
    assert!(!place.path("x").exists());
}

#[test]
fn an_export_that_cannot_be_written_leaves_nothing() {
    let place = Place::new();
    if exported(&place).is_none() {
        return;
    }
    let folder = place.path("home");
    let output = place.headstartctl().args(["export", "true"]).arg(&folder).output().unwrap();
    assert_fails(&output, &[folder.to_str().unwrap()]);
    assert_eq!(
        fs::read_dir(&folder).unwrap().filter(|e| e.as_ref().unwrap().file_name() != ".local").count(),
        0
    );
}
