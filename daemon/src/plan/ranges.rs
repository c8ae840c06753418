//! Arithmetic on sorted, disjoint page ranges with need times.

use headstart_shared::units::Nanos;

use super::Need;
use crate::recording::PageRange;

/// Makes ranges what the rest relies on: within `end`, not empty, sorted, disjoint. Overlapping ranges, which only a
/// damaged profile has, become one.
pub(super) fn clean(ranges: &[Need], end: u64) -> Vec<Need> {
    let clipped = ranges.iter().map(|need| Need {
        pages: PageRange { start: need.pages.start, end: need.pages.end.min(end) },
        at: need.at,
    });
    let mut sorted: Vec<Need> = clipped.filter(|need| !need.pages.is_empty()).collect();
    sorted.sort_by_key(|need| (need.pages.start, need.pages.end));
    sorted.dedup_by(|next, last| {
        let overlap = next.pages.start < last.pages.end;
        if overlap {
            last.pages.end = last.pages.end.max(next.pages.end);
            last.at = last.at.min(next.at);
        }
        overlap
    });
    sorted
}

/// Merges neighbours whose hole is at most `bridge` pages and for which `together` holds of their need times. Holes take
/// from `spare`, the pages that the budget has left; one that does not fit is not bridged.
pub(super) fn merge(
    ranges: &[Need],
    bridge: u64,
    spare: &mut u64,
    together: impl Fn(Nanos, Nanos) -> bool,
) -> Vec<Need> {
    let mut merged: Vec<Need> = Vec::with_capacity(ranges.len());
    for need in swallow_between(ranges, bridge) {
        let Some(last) = merged.last_mut() else {
            merged.push(need);
            continue;
        };
        let hole = need.pages.start - last.pages.end;
        if hole <= bridge && hole <= *spare && together(last.at, need.at) {
            *spare -= hole;
            last.pages.end = need.pages.end;
            last.at = last.at.min(need.at);
        } else {
            merged.push(need);
        }
    }
    merged
}

/// A range between two that are needed earlier, and so near each other that the hole between them would be bridged,
/// is read with them: leaving it for later would cost a request more to read less.
fn swallow_between(ranges: &[Need], bridge: u64) -> impl Iterator<Item = Need> + '_ {
    ranges.iter().enumerate().map(move |(i, need)| {
        let before = i.checked_sub(1).and_then(|before| ranges.get(before));
        let at = match (before, ranges.get(i + 1)) {
            (Some(before), Some(after)) if after.pages.start - before.pages.end <= bridge => {
                need.at.min(before.at.max(after.at))
            }
            _ => need.at,
        };
        Need { pages: need.pages, at }
    })
}

/// Cuts a range into pieces of at most `chunk` pages.
pub(super) fn chunks(pages: PageRange, chunk: u64) -> impl Iterator<Item = PageRange> {
    let chunk = chunk.max(1);
    (0..pages.len().div_ceil(chunk)).map(move |i| {
        let start = pages.start + i * chunk;
        PageRange { start, end: pages.end.min(start.saturating_add(chunk)) }
    })
}
