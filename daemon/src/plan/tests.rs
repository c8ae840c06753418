use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;

use proptest::prelude::*;

use super::*;
use crate::drive::Flash;

const PAGE: u64 = 4096;
const MS: u64 = 1_000_000;
const ALL: Bytes = Bytes(u64::MAX);

fn need(start: u64, end: u64, ms: u64) -> Need {
    Need { pages: PageRange { start, end }, at: Nanos(ms * MS) }
}

fn file(name: &str, inode: u64, ranges: Vec<Need>) -> WantedFile {
    WantedFile {
        path: format!("/{name}").into(),
        identity: FileIdentity { filesystem: 1, inode, size: 10_000 * PAGE, mtime: 0 },
        first_need: ranges.iter().map(|n| n.at).min().unwrap_or(Nanos(u64::MAX)),
        ranges,
        extents: Vec::new(),
    }
}

fn device(ranges: Vec<Need>) -> WantedDevice {
    WantedDevice { device: DeviceNumber { major: 8, minor: 1 }, filesystem: 1, base: 0, ranges }
}

fn target(class: Class) -> Target {
    Target { name: "sda".to_owned(), class, max_readahead: Bytes(1 << 20) }
}

fn flash() -> (Target, Tuning) {
    let target = target(Class::Flash(Flash::Sata));
    (target.clone(), Tuning::for_target(&target))
}

fn spinning() -> (Target, Tuning) {
    let target = target(Class::Spinning);
    (target.clone(), Tuning::for_target(&target))
}

fn plan(wanted: &Wanted, (target, tuning): (Target, Tuning), budget: Bytes) -> Plan {
    Plan::new(wanted, PAGE, target, tuning, budget)
}

/// The steps in a short form: `m START-END`, `o NAME`, `NAME START-END`.
fn short(plan: &Plan) -> Vec<String> {
    let name = |file: u32| plan.files[file as usize].path.to_str().unwrap()[1..].to_owned();
    let step = |step: &Step| match step {
        Step::Metadata { pages, .. } => format!("m {}-{}", pages.start, pages.end),
        Step::Open { file } => format!("o {}", name(*file)),
        Step::Read { file, pages, .. } => format!("{} {}-{}", name(*file), pages.start, pages.end),
    };
    plan.steps.iter().map(step).collect()
}

#[test]
fn flash_reads_in_order_of_need_behind_the_structures() {
    let wanted = Wanted {
        files: vec![
            file("late", 1, vec![need(0, 2, 500)]),
            // 3..5 is near 0..2 but needed long after; 7..9 is near 3..5 in both.
            file("early", 2, vec![need(0, 2, 10), need(3, 5, 300), need(7, 9, 310)]),
            file("big", 3, vec![need(100, 180, 20)]),
            file("seen", 4, vec![]),
        ],
        devices: vec![device(vec![need(50, 51, 400), need(9, 10, 1), need(4, 5, 800)])],
    };
    let (target, tuning) = flash();
    let plan = plan(&wanted, (target, Tuning { open_ahead: 0, ..tuning }), ALL);
    let steps = [
        "m 4-10",
        "m 50-51",
        "o early",
        "early 0-2",
        "o big",
        "big 100-164",
        "big 164-180",
        "early 3-9",
        "o late",
        "late 0-2",
        "o seen",
    ];
    assert_eq!(short(&plan), steps);
    assert_eq!((plan.data(), plan.metadata()), (Bytes(90 * PAGE), Bytes(7 * PAGE)));
    assert_eq!(plan.left_out, Bytes(0));
}

#[test]
fn files_are_opened_ahead_of_being_read() {
    let files = (0..5).map(|n| file(&n.to_string(), 10 - n, vec![need(0, 1, n)])).collect();
    let wanted = Wanted { files, devices: vec![] };
    let (target, tuning) = flash();
    let ahead = |open_ahead| short(&plan(&wanted, (target.clone(), Tuning { open_ahead, ..tuning }), ALL));
    assert_eq!(ahead(2), ["o 0", "o 1", "o 2", "0 0-1", "o 3", "1 0-1", "o 4", "2 0-1", "3 0-1", "4 0-1"]);
    // All first: then nothing speaks against the order of the inodes.
    assert_eq!(ahead(u32::MAX)[..5], ["o 4", "o 3", "o 2", "o 1", "o 0"]);
}

fn at(file: WantedFile, places: &[(u64, u64, u64)]) -> WantedFile {
    let extents = places.iter().map(|&(offset, length, place)| Extent {
        offset: offset * PAGE,
        length: length * PAGE,
        physical: Some(place * PAGE),
        unwritten: false,
    });
    WantedFile { extents: extents.collect(), ..file }
}

