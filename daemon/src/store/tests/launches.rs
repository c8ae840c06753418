use std::time::Duration;

use headstart_shared::launch::{Arm, Launch, Temperature, Timeline, Usage};
use headstart_shared::policy::{AppState, Policy};
use headstart_shared::units::{Bytes, Nanos};
use headstart_shared::verdict::Verdict;

use super::*;

/// A cold launch that took `seconds` to its window, at `second` since 1970.
pub(super) fn launch(app: &str, second: i64, arm: Arm, seconds: u64) -> Launch {
    Launch {
        id: 0,
        app: id(app),
        began: DateTime::from_timestamp(second, 0).unwrap(),
        arm,
        temperature: Temperature::Cold,
        cached: Some(0.0),
        milestones: vec![(Milestone::FirstWindow, Nanos(seconds * 1_000_000_000))],
        exclusions: Vec::new(),
        usage: Usage::default(),
        read_ahead: None,
        version: u64::MAX,
        recorded: false,
        tuned: false,
    }
}

fn timeline(launch: &Launch) -> Timeline {
    Timeline {
        format: 1,
        launch: launch.clone(),
        processes: Vec::new(),
        samples: Vec::new(),
        priorities: Vec::new(),
    }
}

#[test]
fn launches_are_given_back_the_latest_first_and_in_pages() {
    let mut store = Store::in_memory().unwrap();
    for (second, app) in [(1, "a"), (2, "b"), (3, "a")] {
        store.record_launch(1000, &launch(app, second, Arm::Prefetched, 1), None).unwrap();
    }
    let ids = |app: Option<&AppId>, before| -> Vec<u64> {
        store.launches(1000, app, before, 10).unwrap().value.iter().map(|l| l.id).collect()
    };
    assert_eq!(ids(None, None), [3, 2, 1]);
    assert_eq!(ids(Some(&id("a")), None), [3, 1]);
    assert_eq!(ids(None, Some(3)), [2, 1]);
    let expected = Launch { id: 2, ..launch("b", 2, Arm::Prefetched, 1) };
    assert_eq!(store.launch(1000, 2).unwrap().value, Some(expected));
    assert_eq!(store.app_record(1000, &id("a")).unwrap().unwrap().launches, 2);
    assert_eq!(store.app_record(1000, &id("a")).unwrap().unwrap().version, Some(u64::MAX));
}

#[test]
fn nothing_of_a_users_is_reached_by_another() {
    let mut store = Store::in_memory().unwrap();
    let mine = launch("a", 1, Arm::HeldOut, 1);
    let number = store.record_launch(1000, &mine, Some(&timeline(&mine))).unwrap();
    store.set_policy(1000, &id("a"), Policy::Off).unwrap();
    store.add_activity(Some(1000), &activity(1, Some("a"))).unwrap();
    assert!(store.launches(1001, None, None, 10).unwrap().value.is_empty());
    assert_eq!(store.launch(1001, number).unwrap().value, None);
    assert_eq!(store.timeline(1001, number).unwrap().value, None);
    assert!(store.with_timeline(1001).unwrap().is_empty());
    assert!(store.counted(1001, &id("a"), 10).unwrap().is_empty());
    assert!(store.app_records(1001).unwrap().is_empty());
    assert!(store.activity(1001, None, 10).unwrap().is_empty());
    assert!(store.timeline(1000, number).unwrap().value.is_some());
}

fn activity(second: i64, app: Option<&str>) -> Activity {
    let at = DateTime::from_timestamp(second, 0).unwrap();
    Activity { id: 0, at, kind: 1, app: app.map(id), launch: Some(3), count: None, detail: None }
}

#[test]
fn only_the_newest_timelines_of_an_app_are_kept() {
    let mut store = Store::in_memory().unwrap();
    let (a, b) = (launch("a", 1, Arm::Off, 1), launch("b", 1, Arm::Off, 1));
    let other = store.record_launch(1000, &b, Some(&timeline(&b))).unwrap();
    let ids: Vec<u64> =
        (0..=TIMELINES).map(|_| store.record_launch(1000, &a, Some(&timeline(&a))).unwrap()).collect();
    assert_eq!(store.timeline(1000, ids[0]).unwrap().value, None);
    assert_eq!(store.timeline(1000, ids[1]).unwrap().value.unwrap().launch.id, ids[1]);
    assert!(store.timeline(1000, other).unwrap().value.is_some());
    assert_eq!(store.with_timeline(1000).unwrap().len(), TIMELINES as usize + 1);
}

