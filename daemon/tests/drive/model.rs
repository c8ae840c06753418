//! The model alone: streams of reads in, moments of completion out.

use std::time::Duration;

use proptest::prelude::*;

use crate::drive::model::{Access, Model, Served};
use crate::drive::parameters::Kind;

const GIB: u64 = 1 << 30;

fn model(kind: Kind) -> Model<usize> {
    Model::new(kind.mechanism(), 6 * GIB)
}

/// Submits everything at its moment and takes everything, as a drive with a perfect clock would.
fn play(kind: Kind, stream: &[(Duration, Access)]) -> Vec<Served<usize>> {
    let mut model = model(kind);
    let mut served = Vec::new();
    let mut now = Duration::ZERO;
    for (tag, &(at, access)) in stream.iter().enumerate() {
        // To ask what is due commits the drive, so everything that arrives at one moment is handed over first.
        while at > now && model.due().is_some_and(|(due, _)| due < at) {
            served.extend(model.complete());
        }
        model.submit(at, access, tag);
        now = at;
    }
    while let Some(done) = model.complete() {
        served.push(done);
    }
    served
}

fn burst(offsets: impl IntoIterator<Item = u64>, length: u64) -> Vec<(Duration, Access)> {
    offsets.into_iter().map(|offset| (Duration::ZERO, Access { offset, length })).collect()
}

fn transfer(bytes: u64, kind: Kind) -> Duration {
    Duration::from_nanos(bytes * 1_000_000_000 / kind.mechanism().bytes_per_second())
}

fn last(served: &[Served<usize>]) -> Duration {
    served.iter().map(|s| s.at).max().unwrap_or_default()
}

#[test]
fn one_flash_read_takes_latency_and_transfer() {
    let served = play(Kind::Sata, &burst([0], 53_000));
    assert_eq!(last(&served), Duration::from_micros(110 + 100));
}

#[test]
fn flash_reads_overlap_as_far_as_there_are_channels() {
    let four = last(&play(Kind::Emmc, &burst((0..4).map(|i| i * 4096), 4096)));
    let five = last(&play(Kind::Emmc, &burst((0..5).map(|i| i * 4096), 4096)));
    assert!(four < Duration::from_micros(460), "{four:?}");
    assert!(five >= Duration::from_micros(700), "{five:?}");
}

#[test]
fn many_flash_reads_are_bound_by_the_link() {
    let took = last(&play(Kind::Nvme, &burst((0..3000).map(|i| i << 20), 1_000_000)));
    assert!((took.as_secs_f64() - 1.0).abs() < 0.001, "{took:?}");
}

#[test]
fn a_sequential_read_of_a_spinning_drive_runs_at_the_media_rate() {
    let served = play(Kind::Hdd, &burst((0..1200).map(|i| i * 100_000), 100_000));
    assert!(served.iter().all(|s| !s.sought));
    assert!(last(&served).abs_diff(Duration::from_secs(1)) < Duration::from_micros(2));
}

#[test]
fn a_small_hole_costs_no_more_than_its_bytes() {
    let with_hole = play(Kind::Hdd, &burst([0, 220_000], 100_000));
    assert_eq!(last(&with_hole), transfer(320_000, Kind::Hdd));
}

#[test]
fn scattered_reads_of_a_spinning_drive_cost_seek_and_rotation() {
    let stream: Vec<_> = (0..200_u64)
        .map(|i| {
            let offset = (i * 7919 % 1531) * (4 << 20);
            (Duration::from_millis(100 * i), Access { offset, length: 4096 })
        })
        .collect();
    let served = play(Kind::Hdd, &stream);
    let mean = served.iter().map(|s| s.at.saturating_sub(s.arrived)).sum::<Duration>() / 200;
    // A third of the stroke on average: 0.8 + 16.2 * E(sqrt) = about 9.4 ms, and half a turn of 8.3 ms.
    assert!((12.0..15.5).contains(&(mean.as_secs_f64() * 1e3)), "{mean:?}");
}

#[test]
fn the_nearest_request_is_served_first() {
    let order: Vec<_> =
        play(Kind::Hdd, &burst([3 * GIB, GIB, 2 * GIB, 0], 4096)).iter().map(|s| s.tag).collect();
    assert_eq!(order, [3, 1, 2, 0]);
}

#[test]
fn what_arrives_while_the_head_moves_does_not_divert_it() {
    let mut model = model(Kind::Hdd);
    model.submit(Duration::ZERO, Access { offset: 3 * GIB, length: 4096 }, 0);
    let (due, _) = model.due().unwrap();
    model.submit(Duration::from_micros(10), Access { offset: 0, length: 4096 }, 1);
    assert_eq!(model.due().unwrap().0, due);
    assert_eq!(model.complete().unwrap().tag, 0);
}

#[test]
fn busy_time_is_the_union_of_the_spans_outstanding() {
    let mut model = model(Kind::Sata);
    for (tag, at) in [0, 0, 10_000].into_iter().enumerate() {
        model.submit(Duration::from_micros(at), Access { offset: 0, length: 0 }, tag);
    }
    while model.complete().is_some() {}
    assert_eq!(model.busy(), Duration::from_micros(220));
}

proptest! {
    #[test]
    fn every_read_is_answered_once_in_order_and_never_early(
        kind in prop::sample::select(Kind::ALL.to_vec()),
        gaps in prop::collection::vec((0_u64..3_000_000, 0_u64..6 * GIB, 1_u64..1 << 20), 1..80),
    ) {
        let mut at = Duration::ZERO;
        let stream: Vec<_> = gaps.iter().map(|&(gap, offset, length)| {
            at += Duration::from_nanos(gap);
            (at, Access { offset, length })
        }).collect();
        let served = play(kind, &stream);
        let mut tags: Vec<_> = served.iter().map(|s| s.tag).collect();
        prop_assert!(served.windows(2).all(|w| w[0].at <= w[1].at));
        tags.sort_unstable();
        prop_assert_eq!(tags, (0..stream.len()).collect::<Vec<_>>());
        for s in &served {
            prop_assert!(s.at >= s.arrived + transfer(s.access.length, kind));
        }
        prop_assert_eq!(served, play(kind, &stream));
    }
}
