//! State folders that cannot be written to.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::{Place, assert_fails, is_root, stderr, stdout};

/// Runs a command after this script, in a mount namespace that ends with it.
fn in_own_mounts(script: &str, command: &Command) -> Output {
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--propagation", "private", "sh", "-ec"]);
    unshare
        .arg(format!("{script}; exec \"$@\""))
        .arg("sh")
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => unshare.env(name, value),
            None => unshare.env_remove(name),
        };
    }
    unshare.output().unwrap()
}

fn full(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "mkdir -p {folder}; mount -t tmpfs -o size=16k,mode=700 none {folder}; cat /dev/zero >{folder}/full || true"
    )
}

#[test]
fn a_full_disk_is_named_before_anything_is_started() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let output = in_own_mounts(&full(&place.state()), &place.attempt(&["--", "true"]));
    assert_fails(&output, &["the disk is full", "free some space", place.state().to_str().unwrap()]);
    assert_eq!(fs::read_dir(place.state()).unwrap().count(), 0);
}

#[test]
fn figures_are_shown_also_when_there_is_no_room_to_keep_them() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let state = place.state();
    // The program itself fills the disk, as a download might while it is compared.
    let program =
        place.script("fills", &format!("cat /dev/zero >{}/full 2>/dev/null; exit 0", state.display()));
    let small = format!("mkdir -p {0}; mount -t tmpfs -o size=128k,mode=700 none {0}", state.display());
    let output = in_own_mounts(&small, &place.attempt(&["--", program.to_str().unwrap()]));
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("is not kept") && said.contains("the disk is full"), "{said}");
    assert!(stdout(&output).contains("Cold, prefetched"), "{}", stdout(&output));
}

#[test]
fn a_read_only_state_folder_is_named() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let learned = place.attempt(&["--", "true"]).output().unwrap();
    assert!(learned.status.success(), "{}", stderr(&learned));
    let read_only = format!("mount --bind {0} {0}; mount -o remount,bind,ro {0}", place.state().display());
    let output = in_own_mounts(&read_only, &place.attempt(&["--", "true"]));
    assert_fails(&output, &["read-only", "remount", place.state().to_str().unwrap()]);
    let output = place.headstartctl().args(["profile", "list"]).output().unwrap();
    assert!(stdout(&output).contains("true"), "the history is as it was: {}", stderr(&output));
}

#[test]
fn a_state_folder_that_is_a_file_is_named() {
    let place = Place::new();
    fs::write(place.state(), "").unwrap();
    let output = place.headstartctl().args(["profile", "list"]).output().unwrap();
    assert_fails(&output, &[place.state().to_str().unwrap()]);
}

#[test]
fn a_damaged_history_is_set_aside_by_name() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    fs::create_dir(place.state()).unwrap();
    fs::write(place.state().join("history.db"), "no database at all, but long enough to be looked at")
        .unwrap();
    let output = place.attempt(&["--", "true"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stderr(&output);
    let aside = said.split_whitespace().find(|word| word.contains("history.db") && word.contains("damaged"));
    let aside = aside.unwrap_or_else(|| panic!("no name in {said}")).trim_end_matches([',', ';']);
    assert!(Path::new(aside).exists(), "{aside}");
}

#[test]
fn a_result_that_cannot_be_written_fails_and_says_where() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let into = place.path("none/result.json");
    let output = place.attempt(&[&format!("--json={}", into.display()), "--", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("none/result.json"), "{}", stderr(&output));
}
