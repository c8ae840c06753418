//! Damage, kills, full and read-only disks, and many processes at once.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::time::Duration;

use super::*;
use crate::profile::testing::{in_own_mounts, mount_read_only, mount_small};

#[test]
fn what_is_no_database_is_set_aside_with_its_companions() {
    let dir = tempfile::tempdir().unwrap();
    for (round, bytes) in
        [&b"not a database, but long enough to be looked at as one; ".repeat(40)[..], b"short", &[0; 5000]]
            .iter()
            .enumerate()
    {
        fs::write(dir.path().join(open::FILE), bytes).unwrap();
        fs::write(dir.path().join("history.db-wal"), b"stale").unwrap();
        let opened = Store::open(dir.path()).unwrap();
        let aside = opened.set_aside.unwrap();
        assert_eq!(fs::read(&aside).unwrap(), *bytes);
        let mut companion = aside.into_os_string();
        companion.push("-wal");
        // SQLite itself removes the log of a database that has not a single page.
        if bytes.len() >= 512 {
            assert_eq!(fs::read(companion).unwrap(), b"stale");
        }
        let mut store = opened.store;
        store.save_profile(1, &profile("a", 1)).unwrap();
        drop(store);
        assert_eq!(open_well(dir.path()).apps(1).unwrap().len(), 1);
        let kept = names(dir.path())
            .iter()
            .filter(|n| n.contains(".damaged-") && n.ends_with(|c: char| c.is_ascii_digit() || c == 'Z'))
            .count();
        assert_eq!(kept, round + 1, "{:?}", names(dir.path()));
    }
}

#[test]
fn a_database_of_something_else_is_set_aside() {
    let dir = tempfile::tempdir().unwrap();
    raw(dir.path()).execute_batch("CREATE TABLE apps (x); PRAGMA user_version = 1").unwrap();
    assert!(Store::open(dir.path()).unwrap().set_aside.is_some());
    let dir = tempfile::tempdir().unwrap();
    raw(dir.path()).execute_batch("CREATE TABLE apps (x)").unwrap();
    assert!(Store::open(dir.path()).unwrap().set_aside.is_some());
}

#[test]
fn a_damaged_database_in_use_is_not_pulled_away() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open_well(dir.path());
    store.save_profile(1, &profile("a", 1)).unwrap();
    store.forget(1, None).unwrap();
    OpenOptions::new()
        .write(true)
        .open(dir.path().join(open::FILE))
        .unwrap()
        .write_all_at(&[7; 64], 0)
        .unwrap();
    assert!(matches!(Store::open(dir.path()), Err(StoreError::InUse { .. })));
    drop(store);
    assert!(Store::open(dir.path()).unwrap().set_aside.is_some());
}

/// A history with something in each table, closed, and what is in it.
fn filled(dir: &Path) -> Vec<Profile> {
    let mut store = open_well(dir);
    let profiles: Vec<Profile> = (1..20).map(|n| profile(&format!("app{n}"), n * 5)).collect();
    for p in &profiles {
        store.save_profile(1, p).unwrap();
        store.save_comparison(1, &comparison(&p.app.0, 1)).unwrap();
    }
    profiles
}

/// Opens and reads all; whatever is given out must be what was stored.
fn read_all(dir: &Path, profiles: &[Profile], what: &str) {
    let opened = match Store::open(dir) {
        Ok(opened) => opened,
        Err(StoreError::Newer { .. }) => return,
        Err(e) => panic!("{what}: {e}"),
    };
    for p in profiles {
        match opened.store.profile(1, &p.app) {
            Ok(Loaded { value: Some(found), .. }) => assert_eq!(found, *p, "{what}"),
            Ok(_) | Err(StoreError::Damaged { .. }) => {}
            Err(e) => panic!("{what}: {e}"),
        }
        match opened.store.comparisons(1, &p.app, 9) {
            Ok(_) | Err(StoreError::Damaged { .. }) => {}
            Err(e) => panic!("{what}: {e}"),
        }
    }
    assert!(matches!(opened.store.apps(1), Ok(_) | Err(StoreError::Damaged { .. })), "{what}");
}

#[test]
fn damage_anywhere_is_survived() {
    let template = tempfile::tempdir().unwrap();
    let profiles = filled(template.path());
    let sound = fs::read(template.path().join(open::FILE)).unwrap();
    let mut state = 1_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    let mut set_aside = 0;
    for round in 0..250 {
        let dir = tempfile::tempdir().unwrap();
        let mut bytes = sound.clone();
        // The first page holds the header and the schema: it deserves its share.
        let at = if round % 3 == 0 { random(4096) } else { random(bytes.len()) };
        match round % 5 {
            0 => bytes.truncate(at),
            1 => bytes[at..].iter_mut().take(512).for_each(|b| *b = 0),
            2 => bytes[at..].iter_mut().take(64).for_each(|b| *b ^= 0xA5),
            _ => bytes[at] ^= 1 << random(8),
        }
        fs::write(dir.path().join(open::FILE), &bytes).unwrap();
        read_all(dir.path(), &profiles, &format!("round {round} at {at}"));
        set_aside += usize::from(names(dir.path()).iter().any(|n| n.contains(".damaged-")));
    }
    assert!(set_aside > 50, "{set_aside}");
}