#[test]
fn a_verdict_is_made_from_the_latest_counted_launches_since_it_was_begun_anew() {
    let mut store = Store::in_memory().unwrap();
    for second in 0..5 {
        store.record_launch(1, &launch("a", second, Arm::Prefetched, 1), None).unwrap();
        store.record_launch(1, &launch("a", second, Arm::HeldOut, 2), None).unwrap();
        store.record_launch(1, &launch("a", second, Arm::Off, 2), None).unwrap();
    }
    let arms = |store: &Store, each| -> Vec<Arm> {
        store.counted(1, &id("a"), each).unwrap().iter().map(|l| l.arm).collect()
    };
    assert_eq!(arms(&store, 2), [Arm::HeldOut, Arm::Prefetched, Arm::HeldOut, Arm::Prefetched]);
    store.save_verdict(1, &id("a"), &Verdict::Measuring { held_out: 1, prefetched: 2, needed: 4 }).unwrap();
    store.restart_verdict(1, &id("a")).unwrap();
    assert!(arms(&store, 10).is_empty());
    assert_eq!(store.app_record(1, &id("a")).unwrap().unwrap().verdict, None);
    store.record_launch(1, &launch("a", 9, Arm::HeldOut, 2), None).unwrap();
    assert_eq!(arms(&store, 10), [Arm::HeldOut]);
}

#[test]
fn an_app_is_judged_by_its_counted_launches_and_the_verdict_is_kept() {
    let mut store = Store::in_memory().unwrap();
    for second in 0..10 {
        for (arm, seconds) in [(Arm::Prefetched, 1), (Arm::HeldOut, 2), (Arm::Off, 90)] {
            store.record_launch(1, &launch("a", second, arm, seconds), None).unwrap();
        }
        let verdict = store.judge(1, &id("a")).unwrap();
        assert_eq!(store.app_record(1, &id("a")).unwrap().unwrap().verdict, Some(verdict));
        assert_eq!(matches!(verdict, Verdict::Faster(_)), second >= 5, "{second}: {verdict:?}");
    }
    assert!(matches!(
        store.judge(2, &id("a")).unwrap(),
        Verdict::Measuring { held_out: 0, prefetched: 0, .. }
    ));
}

#[test]
fn what_is_chosen_and_concluded_about_an_app_is_remembered() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open_well(dir.path());
    let verdict = Verdict::Measuring { held_out: 1, prefetched: 2, needed: 4 };
    store.set_policy(7, &id("a"), Policy::Off).unwrap();
    store.set_state(7, &id("a"), AppState::Learning { runs: 1, needed: 3 }, u64::MAX).unwrap();
    store.save_verdict(7, &id("a"), &verdict).unwrap();
    store.record_hot(7, &id("a")).unwrap();
    let plans = StoredPlans { layout: u64::MAX, plans: Vec::new(), sample: vec![1, 2] };
    store.save_plans(7, &id("a"), &plans).unwrap();
    drop(store);
    let store = open_well(dir.path());
    let record = store.app_record(7, &id("a")).unwrap().unwrap();
    assert_eq!(record.policy, Policy::Off);
    assert_eq!(record.state, Some(AppState::Learning { runs: 1, needed: 3 }));
    assert_eq!(record.circumstances, Some(u64::MAX));
    assert_eq!(record.verdict, Some(verdict));
    assert_eq!((record.hot, record.launches), (1, 0));
    assert_eq!(store.plans(7, &id("a")).unwrap().value, Some(plans));
    assert_eq!(store.users().unwrap(), [7]);
    assert_eq!(store.app_records(7).unwrap(), [record]);
}

#[test]
fn forgetting_leaves_nothing_of_the_app_and_all_of_the_others() {
    let mut store = Store::in_memory().unwrap();
    for app in ["a", "b"] {
        let launch = launch(app, 1, Arm::Off, 1);
        store.record_launch(1, &launch, Some(&timeline(&launch))).unwrap();
        store.add_activity(Some(1), &activity(1, Some(app))).unwrap();
    }
    store.add_activity(None, &activity(1, None)).unwrap();
    assert_eq!(store.forget(1, Some(&id("a"))).unwrap(), 1);
    assert_eq!(store.launches(1, None, None, 9).unwrap().value.len(), 1);
    assert_eq!(store.with_timeline(1).unwrap().len(), 1);
    assert_eq!(store.activity(1, None, 9).unwrap().len(), 2);
    store.forget(1, None).unwrap();
    assert!(store.app_records(1).unwrap().is_empty());
    assert_eq!(store.activity(1, None, 9).unwrap().len(), 1, "what is about the machine stays");
}