#[test]
fn a_spinning_drive_is_swept_within_bins() {
    let wanted = Wanted {
        files: vec![
            at(file("far", 2, vec![need(0, 4, 0)]), &[(0, 4, 9000)]),
            at(file("split", 1, vec![need(0, 8, 100), need(20, 24, 110)]), &[(0, 4, 5000), (4, 60, 100)]),
            at(file("next", 3, vec![need(0, 2, 2500)]), &[(0, 2, 10)]),
        ],
        devices: vec![device(vec![need(3, 4, 5), need(7000, 7001, 2600)])],
    };
    let (target, tuning) = spinning();
    let plan_of = |metadata| short(&plan(&wanted, (target.clone(), Tuning { metadata, ..tuning }), ALL));
    assert_eq!(
        plan_of(MetadataOrder::First),
        [
            "m 3-4",
            "m 7000-7001",
            "o split",
            "o far",
            "split 4-24",
            "split 0-4",
            "far 0-4",
            "o next",
            "next 0-2"
        ]
    );
    assert_eq!(
        plan_of(MetadataOrder::RideAlong),
        [
            "m 3-4",
            "o split",
            "o far",
            "split 4-24",
            "split 0-4",
            "m 7000-7001",
            "far 0-4",
            "o next",
            "next 0-2"
        ]
    );
}

#[test]
fn an_extent_without_a_place_stays_with_what_is_before_it() {
    let mut odd = at(file("odd", 1, vec![need(0, 30, 0)]), &[(0, 10, 500), (10, 10, 0), (20, 10, 510)]);
    odd.extents[1].physical = None;
    let wanted = Wanted { files: vec![odd], devices: vec![] };
    assert_eq!(short(&plan(&wanted, spinning(), ALL)), ["o odd", "odd 0-20", "odd 20-30"]);
}

#[test]
fn a_plan_is_cut_by_what_is_needed_last() {
    let wanted = Wanted {
        files: vec![
            file("a", 1, vec![need(0, 10, 0), need(50, 60, 900)]),
            file("b", 2, vec![need(0, 10, 100)]),
            file("c", 3, vec![need(0, 10, 950)]),
        ],
        devices: vec![device(vec![need(0, 4, 50), need(900, 904, 900)])],
    };
    let (target, tuning) = flash();
    let plan = plan(&wanted, (target, Tuning { open_ahead: 0, ..tuning }), Bytes(30 * PAGE));
    assert_eq!(short(&plan), ["m 0-4", "m 900-904", "o a", "a 0-10", "o b", "b 0-10", "a 50-52"]);
    assert_eq!(plan.left_out, Bytes(18 * PAGE));
    let text = plan.to_string();
    assert!(text.contains("72.0 KiB left out for want of memory"), "{text}");
}

#[test]
fn holes_are_bridged_only_with_what_the_budget_has_left() {
    let wanted = Wanted {
        files: vec![file("a", 1, vec![need(0, 2, 0), need(4, 6, 0), need(9, 10, 0)])],
        devices: vec![],
    };
    let steps = |pages: u64| short(&plan(&wanted, flash(), Bytes(pages * PAGE)))[1..].to_vec();
    assert_eq!(steps(10), ["a 0-10"]);
    assert_eq!(steps(8), ["a 0-6", "a 9-10"]);
    assert_eq!(steps(5), ["a 0-2", "a 4-6", "a 9-10"]);
}

#[test]
fn one_budget_serves_several_drives() {
    let early = Wanted { files: vec![file("early", 1, vec![need(0, 10, 0)])], devices: vec![] };
    let late = Wanted { files: vec![file("late", 1, vec![need(0, 10, 9)])], devices: vec![] };
    let (fast, slow) = (flash(), spinning());
    let plans = plans(vec![(late, slow.0, slow.1), (early, fast.0, fast.1)], PAGE, Bytes(14 * PAGE));
    assert_eq!(plans.iter().map(Plan::data).collect::<Vec<_>>(), [Bytes(4 * PAGE), Bytes(10 * PAGE)]);
    assert_eq!(plans[0].left_out, Bytes(6 * PAGE));
}

#[test]
fn requests_are_no_larger_than_the_drive_takes() {
    let wanted = Wanted { files: vec![file("a", 1, vec![need(0, 5, 0)])], devices: vec![] };
    let target = Target { max_readahead: Bytes(2 * PAGE), ..target(Class::Spinning) };
    let plan = Plan::new(&wanted, PAGE, target, Tuning::for_class(Class::Spinning), ALL);
    assert_eq!(short(&plan)[1..], ["a 0-2", "a 2-4", "a 4-5"]);
}

