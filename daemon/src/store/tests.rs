mod checks;
mod damage;
mod kills;
mod launches;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use headstart_shared::comparison::{Host, PrefetchAccount};
use headstart_shared::run::{ColdMethod, Milestone};
use headstart_shared::units::Bytes;
use proptest::prelude::*;
use rusqlite::Connection;

use super::*;
use crate::profile::testing::{any_profile, names, profile};

fn id(app: &str) -> AppId {
    AppId(app.into())
}

fn comparison(app: &str, second: i64) -> Comparison {
    Comparison {
        format: comparison::FORMAT,
        version: "0.1.0".into(),
        began: DateTime::from_timestamp(second, 0).unwrap(),
        app: id(app),
        name: app.into(),
        command: vec![app.into()],
        milestone: Milestone::Exit,
        cold: ColdMethod::Evict,
        rounds: 5,
        runs: Vec::new(),
        recorded: Vec::new(),
        found_cold: None,
        left_out: Vec::new(),
        prefetch: PrefetchAccount::default(),
        drives: Vec::new(),
        host: Host { kernel: "6.18".into(), cpus: 2, memory: Bytes(1 << 30) },
        remarks: Vec::new(),
    }
}

fn open_well(dir: &Path) -> Store {
    let opened = Store::open(dir).unwrap();
    assert_eq!(opened.set_aside, None);
    opened.store
}

fn raw(dir: &Path) -> Connection {
    Connection::open(dir.join(open::FILE)).unwrap()
}

#[test]
fn what_was_saved_is_there_after_opening_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open_well(dir.path());
    store.save_profile(1000, &profile("a", 3)).unwrap();
    store.save_profile(1000, &profile("a", 5)).unwrap();
    for second in [3, 1, 2] {
        store.save_comparison(1000, &comparison("a", second)).unwrap();
    }
    drop(store);
    let store = open_well(dir.path());
    let loaded = store.profile(1000, &id("a")).unwrap();
    assert_eq!(loaded, Loaded { value: Some(profile("a", 5)), damaged: vec![] });
    let began = |limit| {
        let list = store.comparisons(1000, &id("a"), limit).unwrap();
        assert!(list.damaged.is_empty());
        list.value.iter().map(|c| c.began.timestamp()).collect::<Vec<_>>()
    };
    assert_eq!((began(9), began(2), began(0)), (vec![3, 2, 1], vec![3, 2], vec![]));
    let apps = store.apps(1000).unwrap();
    let figures = apps[0].profile.unwrap();
    assert_eq!((figures.runs, figures.files, figures.pages), (3, 5, profile("a", 5).pages()));
    assert_eq!((apps.len(), apps[0].comparisons), (1, 3));
    assert!((Utc::now() - figures.learned).num_seconds() < 60);
}

#[test]
fn a_history_belongs_to_a_user() {
    let mut store = Store::in_memory().unwrap();
    store.save_profile(1000, &profile("a", 1)).unwrap();
    store.save_profile(u32::MAX, &profile("a", 2)).unwrap();
    store.save_comparison(1000, &comparison("b", 1)).unwrap();
    assert_eq!(store.profile(0, &id("a")).unwrap().value, None);
    assert_eq!(store.profile(1000, &id("a")).unwrap().value, Some(profile("a", 1)));
    assert_eq!(store.apps(1000).unwrap().iter().map(|a| a.app.0.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(store.forget(1000, Some(&id("a"))).unwrap(), 1);
    assert_eq!(store.forget(1000, Some(&id("a"))).unwrap(), 0);
    assert_eq!(store.profile(1000, &id("a")).unwrap().value, None);
    assert_eq!(store.forget(1000, None).unwrap(), 1);
    assert!(store.comparisons(1000, &id("b"), 9).unwrap().value.is_empty());
    assert_eq!(store.profile(u32::MAX, &id("a")).unwrap().value, Some(profile("a", 2)));
}

#[test]
fn what_is_forgotten_is_nowhere_in_the_files() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open_well(dir.path());
    store.save_profile(1000, &profile("a-telling-name", 50)).unwrap();
    let found = || {
        let holds = |name: &String| {
            let bytes = fs::read(dir.path().join(name)).unwrap();
            [&b"a-telling-name"[..], b"000007.so"].iter().any(|w| bytes.windows(w.len()).any(|b| b == *w))
        };
        names(dir.path()).into_iter().filter(holds).collect::<Vec<_>>()
    };
    assert!(!found().is_empty());
    store.forget(1000, None).unwrap();
    assert_eq!(found(), Vec::<String>::new());
}

#[test]
fn only_the_owner_can_read_it() {
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join("deep/history");
    let mut store = open_well(&inner);
    store.save_profile(1, &profile("a", 1)).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&inner), 0o700);
    let files = names(&inner);
    assert!(files.len() >= 3, "{files:?}");
    assert!(files.iter().all(|name| mode(&inner.join(name)) == 0o600), "{files:?}");
}