#[test]
fn what_is_old_becomes_a_line_a_month() {
    let mut store = Store::in_memory().unwrap();
    let day = 86_400;
    for (second, seconds) in [(day, 1), (2 * day, 2), (3 * day, 9), (400 * day, 4)] {
        store.record_launch(1, &launch("a", second, Arm::HeldOut, seconds), None).unwrap();
    }
    store.add_activity(Some(1), &activity(5, Some("a"))).unwrap();
    store.add_read(DateTime::UNIX_EPOCH.date_naive(), "sda", Bytes(5)).unwrap();
    let now = DateTime::from_timestamp(401 * day, 0).unwrap();
    let days = |n: u64| Duration::from_hours(24 * n);
    let retention = Retention { launches: days(30), activity: days(30), size: Bytes(1 << 30) };
    assert_eq!(store.maintain(now, &retention).unwrap(), Removed { launches: 3, activity: 1 });
    assert_eq!(store.launches(1, None, None, 9).unwrap().value.len(), 1);
    let month = "SELECT month, arm, milestone, launches, median FROM months";
    let row = |row: &rusqlite::Row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?));
    let line: (i64, i64, i64, i64, i64) = store.db.conn.query_row(month, [], row).unwrap();
    assert_eq!(line, (197_001, 2, 1, 3, 2_000_000_000));
    assert_eq!(
        store.app_record(1, &id("a")).unwrap().unwrap().launches,
        4,
        "they were launched all the same"
    );
    assert_eq!(store.read_on(DateTime::UNIX_EPOCH.date_naive()).unwrap(), Bytes(0));
}

#[test]
fn a_history_that_is_too_large_loses_the_oldest_launches() {
    let mut store = Store::in_memory().unwrap();
    for second in 0..5_000 {
        store.record_launch(1, &launch("a", second, Arm::HeldOut, 1), None).unwrap();
    }
    let limit = Bytes(store.used().unwrap().0 * 3 / 4);
    let age = Duration::from_hours(1_000_000);
    let retention = Retention { launches: age, activity: age, size: limit };
    let removed = store.maintain(DateTime::UNIX_EPOCH, &retention).unwrap();
    assert!(removed.launches > 0 && store.used().unwrap() <= limit, "{removed:?}");
    let left = store.launches(1, None, None, 9_999).unwrap().value;
    assert_eq!(left.len() as u64, 5_000 - removed.launches);
    assert_eq!(left[0].id, 5_000, "the latest is there");
}

#[test]
fn bytes_read_are_summed_by_day() {
    let mut store = Store::in_memory().unwrap();
    let day = DateTime::UNIX_EPOCH.date_naive();
    store.add_read(day, "sda", Bytes(5)).unwrap();
    store.add_read(day, "sda", Bytes(6)).unwrap();
    store.add_read(day, "sdb", Bytes(7)).unwrap();
    assert_eq!(store.read_on(day).unwrap(), Bytes(18));
    assert_eq!(store.read_on(day.succ_opt().unwrap()).unwrap(), Bytes(0));
}

#[test]
fn a_damaged_launch_costs_only_itself() {
    let mut store = Store::in_memory().unwrap();
    for second in 0..3 {
        let launch = launch("a", second, Arm::Off, 1);
        store.record_launch(1, &launch, Some(&timeline(&launch))).unwrap();
    }
    store.db.conn.execute("UPDATE launches SET data = x'00' WHERE id = 2", []).unwrap();
    store.db.conn.execute("UPDATE timelines SET data = x'00' WHERE launch_id = 3", []).unwrap();
    let loaded = store.launches(1, None, None, 9).unwrap();
    assert_eq!(loaded.value.len(), 2);
    assert_eq!(loaded.damaged.len(), 1);
    assert_eq!(store.timeline(1, 3).unwrap().damaged.len(), 1);
}
