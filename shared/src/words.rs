//! A comparison's figures in sentences: the one place where the terminal, the picture and the window get their words.

use crate::comparison::{Comparison, DriveSummary};
use crate::run::{ColdMethod, Condition, Milestone};
use crate::stats::{Estimate, Interval, Spread};
use crate::summary::{ConditionSummary, Gain, NoGap, Summary, Verdict, Warning};
use crate::text::{self, Labels, SpanFormat, fill};

/// The name of a condition as a heading.
#[must_use]
pub fn condition(condition: Condition, labels: &dyn Labels) -> String {
    match condition {
        Condition::Cold => labels.text("Cold"),
        Condition::Prefetched => labels.text("Cold, prefetched"),
        Condition::Warm => labels.text("Warm"),
    }
}

/// What was done before the starts of a condition.
#[must_use]
pub fn condition_meaning(condition: Condition, labels: &dyn Labels) -> String {
    match condition {
        Condition::Cold => labels.text("caches emptied, nothing read ahead"),
        Condition::Prefetched => labels.text("caches emptied, then read ahead"),
        Condition::Warm => labels.text("everything in memory"),
    }
}

/// What the times of this milestone are.
#[must_use]
pub fn milestone(milestone: Milestone, labels: &dyn Labels) -> String {
    match milestone {
        Milestone::FirstWindow => labels.text("Time from start to first window"),
        Milestone::Exit => labels.text("Time from start to exit"),
        Milestone::Settled => labels.text("Time from start until settled"),
    }
}

/// How cold was made, and what that means for the figures.
#[must_use]
pub fn cold_method(method: ColdMethod, labels: &dyn Labels) -> String {
    match method {
        ColdMethod::Evict => labels.text(
            "Cold was made by evicting only this app’s files from memory (evict). Files that other programs hold stay cached, so a true cold start is slower.",
        ),
        ColdMethod::Drop => labels.text(
            "Cold was made by dropping the caches of the whole machine (drop). What running programs hold stays in memory, so a true cold start is slower.",
        ),
        ColdMethod::Boot => {
            labels.text("Cold starts were the first ones after a boot: truly cold, nothing had to be emptied.")
        }
    }
}

/// The claim in one sentence: `Faster by 1.20 s (0.90 – 1.50)`.
#[must_use]
pub fn verdict(verdict: &Verdict, labels: &dyn Labels) -> String {
    match verdict {
        Verdict::Faster(gain) => by(&labels.text("Faster by {time} ({low} – {high})"), gain.seconds, labels),
        Verdict::Slower(gain) => {
            let Interval { low, high, level } = gain.seconds.interval;
            let turned = Interval { low: -high, high: -low, level };
            let loss = Estimate { value: -gain.seconds.value, interval: turned };
            by(&labels.text("Slower by {time} ({low} – {high})"), loss, labels)
        }
        Verdict::NoMeasurableGain(gain) => {
            by(&labels.text("No measurable gain: {time} ({low} – {high})"), gain.seconds, labels)
        }
        Verdict::TooFew { cold, prefetched, needed } => fill(
            &labels.text("Too few starts to tell: {cold} cold and {prefetched} prefetched, {needed} of each are needed"),
            &[("cold", &cold.to_string()), ("prefetched", &prefetched.to_string()), ("needed", &needed.to_string())],
        ),
    }
}

fn by(template: &str, estimate: Estimate, labels: &dyn Labels) -> String {
    let Interval { low, high, .. } = estimate.interval;
    let format = suiting(estimate);
    fill(
        template,
        &[
            ("time", &format.with_unit(estimate.value, labels)),
            ("low", &format.number(low, labels)),
            ("high", &format.number(high, labels)),
        ],
    )
}

/// The unit of the middle one of three figures: neither an end at zero nor one that an outlier has drawn far out decides.
fn suiting(estimate: Estimate) -> SpanFormat {
    let mut sizes = [estimate.value, estimate.interval.low, estimate.interval.high].map(f64::abs);
    sizes.sort_by(f64::total_cmp);
    SpanFormat::suiting(&sizes[1..2])
}