#[test]
fn an_invalid_profile_is_refused_and_the_last_one_kept() {
    let mut store = Store::in_memory().unwrap();
    store.save_profile(1, &profile("a", 2)).unwrap();
    let mut bad = profile("a", 2);
    bad.files.swap(0, 1);
    assert!(matches!(store.save_profile(1, &bad), Err(StoreError::Profile { .. })));
    assert_eq!(store.profile(1, &id("a")).unwrap().value, Some(profile("a", 2)));
}

#[test]
fn a_damaged_entry_costs_only_itself() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open_well(dir.path());
    for app in ["a", "b", "c", "d"] {
        store.save_profile(1, &profile(app, 2)).unwrap();
        store.save_comparison(1, &comparison(app, 1)).unwrap();
    }
    store.save_comparison(1, &Comparison { format: 99, ..comparison("b", 2) }).unwrap();
    let break_it = |sql: &str| assert_eq!(raw(dir.path()).execute(sql, []).unwrap(), 1, "{sql}");
    break_it("UPDATE profiles SET data = x'00' WHERE app_id = 1");
    break_it("UPDATE profiles SET data = (SELECT data FROM profiles WHERE app_id = 4) WHERE app_id = 3");
    break_it("UPDATE comparisons SET json = '{' WHERE app_id = 1");
    for (app, sound, comparisons, left_out) in
        [("a", false, 0, 1), ("b", true, 1, 1), ("c", false, 1, 0), ("d", true, 1, 0)]
    {
        let loaded = store.profile(1, &id(app)).unwrap();
        assert_eq!((loaded.value.is_some(), loaded.damaged.len()), (sound, usize::from(!sound)), "{app}");
        let list = store.comparisons(1, &id(app), 9).unwrap();
        assert_eq!((list.value.len(), list.damaged.len()), (comparisons, left_out), "{app}");
    }
    store.save_profile(1, &profile("a", 2)).unwrap();
    assert!(store.profile(1, &id("a")).unwrap().value.is_some());
}

proptest! {
    #[test]
    fn every_profile_survives_as_bytes(profile in any_profile(), at in any::<prop::sample::Index>(), mask in 1_u8..) {
        let bytes = blob::encode(&profile).unwrap();
        prop_assert_eq!(blob::decode(&bytes).unwrap(), profile);
        let at = at.index(bytes.len());
        prop_assert!(blob::decode(&bytes[..at]).is_err());
        let mut altered = bytes;
        altered[at] ^= mask;
        prop_assert!(blob::decode(&altered).is_err());
    }

    #[test]
    fn hostile_bytes_with_a_good_checksum_never_panic(payload in prop::collection::vec(any::<u8>(), 0..300)) {
        let crc = crc32fast::hash(&payload).to_le_bytes();
        let bytes = [&b"HSPF\x01"[..], &crc, &payload].concat();
        if let Ok(profile) = blob::decode(&bytes) {
            prop_assert!(profile.verify().is_ok());
        }
    }
}

