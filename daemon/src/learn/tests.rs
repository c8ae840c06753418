use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;
use crate::recording::{Backend, DeviceNumber, FileIdentity, PageRange};

const PAGE: u64 = 4096;
const MS: u64 = 1_000_000;

fn app() -> AppId {
    AppId("org.example.App".into())
}

fn touch(start: u64, end: u64, ms: u64) -> Touch {
    Touch { pages: PageRange { start, end }, at: Nanos(ms * MS) }
}

fn file(path: &str, mtime: i64, touches: &[Touch]) -> RecordedFile {
    let identity = FileIdentity { filesystem: 1, inode: 2, size: 1000 * PAGE, mtime };
    RecordedFile { path: path.into(), identity, touches: touches.to_vec() }
}

fn device(filesystem: u64, minor: u32, touches: &[Touch]) -> RecordedDevice {
    RecordedDevice { device: DeviceNumber { major: 8, minor }, filesystem, touches: touches.to_vec() }
}

fn run(files: Vec<RecordedFile>) -> Recording {
    Recording {
        page_size: PAGE,
        backend: Backend::Touched,
        prefetched: false,
        files,
        devices: Vec::new(),
        lost_events: 0,
        unnamed_pages: 0,
    }
}

fn learn_all<'a>(runs: impl IntoIterator<Item = &'a Recording>) -> Profile {
    runs.into_iter().fold(None, |known, run| Some(learn(known, &app(), run))).unwrap()
}

/// `(start, end, history)` of a file's ranges.
fn shape(profile: &Profile, path: &str) -> Vec<(u64, u64, u32)> {
    let file = profile.files.iter().find(|f| f.path == Path::new(path));
    file.map_or_else(Vec::new, |f| plain(&f.ranges))
}

fn plain(ranges: &[RangeUse]) -> Vec<(u64, u64, u32)> {
    ranges.iter().map(|r| (r.pages.start, r.pages.end, r.history.0)).collect()
}

fn wanted_pages(profile: &Profile, path: &str) -> Vec<(u64, u64)> {
    let wanted = wanted(profile);
    let file = wanted.files.iter().find(|f| f.file.path == Path::new(path));
    file.map_or_else(Vec::new, |f| f.ranges.iter().map(|r| (r.pages.start, r.pages.end)).collect())
}

#[test]
fn one_run_is_kept_as_it_was_and_wanted_whole() {
    let p = learn_all([&run(vec![file("/a", 1, &[touch(0, 4, 10), touch(8, 9, 900)])])]);
    assert_eq!(p.runs, 1);
    assert_eq!(shape(&p, "/a"), [(0, 4, 1), (8, 9, 1)]);
    assert_eq!(wanted_pages(&p, "/a"), [(0, 4), (8, 9)]);
    assert_eq!(p.files[0].ranges[1].first_need, Nanos(900 * MS));
}

#[test]
fn ranges_split_page_exactly_where_histories_differ_and_heal() {
    let usual = run(vec![file("/a", 1, &[touch(0, 10, 0)])]);
    let odd = run(vec![file("/a", 1, &[touch(0, 4, 0), touch(6, 12, 0)])]);
    let p = learn_all([&usual, &odd]);
    assert_eq!(shape(&p, "/a"), [(0, 4, 0b11), (4, 6, 0b10), (6, 10, 0b11), (10, 12, 0b01)]);
    let p = learn_all([&usual, &odd].into_iter().chain([&usual; REMEMBERED as usize]));
    assert_eq!(shape(&p, "/a"), [(0, 10, last(REMEMBERED))]);
}

#[test]
fn neighbours_that_are_needed_together_are_one_range_and_others_are_not() {
    let p = learn_all([&run(vec![file(
        "/a",
        1,
        &[touch(0, 1, 0), touch(1, 2, 99), touch(2, 3, 101), touch(3, 4, 90)],
    )])]);
    let needs: Vec<_> = p.files[0].ranges.iter().map(|r| (r.pages.end, r.first_need.0 / MS)).collect();
    assert_eq!(needs, [(2, 0), (4, 90)], "the whole of a range lies within NEAR");
    let backwards = [touch(0, 1, 150), touch(1, 2, 90), touch(2, 3, 0)];
    let p = learn_all([&run(vec![file("/a", 1, &backwards)])]);
    let needs: Vec<_> = p.files[0].ranges.iter().map(|r| (r.pages.end, r.first_need.0 / MS)).collect();
    assert_eq!(needs, [(2, 90), (3, 0)], "also where a file is read backwards");
}

