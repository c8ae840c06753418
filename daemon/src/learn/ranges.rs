//! Algebra on page ranges. Pure.
//!
//! Invariant of every list taken and returned here, unless a function says otherwise: ranges are not empty, sorted by
//! page, and disjoint. Neighbours may touch. One sweep, [`overlay`], carries all set operations; each is linear.

use crate::profile::RangeUse;
use crate::recording::{PageRange, Touch};

/// Something that covers pages.
pub trait Ranged {
    /// The pages covered.
    fn pages(&self) -> PageRange;
}

impl Ranged for PageRange {
    fn pages(&self) -> PageRange {
        *self
    }
}

impl Ranged for Touch {
    fn pages(&self) -> PageRange {
        self.pages
    }
}

impl Ranged for RangeUse {
    fn pages(&self) -> PageRange {
        self.pages
    }
}

/// Pages over which both lists say the same: what covers them on either side. At least one side does.
#[derive(Debug)]
pub struct Segment<'a, A, B> {
    /// The pages.
    pub pages: PageRange,
    /// What covers them in the left list.
    pub left: Option<&'a A>,
    /// What covers them in the right list.
    pub right: Option<&'a B>,
}

/// Lays two lists over each other and cuts at every boundary of either, so that each segment is covered by the same
/// elements from its first page to its last. Pages that neither list covers are in no segment.
pub fn overlay<'a, A: Ranged, B: Ranged>(left: &'a [A], right: &'a [B]) -> Vec<Segment<'a, A, B>> {
    let mut segments = Vec::with_capacity(left.len().max(right.len()));
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    let mut at = 0;
    loop {
        while left.next_if(|x| x.pages().end <= at).is_some() {}
        while right.next_if(|x| x.pages().end <= at).is_some() {}
        let l = left.peek().copied().map(|x| (x, x.pages()));
        let r = right.peek().copied().map(|x| (x, x.pages()));
        let start_l = l.map_or(u64::MAX, |(_, p)| p.start.max(at));
        let start_r = r.map_or(u64::MAX, |(_, p)| p.start.max(at));
        let start = start_l.min(start_r);
        if start == u64::MAX {
            return segments;
        }
        let covers_l = l.filter(|(_, p)| p.start <= start);
        let covers_r = r.filter(|(_, p)| p.start <= start);
        let end_l = covers_l.map_or(start_l, |(_, p)| p.end);
        let end_r = covers_r.map_or(start_r, |(_, p)| p.end);
        let pages = PageRange { start, end: end_l.min(end_r) };
        at = pages.end;
        segments.push(Segment { pages, left: covers_l.map(|(x, _)| x), right: covers_r.map(|(x, _)| x) });
    }
}

/// The pages in either list, in as few ranges as possible.
#[must_use]
pub fn union(a: &[PageRange], b: &[PageRange]) -> Vec<PageRange> {
    joined(overlay(a, b).into_iter().map(|s| s.pages), 0)
}

/// The pages in both lists, in as few ranges as possible.
#[must_use]
pub fn intersect(a: &[PageRange], b: &[PageRange]) -> Vec<PageRange> {
    joined(overlay(a, b).into_iter().filter(|s| s.left.is_some() && s.right.is_some()).map(|s| s.pages), 0)
}

/// The pages in `a` that are not in `b`, in as few ranges as possible.
#[must_use]
pub fn subtract(a: &[PageRange], b: &[PageRange]) -> Vec<PageRange> {
    joined(overlay(a, b).into_iter().filter(|s| s.right.is_none()).map(|s| s.pages), 0)
}

/// Joins ranges that are at most `hole` pages apart; the pages between them come along. With 0, only neighbours.
#[must_use]
pub fn bridge(ranges: &[PageRange], hole: u64) -> Vec<PageRange> {
    joined(ranges.iter().copied(), hole)
}

/// The number of pages in all.
pub fn pages<R: Ranged>(ranges: &[R]) -> u64 {
    ranges.iter().fold(0, |sum: u64, r| sum.saturating_add(r.pages().len()))
}

/// Whether a list keeps this module's invariant.
pub fn is_normal<R: Ranged>(ranges: &[R]) -> bool {
    ranges.iter().all(|r| !r.pages().is_empty())
        && ranges.windows(2).all(|w| w[0].pages().end <= w[1].pages().start)
}

fn joined(ranges: impl Iterator<Item = PageRange>, hole: u64) -> Vec<PageRange> {
    let mut out: Vec<PageRange> = Vec::new();
    for range in ranges {
        match out.last_mut() {
            Some(last) if range.start.saturating_sub(last.end) <= hole => last.end = last.end.max(range.end),
            _ => out.push(range),
        }
    }
    out
}

