//! The benchmark's own arithmetic: what it prints must be what was measured.

#![allow(clippy::unwrap_used, reason = "what cannot be set up is a failed test")]

#[path = "../../benches/launch/statistics.rs"]
mod statistics;

use headstart_shared::comparison::Comparison;
use headstart_shared::run::Condition;
use headstart_shared::units::Nanos;
use statistics::{Gain, Spread};

fn comparison(runs: &[(Condition, u64)]) -> Comparison {
    let runs: Vec<_> = runs
        .iter()
        .map(|(condition, millis)| {
            serde_json::json!({ "round": 1, "condition": condition, "time": millis * 1_000_000, "read": null })
        })
        .collect();
    serde_json::from_value(serde_json::json!({
        "format": 1, "version": "0", "began": "2026-01-01T00:00:00Z", "app": "x", "name": "x", "command": [],
        "milestone": "exit", "cold": "drop", "rounds": 1, "runs": runs, "left_out": [],
        "prefetch": { "files": 0, "ranges": 0, "planned": 0, "metadata": 0, "read": 0, "used": null, "time": null,
                      "learned_from": 0 },
        "drives": [], "host": { "kernel": "", "cpus": 1, "memory": 0 }, "remarks": [],
    }))
    .unwrap()
}

#[test]
fn the_median_of_an_even_number_lies_between_the_middle_two() {
    let spread = Spread::of([4, 1, 2, 3].map(|s| Nanos(s * 1_000_000_000))).unwrap();
    assert_eq!(spread, Spread { median: 2.5, least: 1.0, greatest: 4.0 });
    assert_eq!(Spread::of([]), None);
}

#[test]
fn the_gain_is_of_medians_and_of_the_gap() {
    use Condition::{Cold, Prefetched, Warm};
    let runs = [(Cold, 2000), (Cold, 9000), (Cold, 2000), (Prefetched, 1250), (Warm, 500), (Warm, 500)];
    let gain = Gain::of(&comparison(&runs)).unwrap();
    assert!((gain.ratio - 0.625).abs() < 1e-9);
    assert!((gain.gap_closed.unwrap() - 0.5).abs() < 1e-9);
    let slower = Gain::of(&comparison(&[(Cold, 1000), (Prefetched, 1200), (Warm, 500)])).unwrap();
    assert!(slower.gap_closed.unwrap() < 0.0);
    let gapless = Gain::of(&comparison(&[(Cold, 500), (Prefetched, 500), (Warm, 500)])).unwrap();
    assert_eq!(gapless.gap_closed, None);
}

#[test]
fn without_a_warm_start_there_is_no_gain_to_speak_of() {
    assert_eq!(Gain::of(&comparison(&[(Condition::Cold, 2000), (Condition::Prefetched, 1000)])), None);
}