#[test]
fn after_two_runs_the_latest_counts_and_after_three_what_recurs() {
    let both = touch(0, 2, 0);
    let runs = [
        run(vec![file("/a", 1, &[both, touch(10, 11, 0)]), file("/first", 1, &[both])]),
        run(vec![file("/a", 1, &[both, touch(20, 21, 0)]), file("/second", 1, &[both])]),
        run(vec![file("/a", 1, &[both, touch(20, 21, 0), touch(30, 31, 0)])]),
    ];
    let two = learn_all(&runs[..2]);
    assert_eq!(wanted_pages(&two, "/a"), [(0, 2), (20, 21)]);
    assert_eq!((wanted_pages(&two, "/first"), wanted_pages(&two, "/second")), (vec![], vec![(0, 2)]));
    let three = learn_all(&runs);
    assert_eq!(wanted_pages(&three, "/a"), [(0, 2), (20, 21)]);
    assert_eq!(wanted_pages(&three, "/second"), []);
}

#[test]
fn two_of_the_last_five_are_wanted_and_one_is_not() {
    for (history, expected) in [(0b1_0001, true), (0b1_0000, false), (0b10_0001, false), (0b110, true)] {
        assert_eq!(is_wanted(History(history), 6), expected, "{history:b}");
    }
    assert!(is_wanted(History(0b11), 3));
    assert!(!is_wanted(History(0b10), 2));
}

#[test]
fn what_was_not_used_in_five_runs_is_dropped_and_its_file_with_it() {
    let keep = file("/keep", 1, &[touch(0, 1, 0)]);
    let first = run(vec![keep.clone(), file("/once", 1, &[touch(0, 1, 0)])]);
    let other = run(vec![keep]);
    let p = learn_all([&first, &other, &other, &other, &other]);
    assert_eq!(shape(&p, "/once"), [(0, 1, 0b1_0000)]);
    let p = learn(Some(p), &app(), &other);
    assert_eq!(p.files.iter().map(|f| f.path.clone()).collect::<Vec<_>>(), [PathBuf::from("/keep")]);
    assert_eq!(p.runs, 6);
}

#[test]
fn a_changed_file_loses_its_own_ranges_and_no_others_but_not_its_place() {
    let old = run(vec![file("/lib", 1, &[touch(0, 9, 0)]), file("/other", 1, &[touch(0, 9, 0)])]);
    let new = run(vec![
        file("/lib", 2, &[touch(3, 5, 0)]),
        file("/other", 1, &[touch(0, 9, 0)]),
        file("/noise", 1, &[touch(0, 9, 0)]),
    ]);
    let p = learn_all([&old, &old, &old, &new]);
    assert_eq!(shape(&p, "/lib"), [(3, 5, 1)]);
    assert_eq!(p.files.iter().find(|f| f.path == Path::new("/lib")).unwrap().identity.mtime, 2);
    assert_eq!(shape(&p, "/other"), [(0, 9, 0b1111)]);
    assert_eq!(wanted_pages(&p, "/lib"), [(3, 5)], "needed by every start, whichever file it is");
    assert_eq!(wanted_pages(&p, "/noise"), [], "seen once among four");
    // From the second run on its pages are judged one by one.
    let next = run(vec![file("/lib", 2, &[touch(3, 4, 0)])]);
    assert_eq!(wanted_pages(&learn(Some(p), &app(), &next), "/lib"), [(3, 4)]);
}

#[test]
fn a_file_that_each_run_writes_stays_wanted_as_the_last_run_left_it() {
    let runs: Vec<_> = (0..9)
        .map(|n| {
            run(vec![
                file("/conf", n, &[touch(0, 1 + n.unsigned_abs() % 2, 0)]),
                file("/a", 0, &[touch(0, 1, 0)]),
            ])
        })
        .collect();
    let p = learn_all(&runs);
    assert_eq!(shape(&p, "/conf"), [(0, 1, 1)]);
    assert_eq!(wanted_pages(&p, "/conf"), [(0, 1)]);
}

#[test]
fn a_file_that_a_run_did_not_touch_keeps_its_identity() {
    let p = learn_all([
        &run(vec![file("/a", 7, &[touch(0, 1, 0)])]),
        &run(vec![file("/b", 1, &[touch(0, 1, 0)])]),
    ]);
    assert_eq!((p.files[0].identity.mtime, shape(&p, "/a")), (7, vec![(0, 1, 0b10)]));
}

