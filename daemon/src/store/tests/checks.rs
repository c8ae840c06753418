//! How damage is found in a database that is too large to be looked at whole at each opening.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;

use super::*;

/// Opens as if every database were large.
fn open_as_large(dir: &Path) -> (Store, Option<PathBuf>) {
    let (db, set_aside) = open::open(dir, Bytes(0)).unwrap();
    (Store { db }, set_aside)
}

/// A closed history of many pages.
fn filled(dir: &Path) {
    let mut store = open_well(dir);
    for n in 1..60 {
        store.save_profile(1, &profile(&format!("app{n}"), 40)).unwrap();
    }
}

fn overwrite(dir: &Path, from: u64, bytes: usize) {
    let file = OpenOptions::new().write(true).open(dir.join(open::FILE)).unwrap();
    assert!(from + bytes as u64 <= file.metadata().unwrap().len());
    file.write_all_at(&vec![0xFF; bytes], from).unwrap();
}

fn marked(dir: &Path) -> bool {
    names(dir).iter().any(|name| name == "history.suspect")
}

#[test]
fn damage_that_is_met_later_is_set_aside_at_the_next_opening() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    overwrite(dir.path(), 4096, 16 * 4096);
    let (store, set_aside) = open_as_large(dir.path());
    assert_eq!((set_aside, marked(dir.path())), (None, false), "it was looked at whole");
    assert!(matches!(store.apps(1), Err(StoreError::Damaged { .. })));
    assert!(marked(dir.path()));
    drop(store);
    let (store, set_aside) = open_as_large(dir.path());
    assert!(set_aside.is_some_and(|path| path.exists()));
    assert!(!marked(dir.path()) && store.apps(1).unwrap().is_empty());
}

#[test]
fn upkeep_looks_at_all_once_a_week_and_finds_what_nobody_reads() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    let (mut store, _) = open_as_large(dir.path());
    let day = |n: i64| DateTime::from_timestamp(n * 86_400, 0).unwrap();
    let looked: Vec<bool> = [10, 11, 16, 17, 18, 5].map(|n| store.check_weekly(day(n)).unwrap()).to_vec();
    assert_eq!(looked, [true, false, false, true, false, true], "the last is a clock that was put back");
    drop(store);
    let length = fs::metadata(dir.path().join(open::FILE)).unwrap().len();
    overwrite(dir.path(), length - 8 * 4096, 8 * 4096);
    let (mut store, set_aside) = open_as_large(dir.path());
    assert_eq!(set_aside, None);
    assert!(!store.check_weekly(day(6)).unwrap());
    assert!(matches!(store.check_weekly(day(12)), Err(StoreError::Damaged { .. })));
    assert!(marked(dir.path()));
    drop(store);
    assert!(open_as_large(dir.path()).1.is_some());
}

#[test]
fn a_large_one_that_was_cut_short_is_looked_at_whole() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    let file = OpenOptions::new().write(true).open(dir.path().join(open::FILE)).unwrap();
    let length = file.metadata().unwrap().len();
    file.set_len(length / 2).unwrap();
    assert!(open_as_large(dir.path()).1.is_some());
}

#[test]
fn a_sound_one_that_is_marked_is_kept_and_the_mark_goes() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    fs::write(dir.path().join("history.suspect"), "").unwrap();
    let (store, set_aside) = open_as_large(dir.path());
    assert_eq!((set_aside, marked(dir.path())), (None, false));
    assert_eq!(store.apps(1).unwrap().len(), 59);
}