/// Makes any list of touches keep the invariant, and cuts it off at `limit` pages: sorted, empty ones dropped, and
/// what overlaps made one touch at the earlier of the times.
#[must_use]
pub fn normalise(touches: &[Touch], limit: u64) -> Vec<Touch> {
    let mut sorted: Vec<Touch> = touches
        .iter()
        .map(|t| Touch { pages: PageRange { start: t.pages.start, end: t.pages.end.min(limit) }, at: t.at })
        .filter(|t| !t.pages.is_empty())
        .collect();
    sorted.sort_by_key(|t| t.pages);
    let mut out: Vec<Touch> = Vec::with_capacity(sorted.len());
    for touch in sorted {
        match out.last_mut() {
            Some(last) if touch.pages.start < last.pages.end => {
                last.pages.end = last.pages.end.max(touch.pages.end);
                last.at = last.at.min(touch.at);
            }
            _ => out.push(touch),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use headstart_shared::units::Nanos;
    use proptest::prelude::*;

    use super::*;

    fn set(ranges: &[PageRange]) -> BTreeSet<u64> {
        ranges.iter().flat_map(|r| r.start..r.end).collect()
    }

    fn range(start: u64, end: u64) -> PageRange {
        PageRange { start, end }
    }

    prop_compose! {
        /// Gaps and lengths, so that neighbours that touch are as frequent as holes.
        fn list()(steps in prop::collection::vec((0_u64..4, 1_u64..6), 0..12)) -> Vec<PageRange> {
            let mut at = 0;
            steps.into_iter().map(|(gap, len)| {
                let r = range(at + gap, at + gap + len);
                at = r.end;
                r
            }).collect()
        }
    }

    proptest! {
        #[test]
        fn set_operations_agree_with_sets(a in list(), b in list()) {
            for (got, want) in [
                (union(&a, &b), &set(&a) | &set(&b)),
                (intersect(&a, &b), &set(&a) & &set(&b)),
                (subtract(&a, &b), &set(&a) - &set(&b)),
            ] {
                prop_assert!(is_normal(&got));
                prop_assert!(got.windows(2).all(|w| w[0].end < w[1].start), "neighbours are joined: {:?}", got);
                prop_assert_eq!(pages(&got), want.len() as u64);
                prop_assert_eq!(set(&got), want);
            }
        }

        #[test]
        fn an_overlay_says_of_each_page_what_covers_it(a in list(), b in list()) {
            let segments = overlay(&a, &b);
            prop_assert!(segments.windows(2).all(|w| w[0].pages.end <= w[1].pages.start));
            let covered: BTreeSet<u64> = segments.iter().flat_map(|s| s.pages.start..s.pages.end).collect();
            prop_assert_eq!(&covered, &(&set(&a) | &set(&b)));
            for s in &segments {
                prop_assert!(!s.pages.is_empty());
                for page in s.pages.start..s.pages.end {
                    let holds = |r: &&PageRange| (r.start..r.end).contains(&page);
                    prop_assert_eq!(s.left, a.iter().find(holds));
                    prop_assert_eq!(s.right, b.iter().find(holds));
                }
            }
        }

        #[test]
        fn a_bridge_fills_holes_up_to_its_length_and_no_other(a in list(), hole in 0_u64..5) {
            let got = bridge(&a, hole);
            prop_assert!(is_normal(&got));
            prop_assert!(got.windows(2).all(|w| w[1].start - w[0].end > hole));
            let mut want = set(&a);
            for w in a.windows(2).filter(|w| w[1].start - w[0].end <= hole) {
                want.extend(w[0].end..w[1].start);
            }
            prop_assert_eq!(set(&got), want);
        }

        #[test]
        fn any_touches_become_normal_and_lose_nothing_within_the_limit(
            raw in prop::collection::vec((0_u64..30, 0_u64..30, 0_u64..9), 0..12), limit in 0_u64..40,
        ) {
            let raw: Vec<Touch> =
                raw.into_iter().map(|(s, e, at)| Touch { pages: range(s, e), at: Nanos(at) }).collect();
            let got = normalise(&raw, limit);
            prop_assert!(is_normal(&got));
            let cover = |t: &[Touch]| set(&t.iter().map(|t| t.pages).collect::<Vec<_>>());
            prop_assert_eq!(cover(&got), cover(&raw).into_iter().filter(|p| *p < limit).collect());
            // No page is said to be needed later than it was.
            for t in raw.iter().filter(|t| !t.pages.is_empty() && t.pages.start < limit) {
                let holder = got.iter().find(|g| (g.pages.start..g.pages.end).contains(&t.pages.start));
                prop_assert!(holder.is_some_and(|g| g.at <= t.at));
            }
        }
    }

    #[test]
    fn the_last_page_number_is_no_special_case() {
        let top = [range(u64::MAX - 2, u64::MAX)];
        assert_eq!(union(&top, &[range(0, 1)]), [range(0, 1), top[0]]);
        assert_eq!(subtract(&top, &[range(u64::MAX - 1, u64::MAX)]), [range(u64::MAX - 2, u64::MAX - 1)]);
        assert_eq!(bridge(&[range(0, 1), top[0]], u64::MAX), [range(0, u64::MAX)]);
    }

    #[test]
    fn lists_that_break_the_invariant_are_told() {
        assert!(is_normal::<PageRange>(&[]));
        assert!(is_normal(&[range(0, 1), range(1, 2)]));
        assert!(!is_normal(&[range(0, 2), range(1, 3)]));
        assert!(!is_normal(&[range(4, 5), range(1, 3)]));
        assert!(!is_normal(&[range(3, 3)]));
    }
}