#[test]
fn a_prefetched_run_is_no_sign_of_disuse_for_devices() {
    let cold = |touches: &[Touch]| Recording { devices: vec![device(1, 1, touches)], ..run(vec![]) };
    let prefetched = Recording { prefetched: true, ..cold(&[touch(50, 51, 0)]) };
    let known = cold(&[touch(0, 8, 0)]);
    let p = learn_all([&known].into_iter().chain([&prefetched; 9]));
    assert_eq!(plain(&p.devices[0].ranges), [(0, 8, 1), (50, 51, 1)]);
    assert_eq!(wanted(&p).devices[0].ranges.len(), 2);
    let much = Recording { prefetched: true, ..cold(&[touch(100, 120, 0)]) };
    let q = learn(Some(p.clone()), &app(), &much);
    assert_eq!(plain(&q.devices[0].ranges)[0], (0, 8, 1), "however much it read besides");
    // A run of the same temperature as the first one counts again.
    let p = learn(Some(p), &app(), &known);
    assert_eq!(plain(&p.devices[0].ranges), [(0, 8, 0b11), (50, 51, 0b10)]);
    let ends: Vec<_> = wanted(&p).devices[0].ranges.iter().map(|r| r.pages.end).collect();
    assert_eq!(ends, [8, 51], "that one run found a structure in memory is no reason to do without");
}

#[test]
fn a_warm_run_is_no_sign_of_disuse_for_devices_but_a_moved_structure_is_found_out() {
    let cold = |touches: &[Touch]| Recording { devices: vec![device(1, 1, touches)], ..run(vec![]) };
    let first = cold(&[touch(0, 8, 0)]);
    let p = learn_all([&first, &cold(&[touch(0, 3, 0)]), &cold(&[])]);
    assert_eq!(plain(&p.devices[0].ranges), [(0, 8, 1)]);
    let p = learn_all([&first, &cold(&[touch(100, 108, 0)])]);
    assert_eq!(plain(&p.devices[0].ranges), [(0, 8, 0b10), (100, 108, 0b01)]);
}

#[test]
fn a_device_is_its_file_system_and_not_its_number() {
    let with = |devices| Recording { devices, ..run(vec![]) };
    let p = learn_all([&with(vec![device(1, 1, &[touch(0, 2, 0)]), device(2, 2, &[touch(0, 2, 0)])])]);
    let renumbered = with(vec![device(1, 5, &[touch(0, 2, 0)])]);
    let q = learn(Some(p.clone()), &app(), &renumbered);
    assert_eq!(
        q.devices.iter().map(|d| (d.filesystem, d.device.minor)).collect::<Vec<_>>(),
        [(1, 5), (2, 2)]
    );
    assert_eq!(plain(&q.devices[0].ranges), [(0, 2, 0b11)]);
    let swapped = with(vec![device(1, 2, &[touch(0, 2, 0)])]);
    let q = learn(Some(p), &app(), &swapped);
    assert_eq!(
        q.devices.iter().map(|d| d.filesystem).collect::<Vec<_>>(),
        [1],
        "2:8 is another file system's now"
    );
}

#[test]
fn backends_that_do_not_see_cached_pages_tell_nothing_when_prefetched_or_warm() {
    let known = run(vec![file("/a", 1, &[touch(0, 10, 0)]), file("/b", 1, &[touch(0, 10, 0)])]);
    let seen = |backend, prefetched, end| {
        let r = Recording { backend, prefetched, ..run(vec![file("/a", 1, &[touch(0, end, 0)])]) };
        let p = learn_all([&known, &r]);
        (shape(&p, "/a"), shape(&p, "/b"))
    };
    let unchanged = (vec![(0, 10, 1)], vec![(0, 10, 1)]);
    assert_eq!(seen(Backend::Added, true, 10), unchanged);
    assert_eq!(seen(Backend::Added, false, 5), unchanged, "a warm run");
    assert_eq!(seen(Backend::Added, false, 10), (vec![(0, 10, 0b11)], vec![(0, 10, 0b10)]), "a cold run");
    assert_eq!(seen(Backend::Resident, true, 10), unchanged, "resident because it was read ahead");
    let half = run(vec![file("/a", 1, &[touch(0, 5, 0)])]);
    let resident = Recording {
        backend: Backend::Resident,
        prefetched: true,
        ..run(vec![file("/a", 1, &[touch(0, 12, 0)])])
    };
    let p = learn_all([&known, &half, &resident]);
    assert_eq!(shape(&p, "/a"), [(0, 5, 0b11), (5, 10, 0b10), (10, 12, 0b01)], "the known was read ahead");
    assert_eq!(seen(Backend::Resident, false, 3).0, [(0, 3, 0b11), (3, 10, 0b10)]);
}

