//! Without root.

use crate::support::{NOBODY, Place, assert_fails, is_root, stderr, stdout};

#[test]
fn without_root_it_is_said_what_needs_it_and_what_works_all_the_same() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let output = place.headstartctl_of_nobody().args(["try", "--", "true"]).output().unwrap();
    assert_fails(&output, &["try needs root", "tracefs", "sudo", "doctor", "--file"]);
    assert!(!place.state().exists(), "nothing is made that is of no use");
}

#[test]
fn without_root_the_history_is_not_to_be_read_and_a_folder_of_ones_own_is() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let learned = place.attempt(&["--", "true"]).output().unwrap();
    assert!(learned.status.success(), "{}", stderr(&learned));
    let output = place.headstartctl_of_nobody().args(["profile", "list"]).output().unwrap();
    assert_fails(&output, &["the history belongs to root", "sudo", "--state-dir"]);

    std::fs::create_dir(place.path("own")).unwrap();
    std::os::unix::fs::chown(place.path("own"), Some(NOBODY), Some(NOBODY)).unwrap();
    let mut command = place.headstartctl_of_nobody();
    command.args(["profile", "list", "--json", "--state-dir"]).arg(place.path("own"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stdout(&output).trim(), "[]");
}

#[test]
fn without_root_doctor_names_every_cure() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let output = place.headstartctl_of_nobody().args(["doctor", "--json"]).output().unwrap();
    let findings: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let missing: Vec<_> =
        findings.as_array().unwrap().iter().filter(|finding| finding["state"] == "missing").collect();
    assert_eq!(output.status.success(), missing.is_empty());
    for finding in &missing {
        assert!(finding["cure"].is_string(), "{finding}");
    }
}
