use headstart_shared::units::Bytes;

use super::*;
use crate::drive::{Class, Flash};
use crate::plan::{PlannedFile, Step, Target, Tuning};
use crate::recording::FileIdentity;
use crate::store::StoredPlans;

fn plan(files: u32) -> Plan {
    let target =
        Target { name: "sda".into(), class: Class::Flash(Flash::Sata), max_readahead: Bytes(1 << 20) };
    let identity = FileIdentity { filesystem: 1, inode: 2, size: 3, mtime: 4 };
    Plan {
        files: (0..files).map(|n| PlannedFile { path: format!("/f/{n}").into(), identity }).collect(),
        devices: Vec::new(),
        steps: (0..files).map(|file| Step::Open { file }).collect(),
        ..Plan::new(
            &crate::plan::Wanted::default(),
            4096,
            target.clone(),
            Tuning::for_target(&target),
            Bytes(1 << 30),
        )
    }
}

fn owned(app: &str) -> Owned {
    (1000, AppId(app.into()))
}

fn store(apps: &[(&str, u32)]) -> Store {
    let mut store = Store::in_memory().unwrap();
    for (app, files) in apps {
        let (uid, app) = owned(app);
        let plans = StoredPlans { layout: 0, plans: vec![plan(*files)], sample: Vec::new() };
        store.save_plans(uid, &app, &plans).unwrap();
        store.set_state(uid, &app, AppState::Prefetching, 0).unwrap();
    }
    store
}

#[test]
fn what_is_not_in_memory_is_read_when_it_is_needed() {
    let store = store(&[("small", 10), ("large", 30_000)]);
    let mut apps = Apps::load(&store).unwrap();
    assert_eq!(apps.counts(), (2, 0));
    for (app, files) in [("large", 30_000), ("small", 10), ("large", 30_000)] {
        let ready = apps.ready(&store, &owned(app)).unwrap().unwrap();
        assert_eq!(ready.plans[0].files.len(), files, "{app}");
        assert_eq!(apps.ready.len(), 1, "one of them fills the room");
    }
    assert_eq!(apps.ready(&store, &owned("unknown")).unwrap(), None);
}

#[test]
fn a_change_in_the_history_is_seen_and_concerns_nobody_else() {
    let mut store = store(&[("a", 1), ("b", 1)]);
    let mut apps = Apps::load(&store).unwrap();
    apps.set_stale(&owned("a"), true);
    store.set_policy(1000, &owned("a").1, Policy::Off).unwrap();
    store.set_state(7, &owned("a").1, AppState::SwitchedOff, 0).unwrap();
    apps.reload(&store, 1000, Some(&owned("a").1)).unwrap();
    let known = apps.get(&owned("a"));
    assert_eq!((known.policy, known.stale), (Policy::Off, true));
    assert_eq!(apps.get(&owned("b")).state, Some(AppState::Prefetching));
    assert_eq!(apps.get(&(7, owned("a").1)), Known::default(), "not read yet");
    store.forget(1000, None).unwrap();
    apps.reload(&store, 1000, None).unwrap();
    assert_eq!(apps.get(&owned("b")), Known::default());
    assert_eq!(apps.ready(&store, &owned("b")).unwrap(), None);
}