#[test]
fn what_was_lost_is_no_sign_of_disuse_and_what_was_seen_is_learned() {
    let known = run(vec![file("/a", 1, &[touch(0, 10, 0)]), file("/b", 1, &[touch(0, 10, 0)])]);
    let lossy = Recording { lost_events: 1, ..run(vec![file("/a", 1, &[touch(5, 12, 0)])]) };
    let p = learn_all([&known].into_iter().chain([&lossy; 9]));
    assert_eq!(shape(&p, "/a"), [(0, 12, 1)]);
    assert_eq!(shape(&p, "/b"), [(0, 10, 1)]);
    assert_eq!(p.runs, 10);
}

#[test]
fn nameless_pages_hide_files_that_are_not_larger() {
    let known = run(vec![
        file("/a", 1, &[touch(0, 10, 0)]),
        file("/large", 1, &[touch(0, 10, 0)]),
        file("/small", 1, &[touch(0, 3, 0)]),
    ]);
    let nameless = Recording { unnamed_pages: 3, ..run(vec![file("/a", 1, &[touch(0, 5, 0)])]) };
    let p = learn_all([&known, &nameless]);
    assert_eq!(shape(&p, "/a"), [(0, 5, 0b11), (5, 10, 0b10)], "a file with a name hides nothing");
    assert_eq!(shape(&p, "/large"), [(0, 10, 0b10)]);
    assert_eq!(shape(&p, "/small"), [(0, 3, 1)]);
}

#[test]
fn the_first_need_is_the_earliest_and_odd_runs_are_forgotten() {
    let at = |ms| run(vec![file("/a", 1, &[touch(0, 1, ms)])]);
    let need = |times: &[u64]| {
        learn_all(&times.iter().map(|t| at(*t)).collect::<Vec<_>>()).files[0].ranges[0].first_need.0 / MS
    };
    assert_eq!(need(&[1000, 400]), 400);
    assert_eq!(need(&[400, 1000]), 550);
    let odd = [&[0_u64][..], &[1000; 8]].concat();
    assert!(need(&odd) >= 899, "{}", need(&odd));
}

#[test]
fn what_is_kept_out_by_name_leaves_a_profile_that_has_it() {
    let log = file("/var/log/app.log", 1, &[touch(0, 1, 0)]);
    let p = learn_all([&run(vec![
        log.clone(),
        file("/a", 1, &[touch(0, 1, 0)]),
        file("relative", 1, &[touch(0, 1, 0)]),
        file("/a/../b", 1, &[touch(0, 1, 0)]),
    ])]);
    assert_eq!(p.files.len(), 1);
    let mut p = p;
    let mut old = p.files[0].clone();
    old.path = log.path;
    p.files.push(old);
    assert_eq!(learn(Some(p), &app(), &run(vec![])).files.len(), 1);
}

#[test]
fn a_profile_of_another_app_or_page_size_is_not_continued() {
    let r = run(vec![file("/a", 1, &[touch(0, 1, 0)])]);
    let p = learn_all([&r, &r]);
    assert_eq!(learn(Some(p.clone()), &AppId("other".into()), &r).runs, 1);
    let large = Recording { page_size: 16384, ..r };
    let q = learn(Some(p), &app(), &large);
    assert_eq!((q.runs, q.page_size), (1, 16384));
}

#[test]
fn pages_beyond_the_end_of_a_file_are_not_kept() {
    let p = learn_all([&run(vec![file("/a", 1, &[touch(990, 2000, 0), touch(3000, 3001, 0)])])]);
    assert_eq!(shape(&p, "/a"), [(990, 1000, 1)]);
    let mut huge = file("/a", 1, &[touch(0, u64::MAX, 0)]);
    huge.identity.size = u64::MAX;
    learn_all([&run(vec![huge])]).verify().unwrap();
}

/// A start of an office suite: 413 files, 770 ranges, 117 MiB, with noise at each boundary.
fn office_start(seed: u64) -> Recording {
    let mut state = seed;
    let mut jitter = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33).is_multiple_of(10)
    };
    let files = (0..413_u64).map(|n| {
        let ranges = if n < 357 { 2 } else { 1 };
        let touches = (0..ranges).map(|r| {
            let start = r * 100 + u64::from(jitter());
            touch(start, r * 100 + 39 - u64::from(jitter()), n * 10)
        });
        file(&format!("/usr/lib/{n:04}"), 1, &touches.collect::<Vec<_>>())
    });
    run(files.collect())
}