/// A database of each earlier version, as that version left it. Never edit one: append.
const FIXTURES: &[&str] = &[
    "",
    "INSERT INTO apps VALUES (1, 1000, 'org.gnome.gedit'), (2, 1001, '/usr/bin/vim');
     INSERT INTO comparisons VALUES (1, 1, 1700000000000, '{\"format\":1,\"version\":\"0.1.0\",
       \"began\":\"2023-11-14T22:13:20Z\",\"app\":\"org.gnome.gedit\",\"name\":\"gedit\",\"command\":[\"gedit\"],
       \"milestone\":\"first-window\",\"cold\":\"evict\",\"rounds\":5,\"runs\":[],\"left_out\":[],
       \"prefetch\":{\"files\":0,\"ranges\":0,\"planned\":0,\"metadata\":0,\"read\":0,\"used\":null,\"time\":null,\"learned_from\":1},
       \"drives\":[],\"host\":{\"kernel\":\"6.1\",\"cpus\":2,\"memory\":1},\"remarks\":[]}');",
    "INSERT INTO apps (id, uid, app, policy, launches) VALUES (1, 1000, 'org.gnome.gedit', '\"off\"', 3);
     INSERT INTO comparisons VALUES (1, 1, 1700000000000, '{\"format\":1,\"version\":\"0.1.0\",
       \"began\":\"2023-11-14T22:13:20Z\",\"app\":\"org.gnome.gedit\",\"name\":\"gedit\",\"command\":[\"gedit\"],
       \"milestone\":\"first-window\",\"cold\":\"evict\",\"rounds\":5,\"runs\":[],\"left_out\":[],
       \"prefetch\":{\"files\":0,\"ranges\":0,\"planned\":0,\"metadata\":0,\"read\":0,\"used\":null,\"time\":null,\"learned_from\":1},
       \"drives\":[],\"host\":{\"kernel\":\"6.1\",\"cpus\":2,\"memory\":1},\"remarks\":[]}');",
];

#[test]
fn each_earlier_version_is_brought_up() {
    assert_eq!(FIXTURES.len(), migrations::MIGRATIONS.len() + 1, "a version without a fixture");
    for (version, fixture) in FIXTURES.iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        let mut conn = raw(dir.path());
        migrations::migrate(&mut conn, Path::new("fixture"), &migrations::MIGRATIONS[..version]).unwrap();
        conn.execute_batch(fixture).unwrap();
        drop(conn);
        let mut store = open_well(dir.path());
        if version >= 1 {
            assert_eq!(store.apps(1000).unwrap().len(), 1);
            let list = store.comparisons(1000, &id("org.gnome.gedit"), 9).unwrap();
            assert_eq!((list.value.len(), list.damaged), (1, vec![]));
        }
        store.save_profile(1000, &profile("a", 1)).unwrap();
        assert_eq!(
            usize::try_from(migrations::version(&raw(dir.path())).unwrap()),
            Ok(migrations::MIGRATIONS.len())
        );
    }
}

#[test]
fn migrations_go_on_from_any_version_and_stop_whole() {
    let list = [
        "CREATE TABLE t (a); INSERT INTO t VALUES (1)",
        "ALTER TABLE t ADD b",
        "INSERT INTO t VALUES (2, 3)",
    ];
    let path = Path::new("x");
    for from in 0..=list.len() {
        let mut conn = Connection::open_in_memory().unwrap();
        migrations::migrate(&mut conn, path, &list[..from]).unwrap();
        migrations::migrate(&mut conn, path, &list).unwrap();
        let rows: i64 = conn.query_row("SELECT count(*) FROM t", [], |r| r.get(0)).unwrap();
        assert_eq!((rows, migrations::version(&conn).unwrap()), (2, 3));
    }
    let mut conn = Connection::open_in_memory().unwrap();
    let broken = [list[0], "INSERT INTO t VALUES (2); INSERT INTO missing VALUES (1)"];
    assert!(matches!(migrations::migrate(&mut conn, path, &broken), Err(StoreError::Damaged { .. })));
    let rows: i64 = conn.query_row("SELECT count(*) FROM t", [], |r| r.get(0)).unwrap();
    assert_eq!((rows, migrations::version(&conn).unwrap()), (1, 1));
}

#[test]
fn a_newer_database_is_refused_and_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    open_well(dir.path()).save_profile(1, &profile("a", 1)).unwrap();
    let newer = raw(dir.path());
    newer.execute_batch("PRAGMA user_version = 7; PRAGMA wal_checkpoint; CREATE TABLE more (x);").unwrap();
    // As a killed process leaves it: with a log that is not yet part of the database.
    let left = tempfile::tempdir().unwrap();
    let log = format!("{}-wal", open::FILE);
    for name in [open::FILE, &log] {
        fs::copy(dir.path().join(name), left.path().join(name)).unwrap();
    }
    let state = || [open::FILE, &log].map(|name| fs::read(left.path().join(name)).unwrap());
    let before = state();
    let error = Store::open(left.path()).unwrap_err();
    assert!(matches!(error, StoreError::Newer { found: 7, known: 2, .. }), "{error}");
    assert!(before == state());
    assert_eq!(names(left.path()), [open::FILE, &log, "history.lock"]);
}