/// The seconds gained with their interval and its level (none for one start of each): `3.30 s (2.90 – 3.60 s, 96.8 % interval)`.
#[must_use]
pub fn gained_time(gain: &Gain, labels: &dyn Labels) -> String {
    let Interval { low, high, level } = gain.seconds.interval;
    let format = suiting(gain.seconds);
    if level <= 0.0 {
        return format.with_unit(gain.seconds.value, labels);
    }
    fill(
        &labels.text("{value} ({range}, {level} interval)"),
        &[
            ("value", &format.with_unit(gain.seconds.value, labels)),
            ("range", &format.range(low, high, labels)),
            ("level", &text::level(level, labels)),
        ],
    )
}

/// The share of the cold start that was gained, with its interval: `51 % (47 – 55)`; `None` if there is none.
#[must_use]
pub fn gained_share(gain: &Gain, labels: &dyn Labels) -> Option<String> {
    let share = gain.share?;
    let number = |share: f64| text::number(share * 100.0, 0, labels);
    if share.interval.level <= 0.0 {
        return Some(text::percent(share.value, labels));
    }
    Some(fill(
        &labels.text("{value} ({low} – {high})"),
        &[
            ("value", &text::percent(share.value, labels)),
            ("low", &number(share.interval.low)),
            ("high", &number(share.interval.high)),
        ],
    ))
}

/// The share of the gap closed, or why there is none.
#[must_use]
pub fn gap_closed(closed: Result<f64, NoGap>, labels: &dyn Labels) -> String {
    match closed {
        Ok(share) => text::percent(share, labels),
        Err(NoGap::NotMeasured) => labels.text("not known: a condition was not measured"),
        Err(NoGap::TooFew) => labels.text("not known: too few starts"),
        Err(NoGap::WithinNoise) => {
            labels.text("none to close: cold starts are not measurably slower than warm ones")
        }
    }
}

/// What the two ends of a spread are.
#[must_use]
pub fn spread_kind(spread: &Spread, labels: &dyn Labels) -> String {
    match spread {
        Spread::Interval(interval) => fill(
            &labels.text("{level} interval of the median"),
            &[("level", &text::level(interval.level, labels))],
        ),
        Spread::Range { .. } => labels.text("range"),
    }
}

/// A condition's figures in one sentence, for those who cannot see the picture.
#[must_use]
pub fn condition_figures(one: &ConditionSummary, labels: &dyn Labels) -> String {
    let name = condition(one.condition, labels);
    let (Some(median), Some(spread)) = (one.median, one.spread) else {
        return fill(&labels.text("{condition}: no starts."), &[("condition", &name)]);
    };
    let (low, high) = spread.ends();
    let format = SpanFormat::suiting(&[median, low, high]);
    let count = one.times.len();
    let template = labels.plural(
        "{condition}: {median}, one start.",
        "{condition}: median {median}, {kind} {range}, {count} starts.",
        count as u64,
    );
    fill(
        &template,
        &[
            ("condition", &name),
            ("median", &format.with_unit(median, labels)),
            ("kind", &spread_kind(&spread, labels)),
            ("range", &format.range(low, high, labels)),
            ("count", &count.to_string()),
        ],
    )
}

/// What was read ahead: bytes, files and the part used.
#[must_use]
pub fn read_ahead(comparison: &Comparison, summary: &Summary, labels: &dyn Labels) -> String {
    let files = comparison.prefetch.files;
    let amount = fill(
        &labels.plural("{bytes} from one file", "{bytes} from {files} files", files),
        &[("bytes", &text::bytes(summary.read_ahead, labels)), ("files", &files.to_string())],
    );
    match summary.used_share {
        Some(share) => fill(
            &labels.text("{amount}, {share} of it used by the start"),
            &[("amount", &amount), ("share", &text::percent(share, labels))],
        ),
        None => amount,
    }
}

/// A drive in words: `sda, flash, scheduler mq-deadline`.
#[must_use]
pub fn drive(drive: &DriveSummary, labels: &dyn Labels) -> String {
    let class = match drive.class.as_str() {
        "flash" => labels.text("flash"),
        "spinning" => labels.text("spinning"),
        other => text::clean(other),
    };
    let name = match &drive.model {
        Some(model) => format!("{} ({})", text::clean(model.trim()), text::clean(&drive.name)),
        None => text::clean(&drive.name),
    };
    match &drive.scheduler {
        Some(scheduler) => fill(
            &labels.text("{name}, {class}, scheduler {scheduler}"),
            &[("name", &name), ("class", &class), ("scheduler", &text::clean(scheduler))],
        ),
        None => fill(&labels.text("{name}, {class}"), &[("name", &name), ("class", &class)]),
    }
}