#[test]
fn a_profile_stays_compact() {
    let one = learn_all([&office_start(1)]);
    assert_eq!(one.files.iter().map(|f| f.ranges.len()).sum::<usize>(), 770);
    let same = learn_all([&office_start(1); 20]);
    assert_eq!(same.files.iter().map(|f| f.ranges.len()).sum::<usize>(), 770, "equal runs add nothing");
    let many = learn_all(&(0..50).map(office_start).collect::<Vec<_>>());
    let ranges = many.files.iter().map(|f| f.ranges.len()).sum::<usize>();
    assert!(ranges <= 3 * 770, "a boundary that moves by a page costs at most a range: {ranges}");
    let selected = wanted(&many);
    assert!(selected.files.iter().map(|f| f.ranges.len()).sum::<usize>() <= 770);
    assert_eq!(selected.files.len(), 413);
}

#[test]
fn more_than_a_profile_may_hold_is_cut_to_what_it_may_hold() {
    let sparse: Vec<Touch> = (0..400).map(|n| touch(2 * n, 2 * n + 1, 0)).collect();
    let files = (0..3000).map(|n| file(&format!("/{n:05}"), 1, &sparse)).collect();
    let p = learn_all([&run(files)]);
    assert!(p.files.len() > 2000);
    p.verify().unwrap();
}

fn touches() -> impl Strategy<Value = Vec<Touch>> {
    prop::collection::vec((0_u64..4, 1_u64..5, 0_u64..400), 0..8).prop_map(|steps| {
        let mut at = 0;
        steps
            .into_iter()
            .map(|(gap, len, ms)| {
                let t = touch(at + gap, at + gap + len, ms);
                at = t.pages.end;
                t
            })
            .collect()
    })
}

/// What the module promises, page by page.
fn model(runs: &[(Vec<Touch>, bool)]) -> BTreeMap<u64, u32> {
    let mut pages: BTreeMap<u64, u32> = BTreeMap::new();
    for (touches, lossy) in runs {
        if !lossy {
            for history in pages.values_mut() {
                *history = (*history << 1) & last(REMEMBERED);
            }
        }
        for page in touches.iter().flat_map(|t| t.pages.start..t.pages.end) {
            *pages.entry(page).or_default() |= 1;
        }
        pages.retain(|_, h| *h & last(FORGET_AFTER) != 0);
    }
    pages
}

proptest! {
    #[test]
    fn histories_are_page_exact_and_ranges_few(runs in prop::collection::vec((touches(), prop::bool::weighted(0.2)), 1..14)) {
        let recordings: Vec<Recording> = runs.iter().map(|(touches, lossy)| Recording {
            lost_events: u64::from(*lossy),
            ..run(vec![file("/a", 1, touches)])
        }).collect();
        let p = learn_all(&recordings);
        prop_assert!(p.verify().is_ok());
        let ranges: &[RangeUse] = p.files.first().map_or(&[], |f| &f.ranges);
        let got: BTreeMap<u64, u32> =
            ranges.iter().flat_map(|r| (r.pages.start..r.pages.end).map(|p| (p, r.history.0))).collect();
        prop_assert_eq!(got, model(&runs));
        prop_assert!(ranges.len() <= 2 * runs.iter().map(|(t, _)| t.len()).sum::<usize>());
        for w in ranges.windows(2).filter(|w| w[0].pages.end == w[1].pages.start && w[0].history == w[1].history) {
            prop_assert!(w[0].first_need.0.abs_diff(w[1].first_need.0) > 0, "{:?} could be one", w);
        }
    }

    #[test]
    fn any_recording_makes_a_valid_profile(
        raw in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>()), 0..6),
        size in any::<u64>(), fs in 0_u64..3, minor in 0_u32..3, page_shift in 12_u32..19,
        path in "(/|a|\\.|\u{0}){0,6}",
    ) {
        let touches: Vec<Touch> = raw.into_iter().map(|(s, e, t)| Touch { pages: PageRange { start: s, end: e }, at: Nanos(t) }).collect();
        let identity = FileIdentity { filesystem: fs, inode: 1, size, mtime: 0 };
        let file = RecordedFile { path: PathBuf::from(path), identity, touches: touches.clone() };
        let r = Recording {
            page_size: 1 << page_shift,
            files: vec![file.clone(), RecordedFile { path: "/x".into(), ..file.clone() }, file],
            devices: vec![device(fs, minor, &touches), device(0, minor, &touches), device(fs, minor, &touches)],
            ..run(vec![])
        };
        let once = learn(None, &app(), &r);
        prop_assert!(once.verify().is_ok(), "{:?}", once.verify());
        let twice = learn(Some(once), &app(), &r);
        prop_assert!(twice.verify().is_ok(), "{:?}", twice.verify());
    }
}