#[test]
fn a_plan_can_be_stored_and_read() {
    let wanted = Wanted {
        files: vec![file("a", 1, vec![need(0, 5, 0)]), file("b", 2, vec![])],
        devices: vec![device(vec![need(0, 4, 50)])],
    };
    let mut plan = plan(&wanted, spinning(), ALL);
    plan.files[1].path = std::ffi::OsStr::from_bytes(b"/b\xff").into();
    let text = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
    insta::assert_snapshot!(plan, @r"
    sda, spinning: 2 files, 20.0 KiB of data in 1 requests, 16.0 KiB of metadata; by place within bins of 2.00 s, 1 thread, requests up to 512.0 KiB, holes up to 128.0 KiB bridged
      metadata                device 8:1 pages 0..4
      open                    /a
      read            0.0 ms  /a pages 0..5
      open                    /b\xff
    ");
}

#[test]
fn a_sweep_gives_only_what_it_changes() {
    let tuning: Tuning = serde_json::from_str(r#"{"workers": 9, "chunk": 65536}"#).unwrap();
    assert_eq!(tuning, Tuning { workers: 9, chunk: Bytes(65536), ..Tuning::default() });
}

prop_compose! {
    fn any_ranges()(pieces in prop::collection::vec((1..60_u64, 1..40_u64, 0..5000_u64), 0..20)) -> Vec<Need> {
        let mut start = 0;
        let next = |&(hole, length, ms): &(u64, u64, u64)| {
            let range = need(start + hole, start + hole + length, ms);
            start = range.pages.end;
            range
        };
        pieces.iter().map(next).collect()
    }
}

prop_compose! {
    fn any_file()(
        ranges in any_ranges(),
        inode in 0..1000_u64,
        size in 0..(700 * PAGE),
        places in prop::collection::vec((1..80_u64, 0..5000_u64, 0..4), 0..12),
    ) -> WantedFile {
        let mut offset = 0;
        let extents = places.iter().map(|&(length, place, kind)| {
            let extent = Extent {
                offset: offset * PAGE,
                length: length * PAGE,
                physical: (kind > 0).then_some(place * PAGE),
                unwritten: kind == 1,
            };
            // Some have a hole behind them.
            offset += length + u64::from(kind == 2) * 7;
            extent
        });
        let extents = extents.collect();
        let mut file = file(&inode.to_string(), inode, ranges);
        file.identity.size = size;
        WantedFile { extents, ..file }
    }
}

prop_compose! {
    fn any_wanted()(files in prop::collection::vec(any_file(), 0..8), device_ranges in any_ranges()) -> Wanted {
        Wanted { files, devices: vec![device(device_ranges)] }
    }
}

/// Every page of the ranges that a file of this size has.
fn pages_of(ranges: &[Need], size: u64) -> BTreeSet<u64> {
    let end = size.div_ceil(PAGE);
    ranges.iter().flat_map(|n| n.pages.start..n.pages.end.min(end)).collect()
}

/// Of the pages read, those of the wanted are all there, each is read once, and the rest is holes no larger than `bridge`.
fn check_cover(read: &[PageRange], wanted: &BTreeSet<u64>, bridge: u64) -> Result<(), TestCaseError> {
    let pages: Vec<u64> = read.iter().flat_map(|range| range.start..range.end).collect();
    let set: BTreeSet<u64> = pages.iter().copied().collect();
    prop_assert_eq!(pages.len(), set.len(), "a page is read twice");
    prop_assert!(wanted.is_subset(&set), "a wanted page is missing");
    let extra: Vec<u64> = set.difference(wanted).copied().collect();
    for hole in extra.chunk_by(|a, b| a + 1 == *b) {
        let (first, last) = (hole[0], hole[hole.len() - 1]);
        prop_assert!(hole.len() as u64 <= bridge, "a hole of {} is bridged", hole.len());
        let between = first > 0 && wanted.contains(&(first - 1)) && wanted.contains(&(last + 1));
        prop_assert!(between, "{first}..={last} is not between wanted pages");
    }
    Ok(())
}

proptest! {
    #[test]
    fn a_plan_covers_what_is_wanted_and_nothing_else(
        wanted in any_wanted(), spin in any::<bool>(), open_ahead in prop_oneof![0..9_u32, Just(u32::MAX)],
        ride_along in any::<bool>(),
    ) {
        let (target, tuning) = if spin { spinning() } else { flash() };
        let metadata = if ride_along { MetadataOrder::RideAlong } else { MetadataOrder::First };
        let tuning = Tuning { metadata, open_ahead, ..tuning };
        let plan = plan(&wanted, (target, tuning), ALL);
        prop_assert_eq!(plan.left_out, Bytes(0));
        prop_assert_eq!(plan.files.len(), wanted.files.len());
        let opens: BTreeSet<u32> =
            plan.steps.iter().filter_map(|s| if let Step::Open { file } = s { Some(*file) } else { None }).collect();
        prop_assert_eq!(opens.len(), wanted.files.len());
        prop_assert_eq!(plan.steps.iter().filter(|s| matches!(s, Step::Open { .. })).count(), opens.len());
        for step in &plan.steps {
            prop_assert!(step.pages() * PAGE <= tuning.chunk.0);
        }
        // Files of one inode may appear twice in this input, so they are matched by position in the sorted list.
        let mut sorted: Vec<&WantedFile> = wanted.files.iter().collect();
        sorted.sort_by_key(|f| {
            let end = f.identity.size.div_ceil(PAGE);
            let reached = f.ranges.iter().filter(|n| n.pages.start < end).map(|n| n.at).min();
            reached.map_or(f.first_need, |at| at.min(f.first_need))
        });
        for (number, file) in sorted.into_iter().enumerate() {
            prop_assert_eq!(&plan.files[number].path, &file.path);
            let read: Vec<PageRange> = plan.steps.iter().filter_map(|step| match step {
                Step::Read { file, pages, .. } if *file as usize == number => Some(*pages),
                _ => None,
            }).collect();
            let end = file.identity.size.div_ceil(PAGE);
            prop_assert!(read.iter().all(|range| range.end <= end && !range.is_empty()));
            check_cover(&read, &pages_of(&file.ranges, file.identity.size), tuning.bridge.0 / PAGE)?;
        }
        let read: Vec<PageRange> = plan.steps.iter().filter_map(|step| match step {
            Step::Metadata { pages, .. } => Some(*pages),
            _ => None,
        }).collect();
        let all = pages_of(&wanted.devices[0].ranges, u64::MAX);
        check_cover(&read, &all, tuning.metadata_bridge.0 / PAGE)?;
    }

    #[test]
    fn a_plan_is_never_over_budget_and_loses_what_is_needed_last(
        wanted in any_wanted(), spin in any::<bool>(), pages in 0..1500_u64,
    ) {
        let (target, tuning) = if spin { spinning() } else { flash() };
        let budget = Bytes(pages * PAGE + 17);
        let all = plan(&wanted, (target.clone(), Tuning { bridge: Bytes(0), metadata_bridge: Bytes(0), ..tuning }), ALL);
        let whole = all.data() + all.metadata();
        let plan = plan(&wanted, (target, tuning), budget);
        let used = plan.data() + plan.metadata();
        prop_assert!(used <= budget, "{used:?} of {budget:?}");
        if whole > budget {
            prop_assert_eq!(plan.left_out, whole - used);
            prop_assert!((budget - used).0 < PAGE, "the budget is used up");
        } else {
            prop_assert_eq!(plan.left_out, Bytes(0));
        }
    }

    #[test]
    fn a_cut_loses_what_is_needed_last(wanted in any_wanted(), pages in 0..1500_u64) {
        let by_need = |pages: u64| {
            let cut = budget::cut(vec![wanted.clone()], PAGE, pages);
            let files = cut.wanted.iter().flat_map(|w| &w.files).flat_map(|file| &file.ranges);
            let mut by_need = std::collections::BTreeMap::new();
            for need in files {
                *by_need.entry(need.at).or_insert(0) += need.pages.len();
            }
            by_need
        };
        let (whole, kept) = (by_need(u64::MAX), by_need(pages));
        let short = whole.iter().find(|(at, pages)| kept.get(at) != Some(pages)).map(|(at, _)| *at);
        let last = kept.keys().next_back().copied();
        prop_assert!(short.is_none_or(|short| last.is_none_or(|last| last <= short)), "{short:?} {last:?}");
    }

    #[test]
    fn damaged_ranges_are_made_good(ranges in prop::collection::vec((0..50_u64, 0..60_u64, 0..9_u64), 0..12), end in 0..40_u64) {
        let raw: Vec<Need> = ranges.iter().map(|&(start, end, at)| need(start, end, at)).collect();
        let clean = super::ranges::clean(&raw, end);
        prop_assert!(clean.windows(2).all(|pair| pair[0].pages.end <= pair[1].pages.start));
        prop_assert!(clean.iter().all(|n| !n.pages.is_empty() && n.pages.end <= end));
        let pages: BTreeSet<u64> = clean.iter().flat_map(|n| n.pages.start..n.pages.end).collect();
        let wanted: BTreeSet<u64> = raw.iter().flat_map(|n| n.pages.start..n.pages.end.min(end)).collect();
        prop_assert_eq!(pages, wanted);
    }
}
