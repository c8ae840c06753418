//! What rounds and recordings come to in figures and words.

use std::collections::HashMap;
use std::path::Path;

use headstart_shared::comparison::{Host, PrefetchAccount};
use headstart_shared::run::ColdMethod;
use headstart_shared::stats::median;
use headstart_shared::units::{Bytes, Nanos, Pages};

use super::work::Rounds;
use crate::learn::ranges;
use crate::measure::prefetch::Prefetch;
use crate::plan::{Plan, Step};
use crate::profile::Profile;
use crate::recording::{PageRange, Recording, Touch};
use crate::replay;
use crate::replay::guard::Memory;
use crate::roots::Roots;

/// What the prefetched starts read ahead.
pub(super) fn account(prefetch: &Prefetch, rounds: &Rounds, profile: &Profile) -> PrefetchAccount {
    let of = |value: fn(&replay::Account) -> u64| {
        #[expect(clippy::cast_precision_loss, reason = "bytes and nanoseconds below 2^52")]
        let values: Vec<f64> = rounds.replays.iter().map(|replay| value(replay) as f64).collect();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it was a u64")]
        median(&values).map(|value| value as u64)
    };
    let reads = |plan: &Plan| plan.steps.iter().filter(|step| matches!(step, Step::Read { .. })).count();
    PrefetchAccount {
        files: prefetch.plans.iter().map(|plan| plan.files.len() as u64).sum(),
        ranges: prefetch.plans.iter().map(|plan| reads(plan) as u64).sum(),
        planned: prefetch.data(),
        metadata: prefetch.metadata(),
        read: Bytes(of(|replay| replay.data.brought_in().0).unwrap_or_default()),
        used: None,
        time: of(|replay| replay.time.unwrap_or_default().0).map(Nanos),
        learned_from: profile.runs,
        lost_events: 0,
    }
}

/// The machine.
pub(super) fn host(roots: &Roots) -> Host {
    let uname = rustix::system::uname();
    let cpus = std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX));
    Host { kernel: uname.release().to_string_lossy().into_owned(), cpus, memory: Memory::now(roots).total }
}

/// Bytes of file content that a run touched.
pub(super) fn touched(recording: &Recording) -> Bytes {
    let pages =
        recording.files.iter().flat_map(|file| &file.touches).map(|touch| Pages(touch.pages.len())).sum();
    Pages::bytes(pages, recording.page_size)
}

/// Bytes of the plans' file content that a recording shows as touched.
pub(super) fn used(plans: &[Plan], recording: &Recording) -> Bytes {
    let recorded: HashMap<&Path, &[Touch]> =
        recording.files.iter().map(|file| (file.path.as_path(), file.touches.as_slice())).collect();
    let pages = plans.iter().flat_map(|plan| plan.steps.iter().map(move |step| (plan, step)));
    let pages = pages.map(|(plan, step)| {
        let Step::Read { file, pages, .. } = step else { return 0 };
        let file = plan.files.get(*file as usize);
        let seen = file.and_then(|file| recorded.get(file.path.as_path())).copied().unwrap_or_default();
        let touches: Vec<PageRange> = seen.iter().map(|touch| touch.pages).collect();
        ranges::pages(&ranges::intersect(&[*pages], &touches))
    });
    Pages(pages.sum()).bytes(recording.page_size)
}

#[expect(clippy::cast_precision_loss, reason = "a share needs no more than 52 bits")]
pub(super) fn share(part: Bytes, whole: Bytes) -> f64 {
    if whole == Bytes(0) { 0.0 } else { part.0 as f64 / whole.0 as f64 }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of it"
)]
pub(super) fn scale(bytes: Bytes, share: f64) -> Bytes {
    Bytes((bytes.0 as f64 * share.clamp(0.0, 1.0)) as u64)
}

/// What a reader needs to know to judge the figures.
pub(super) fn remarks(
    cold: ColdMethod,
    found_cold: Option<Nanos>,
    prefetch: &Prefetch,
    rounds: &Rounds,
) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(at) = found_cold {
        remarks.push(format!(
            "The very first start took {at} and found nearly nothing in memory: that is a true cold start, \
             and no way of emptying caches quite makes one."
        ));
    }
    if cold == ColdMethod::Evict
        && let Some(left) = median(&rounds.left_cached).filter(|left| *left >= 0.05)
    {
        remarks.push(format!(
            "{:.0} % of the app's files stayed in memory when its caches were emptied, because other programs use \
             them, as in daily use. --cold=drop empties more.",
            left * 100.0
        ));
    }
    let failures = rounds.replays.iter().flat_map(|replay| &replay.remarks).chain(&prefetch.remarks);
    for remark in failures {
        if !remarks.contains(remark) {
            remarks.push(remark.clone());
        }
    }
    if let Some(stopped) = rounds.replays.iter().find_map(|replay| replay.stopped) {
        let cancelled = stopped == replay::Stopped::Cancelled;
        let text = if cancelled {
            "A replay was still reading when its start was over and the program was ended.".into()
        } else {
            format!("A replay stopped before its end: {stopped}.")
        };
        remarks.push(text);
    }
    if let Some(skipped) = rounds.replays.iter().find_map(|replay| replay.skipped.first()) {
        remarks.push(format!(
            "Not everything could be read ahead: {} {}.",
            skipped.path.display(),
            skipped.why
        ));
    }
    remarks
}
