use super::*;
use crate::sample;
use crate::text::English;
use crate::units::Nanos;
use crate::words;

fn verdict(comparison: &Comparison) -> String {
    words::verdict(&comparison.summary().verdict, &English)
}

#[test]
fn a_clear_gain_is_claimed_with_its_interval() {
    let summary = sample::faster().summary();
    assert_eq!(verdict(&sample::faster()), "Faster by 3.30 s (3.18 – 3.51)");
    let gain = summary.gain.unwrap();
    assert!((gain.seconds.interval.level - 0.968_25).abs() < 1e-4, "five and five reach 96.8 %");
    assert_eq!(words::gained_share(&gain, &English).unwrap(), "52 % (50 – 53)");
    assert_eq!(words::gap_closed(summary.gap_closed, &English), "87 %");
    assert_eq!(summary.warnings, []);
    assert!((summary.used_share.unwrap() - 109.0 / 117.0).abs() < 1e-9);
}

#[test]
fn what_is_within_noise_is_not_claimed() {
    let none = sample::no_gain();
    assert!(verdict(&none).starts_with("No measurable gain: "), "{}", verdict(&none));
    assert!(none.summary().gap_closed.unwrap().abs() < 0.2, "the gap is real, nothing of it is closed");
    let flat = sample::comparison(&[100, 101, 99, 102], &[101, 100, 98, 103], &[100, 99, 101, 102]).summary();
    assert_eq!(flat.gap_closed, Err(NoGap::WithinNoise));
}

#[test]
fn a_loss_is_said_as_plainly_as_a_gain() {
    let troubled = sample::troubled();
    assert!(verdict(&troubled).starts_with("Slower by 10.0 ms (7.0 – "), "{}", verdict(&troubled));
    let warnings = troubled.summary().warnings;
    assert_eq!(
        warnings,
        [
            Warning::WarmNotFaster,
            Warning::LostEvents(12),
            Warning::StoppedEarly { complete: 5, asked: 6 },
            Warning::Outliers { condition: Condition::Prefetched, count: 1 },
            Warning::LeftOut(1),
            Warning::LittleUsed(23.0 / 117.0),
        ]
    );
}

#[test]
fn three_starts_are_too_few_and_four_are_enough() {
    let three = sample::comparison(&[600, 610, 605], &[300, 310, 305], &[200, 210, 205]);
    let said = "Too few starts to tell: 3 cold and 3 prefetched, 4 of each are needed";
    assert_eq!(verdict(&three), said);
    assert_eq!(three.summary().gap_closed, Err(NoGap::TooFew));
    assert!(three.summary().gain.is_some(), "the figure is still shown, without a claim");
    let many = [300, 310, 305, 302, 301, 307, 304, 303, 306, 308];
    let uneven = sample::comparison(&[600, 610, 605], &many, &many).summary();
    assert!(matches!(uneven.verdict, Verdict::Faster(_)));
    assert!(!uneven.warnings.iter().any(|one| matches!(one, Warning::TooFewRuns { .. })));
    let four = sample::comparison(&[600, 610, 605, 607], &[300, 310, 305, 302], &[200, 210, 205, 201]);
    assert!(matches!(four.summary().verdict, Verdict::Faster(_)));
}

#[test]
fn an_empty_comparison_has_no_figures_and_no_panic() {
    let empty = sample::comparison(&[], &[], &[]).summary();
    assert_eq!(empty.gain, None);
    assert_eq!(empty.gap_closed, Err(NoGap::NotMeasured));
    assert_eq!(empty.verdict, Verdict::TooFew { cold: 0, prefetched: 0, needed: 4 });
    assert_eq!(empty.warnings.len(), 3, "each condition has too few starts");
    let zero = sample::comparison(&[0, 0, 0, 0], &[0, 0, 0, 0], &[0]).summary();
    assert_eq!(zero.gain.unwrap().share, None);
}

#[test]
fn caches_that_were_not_cold_are_seen_in_what_the_start_read() {
    let mut sample = sample::faster();
    for run in &mut sample.runs {
        run.read = Some(Bytes(20 << 20));
    }
    let (read, planned) = (Bytes(20 << 20), Bytes(117 << 20));
    assert_eq!(sample.summary().warnings, [Warning::NotReallyCold { read, planned }]);
    sample.cold = ColdMethod::Boot;
    assert_eq!(sample.summary().warnings, []);
}

#[test]
fn extreme_times_are_survived() {
    let mut sample = sample::faster();
    sample.runs[0].time = Nanos(u64::MAX);
    sample.runs[1].time = Nanos(0);
    sample.prefetch.read = Bytes(u64::MAX);
    let _ = (sample.summary(), sample.to_csv(), sample.to_table(80), words::description(&sample, &English));
}