/// What is between a reader and a conclusion, in one sentence.
#[must_use]
pub fn warning(warning: &Warning, labels: &dyn Labels) -> String {
    let count = |n: usize| n.to_string();
    match warning {
        Warning::NotReallyCold { read, planned } => fill(
            &labels.text("Cold starts read only {read} from the drive, the profile holds {planned}: the caches were not really cold, so the gain is understated."),
            &[("read", &text::bytes(*read, labels)), ("planned", &text::bytes(*planned, labels))],
        ),
        Warning::WarmNotFaster => labels.text(
            "Warm starts are not faster than cold ones: this start does not wait for the drive, so reading ahead has nothing to gain.",
        ),
        Warning::LostEvents(lost) => fill(
            &labels.plural(
                "The recorder lost one event: the profile may lack pages.",
                "The recorder lost {lost} events: the profile may lack pages.",
                *lost,
            ),
            &[("lost", &lost.to_string())],
        ),
        Warning::StoppedEarly { complete, asked } => fill(
            &labels.plural(
                "Stopped early: {complete} of {asked} round is complete.",
                "Stopped early: {complete} of {asked} rounds are complete.",
                u64::from(*asked),
            ),
            &[("complete", &complete.to_string()), ("asked", &asked.to_string())],
        ),
        Warning::TooFewRuns { condition: which, runs, needed } => fill(
            &labels.plural(
                "{condition}: {runs} start is too few to tell, {needed} are needed.",
                "{condition}: {runs} starts are too few to tell, {needed} are needed.",
                *runs as u64,
            ),
            &[("condition", &condition(*which, labels)), ("runs", &count(*runs)), ("needed", &count(*needed))],
        ),
        Warning::Outliers { condition: which, count: n } => fill(
            &labels.plural(
                "{condition}: one start is far from the others. Something else may have run; medians hardly feel it.",
                "{condition}: {count} starts are far from the others. Something else may have run; medians hardly feel it.",
                *n as u64,
            ),
            &[("condition", &condition(*which, labels)), ("count", &count(*n))],
        ),
        Warning::LeftOut(n) => fill(
            &labels.plural("One start does not count.", "{count} starts do not count.", *n as u64),
            &[("count", &count(*n))],
        ),
        Warning::LittleUsed(share) => fill(
            &labels.text("The start used only {share} of what was read ahead."),
            &[("share", &text::percent(*share, labels))],
        ),
    }
}

/// Every remark on a comparison: warnings, the reasons of starts that do not count, and what the measuring side noted.
#[must_use]
pub fn remarks(comparison: &Comparison, summary: &Summary, labels: &dyn Labels) -> Vec<String> {
    let warnings = summary.warnings.iter().map(|one| warning(one, labels));
    let left_out = comparison.left_out.iter().map(|one| {
        let template = match one.round {
            0 => labels.text("Learning start does not count: {reason}"),
            _ => labels.text("Round {round}, {condition}, does not count: {reason}"),
        };
        let name = condition(one.condition, labels);
        let reason = text::clean(&one.reason);
        fill(&template, &[("round", &one.round.to_string()), ("condition", &name), ("reason", &reason)])
    });
    let noted = comparison.remarks.iter().map(|remark| text::clean(remark));
    warnings.chain(left_out).chain(noted).collect()
}

/// The name of what was started, safe to show; the app ID where the name is blank.
#[must_use]
pub fn name(comparison: &Comparison) -> String {
    let name = text::clean(comparison.name.trim());
    if name.is_empty() { text::clean(&comparison.app.0) } else { name }
}

/// The picture in words: the verdict and every condition's figures.
#[must_use]
pub fn description(comparison: &Comparison, labels: &dyn Labels) -> String {
    let summary = comparison.summary();
    let mut parts = vec![
        format!("{}.", verdict(&summary.verdict, labels)),
        format!("{}.", milestone(comparison.milestone, labels)),
    ];
    parts.extend(summary.conditions.iter().map(|one| condition_figures(one, labels)));
    parts.push(fill(
        &labels.text("Gap between cold and warm closed: {gap}."),
        &[("gap", &gap_closed(summary.gap_closed, labels))],
    ));
    parts.push(cold_method(comparison.cold, labels));
    parts.join(" ")
}