#[test]
fn a_damaged_log_is_survived() {
    let template = tempfile::tempdir().unwrap();
    let mut store = open_well(template.path());
    let profiles: Vec<Profile> = (1..6).map(|n| profile(&format!("app{n}"), n * 5)).collect();
    for p in &profiles {
        store.save_profile(1, p).unwrap();
    }
    for at in (0..2000).chain((2000..40_000).step_by(997)).step_by(13) {
        let dir = tempfile::tempdir().unwrap();
        for name in names(template.path()) {
            fs::copy(template.path().join(&name), dir.path().join(&name)).unwrap();
        }
        for companion in ["history.db-wal", "history.db-shm"] {
            let file = OpenOptions::new().write(true).open(dir.path().join(companion)).unwrap();
            if at < file.metadata().unwrap().len() {
                file.write_all_at(&[0x5A; 8], at).unwrap();
            }
        }
        read_all(dir.path(), &profiles, &format!("at {at}"));
    }
}

const CHILD: &str = "HEADSTART_TEST_STORE_CHILD";

#[test]
fn a_kill_in_the_middle_of_writes_leaves_a_sound_history() {
    if let Some(dir) = std::env::var_os(CHILD) {
        let mut store = open_well(Path::new(&dir));
        for n in 1.. {
            store.save_profile(1, &profile("a", n % 300 + 1)).unwrap();
            store.save_comparison(1, &comparison("a", i64::try_from(n).unwrap())).unwrap();
            if n % 50 == 0 {
                store.forget(1, Some(&id("a"))).unwrap();
            }
        }
    }
    let dir = tempfile::tempdir().unwrap();
    for round in 0..15 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store::tests::damage::a_kill_in_the_middle_of_writes_leaves_a_sound_history"])
            .env(CHILD, dir.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while !dir.path().join("history.db-wal").exists() {
            assert!(child.try_wait().unwrap().is_none(), "the child ended by itself");
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(5 + 17 * round % 90));
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        let store = open_well(dir.path());
        let loaded = store.profile(1, &id("a")).unwrap();
        assert!(loaded.damaged.is_empty());
        if let Some(p) = loaded.value {
            assert_eq!(p, profile("a", p.files.len() as u64));
        }
        assert!(store.comparisons(1, &id("a"), 99).unwrap().damaged.is_empty());
    }
}

#[test]
fn many_open_and_write_at_once() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(open::FILE), b"damaged, so that one of them sets it aside".repeat(99)).unwrap();
    let barrier = Barrier::new(8);
    let aside: usize = std::thread::scope(|scope| {
        let each = |n: u32| {
            let (dir, barrier) = (dir.path(), &barrier);
            move || {
                barrier.wait();
                let opened = Store::open(dir).unwrap();
                let mut store = opened.store;
                for round in 1..10 {
                    store.save_profile(n, &profile("a", round)).unwrap();
                }
                usize::from(opened.set_aside.is_some())
            }
        };
        let threads: Vec<_> = (0..8).map(|n| scope.spawn(each(n))).collect();
        threads.into_iter().map(|t| t.join().unwrap()).sum()
    });
    assert_eq!(aside, 1);
    let store = open_well(dir.path());
    for n in 0..8 {
        assert_eq!(store.profile(n, &id("a")).unwrap().value, Some(profile("a", 9)));
    }
}

#[test]
fn a_full_disk_is_said_and_survived() {
    if !in_own_mounts("store::tests::damage::a_full_disk_is_said_and_survived") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    mount_small(dir.path(), 512 << 10);
    let mut store = open_well(dir.path());
    store.save_profile(1, &profile("a", 10)).unwrap();
    let error = (0..100).find_map(|n| store.save_profile(1, &profile(&format!("b{n}"), 500)).err()).unwrap();
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    assert!(error.to_string().contains("disk is full"));
    assert_eq!(store.profile(1, &id("a")).unwrap().value, Some(profile("a", 10)));
    drop(store);
    fs::write(dir.path().join("ballast"), vec![0; 1 << 20]).unwrap_err();
    match Store::open(dir.path()) {
        Ok(Opened { store, set_aside: None }) => {
            assert_eq!(store.profile(1, &id("a")).unwrap().value, Some(profile("a", 10)));
        }
        other => assert!(matches!(other, Err(StoreError::Full { .. })), "{other:?}"),
    }
    let empty = dir.path().join("other");
    let error = Store::open(&empty).unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
}

#[test]
fn a_read_only_folder_is_named_as_such() {
    if !in_own_mounts("store::tests::damage::a_read_only_folder_is_named_as_such") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (filled_dir, empty) = (dir.path().join("filled"), dir.path().join("empty"));
    filled(&filled_dir);
    fs::create_dir(&empty).unwrap();
    let before = names(&filled_dir);
    mount_read_only(dir.path());
    for folder in [&filled_dir, &empty, &dir.path().join("missing")] {
        let error = Store::open(folder).unwrap_err();
        assert!(matches!(error, StoreError::ReadOnly { .. }), "{folder:?}: {error}");
        assert!(error.to_string().contains("read-only"));
    }
    assert_eq!(names(&filled_dir), before);
    assert!(names(&empty).is_empty());
}

#[test]
fn what_is_in_the_way_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    File::create(&file).unwrap();
    assert!(matches!(Store::open(&file), Err(StoreError::Io { .. })));
    fs::create_dir(dir.path().join(open::FILE)).unwrap();
    assert!(matches!(Store::open(dir.path()), Err(StoreError::Io { .. })));
    assert!(dir.path().join(open::FILE).is_dir());
}
