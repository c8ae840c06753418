//! What is written for other programs.

use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::process::{Command, Stdio};

use headstart_shared::comparison::Comparison;

use crate::support::{Place, is_root, skip, stderr, stdout};

#[test]
fn json_csv_and_svg_are_whole_and_agree() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let [json, csv, svg] = ["r.json", "r.csv", "r.svg"].map(|name| place.path(name));
    let mut command = place.attempt_of(1, 2, &[]);
    command.arg(with("--json=", &json)).arg(with("--csv=", &csv)).arg("--svg").arg(&svg).args(["--", "true"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("Cold, prefetched"), "the table is printed too");
    let comparison = Comparison::from_json(&fs::read(&json).unwrap()).unwrap();
    assert_eq!(comparison.runs.len() + comparison.left_out.len(), 6);
    let csv = fs::read_to_string(csv).unwrap();
    let fields = csv.lines().next().unwrap().split(',').count();
    assert_eq!(csv.lines().count(), 7, "{csv}");
    assert!(csv.lines().all(|line| line.split(',').count() == fields), "{csv}");
    match Command::new("xmllint").arg("--noout").arg(&svg).output() {
        Ok(checked) => assert!(checked.status.success(), "{}", stderr(&checked)),
        Err(_) => skip("xmllint"),
    }
    let handed = place.path("home/.local/state/headstart/last-try.json");
    assert_eq!(fs::read(handed).unwrap(), fs::read(json).unwrap(), "the window is given the same");
}

#[test]
fn json_on_standard_output_is_alone_there() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let output = place.attempt(&["--json", "--", "true"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(Comparison::from_json(&output.stdout).unwrap().name, "true");
}

#[test]
fn a_name_that_is_not_utf8_is_measured_shown_and_found_again() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let name = std::ffi::OsString::from_vec(b"odd-\xff-name".to_vec());
    let app = place.script(&name, "exit 0");
    let output = place.attempt(&["--json", "--"]).arg(&app).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let comparison = Comparison::from_json(&output.stdout).unwrap();
    assert!(comparison.app.0.ends_with("odd-\\xff-name"), "{:?}", comparison.app);
    let mut show = place.headstartctl();
    let shown = show.args(["profile", "show", &comparison.app.0]).output().unwrap();
    assert!(shown.status.success(), "{}", stderr(&shown));
    assert!(stdout(&shown).contains("odd-\\xff-name"), "{}", stdout(&shown));
}

#[test]
fn a_reader_that_has_enough_is_no_failure() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let learned = place.attempt(&["--", "true"]).output().unwrap();
    assert!(learned.status.success(), "{}", stderr(&learned));
    let all: [&[&str]; 6] = [
        &["try", "-n", "1", "--learn", "1", "--", "true"],
        &["profile", "show", "true", "--ranges"],
        &["profile", "list"],
        &["plan", "show", "true", "--json"],
        &["doctor"],
        &["completions", "bash"],
    ];
    for arguments in all {
        let mut command = place.headstartctl();
        let command = command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let said = stderr(&output);
        assert!(
            output.status.success() && !said.contains("panicked"),
            "{arguments:?}: {}\n{said}",
            output.status
        );
    }
}

#[test]
fn wrong_use_is_told_with_exit_status_2() {
    let place = Place::new();
    let all: [&[&str]; 5] = [
        &["try", "-n", "0"],
        &["try", "gimp", "--", "ls"],
        &["try", "--cold", "ice"],
        &["plan", "show", "true", "--drive", "tape"],
        &["profile", "show"],
    ];
    for arguments in all {
        let output = place.headstartctl().args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains("--help"), "{arguments:?}: {}", stderr(&output));
    }
}

fn with(option: &str, path: &std::path::Path) -> std::ffi::OsString {
    let mut word = std::ffi::OsString::from(option);
    word.push(path);
    word
}
