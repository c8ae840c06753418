//! Folding page-cache events into what was touched first when.

use std::collections::{BTreeMap, HashMap};

use headstart_shared::units::Nanos;

use super::event::{CacheKey, Kind, PageEvent};
use crate::recording::{PageRange, Touch};

/// Neighbouring pages first needed within this time of each other are one touch. A drive needs about as long for a
/// request, so a finer order could not be kept to.
const TOGETHER: Nanos = Nanos(4_000_000);

/// Pages and when each was first met. Events must come in order of time: what is there already stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FirstTouch {
    /// First page to the page after the last and the time. Disjoint.
    ranges: BTreeMap<u64, (u64, u64)>,
}

impl FirstTouch {
    /// Adds pages met at `time`; of pages met before, the earlier time stays.
    pub fn add(&mut self, pages: PageRange, time: u64) {
        let mut at = pages.start;
        if let Some((_, &(end, _))) = self.ranges.range(..=at).next_back() {
            at = at.max(end);
        }
        while at < pages.end {
            let next = self.ranges.range(at..pages.end).next().map(|(&start, &(end, _))| (start, end));
            let (gap_end, resume) = next.unwrap_or((pages.end, pages.end));
            if at < gap_end {
                self.put(at, gap_end, time);
            }
            at = resume;
        }
    }

    /// Puts a range in that is known to be free, as part of the one before it if they belong together.
    fn put(&mut self, start: u64, end: u64, time: u64) {
        if let Some((_, (last_end, at))) = self.ranges.range_mut(..start).next_back()
            && *last_end == start
            && time - *at <= TOGETHER.0
        {
            *last_end = end;
        } else {
            self.ranges.insert(start, (end, time));
        }
    }

    /// The pages met, sorted and disjoint.
    pub fn ranges(&self) -> impl Iterator<Item = (PageRange, u64)> + '_ {
        self.ranges.iter().map(|(&start, &(end, time))| (PageRange { start, end }, time))
    }

    /// The number of pages.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.ranges().map(|(pages, _)| pages.len()).sum()
    }

    /// Whether no page was met.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// What of it lies within `kept` (sorted, disjoint), with times counted from `start`.
    #[must_use]
    pub fn within(&self, kept: &[PageRange], start: u64) -> Vec<Touch> {
        let mut touches = Vec::new();
        for (pages, time) in self.ranges() {
            let first = kept.partition_point(|k| k.end <= pages.start);
            for k in kept[first..].iter().take_while(|k| k.start < pages.end) {
                let part = PageRange { start: pages.start.max(k.start), end: pages.end.min(k.end) };
                touches.push(Touch { pages: part, at: Nanos(time.saturating_sub(start)) });
            }
        }
        touches
    }
}

/// What is known of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileTouches {
    /// What was touched.
    pub touched: FirstTouch,
    /// What was brought in.
    pub added: FirstTouch,
}

/// Sorts events by file. They may come in any order.
///
/// A read whose last folio is still on its way from the drive is returned in part, and of that part the kernel tells
/// nothing (`filemap_get_pages` in mm/filemap.c): only of the rest, when it is read in turn. What the same thread brought
/// in right before that rest is the part, since reading ahead begins where reading does.
///
/// A fault on a page of a large folio maps the folio whole (`finish_fault` in mm/memory.c), so that its other pages are
/// used without another event: it counts whole, as far as it is known from being brought in.
#[must_use]
pub fn by_file(mut events: Vec<PageEvent>) -> HashMap<CacheKey, FileTouches> {
    // Each processor's events are in order already, which a stable sort makes use of.
    events.sort_by_key(|event| event.time);
    let mut files: HashMap<CacheKey, FileTouches> = HashMap::new();
    let mut brought_in: HashMap<(CacheKey, u32), PageRange> = HashMap::new();
    let mut folios: HashMap<CacheKey, BTreeMap<u64, u64>> = HashMap::new();
    for event in events {
        let file = files.entry(event.key).or_default();
        let thread = (event.key, event.pid);
        let mut pages = event.pages;
        match event.kind {
            Kind::Added => {
                file.added.add(pages, event.time);
                folios.entry(event.key).or_default().insert(pages.start, pages.end);
                let run = brought_in.entry(thread).or_insert(pages);
                *run = if run.end == pages.start { PageRange { end: pages.end, ..*run } } else { pages };
                continue;
            }
            Kind::Read => {
                if let Some(run) = brought_in.remove(&thread).filter(|run| run.end >= pages.start) {
                    pages.start = pages.start.min(run.start);
                }
            }
            Kind::Faulted => {
                let below = folios.get(&event.key).and_then(|f| f.range(..=pages.start).next_back());
                if let Some((&start, &end)) = below.filter(|(_, end)| **end > pages.start) {
                    pages = PageRange { start, end };
                }
            }
            Kind::Mapped => {}
        }
        file.touched.add(pages, event.time);
    }
    files
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn range(start: u64, end: u64) -> PageRange {
        PageRange { start, end }
    }

    #[test]
    fn the_first_time_stays() {
        let mut touch = FirstTouch::default();
        touch.add(range(4, 8), 0);
        touch.add(range(0, 10), 100_000_000);
        let found: Vec<_> = touch.ranges().collect();
        assert_eq!(found, [(range(0, 4), 100_000_000), (range(4, 8), 0), (range(8, 10), 100_000_000)]);
        assert_eq!(touch.len(), 10);
    }

    #[test]
    fn neighbours_needed_together_are_one() {
        let mut touch = FirstTouch::default();
        touch.add(range(0, 4), 0);
        touch.add(range(4, 8), TOGETHER.0);
        touch.add(range(8, 9), TOGETHER.0 + 1);
        assert_eq!(touch.ranges().collect::<Vec<_>>(), [(range(0, 8), 0), (range(8, 9), TOGETHER.0 + 1)]);
    }

    #[test]
    fn what_was_not_kept_is_cut_away() {
        let mut touch = FirstTouch::default();
        touch.add(range(0, 10), 7);
        touch.add(range(20, 30), 1_000_000_000);
        let kept = [range(2, 3), range(5, 22), range(40, 50)];
        let touches = touch.within(&kept, 5);
        let expected = [(range(2, 3), 2), (range(5, 10), 2), (range(20, 22), 999_999_995)]
            .map(|(pages, at)| Touch { pages, at: Nanos(at) });
        assert_eq!(touches, expected);
    }

    fn event(time: u64, pid: u32, kind: Kind, start: u64, end: u64) -> PageEvent {
        let device = crate::recording::DeviceNumber { major: 8, minor: 1 };
        PageEvent { time, pid, kind, key: CacheKey { device, inode: 1 }, pages: range(start, end) }
    }

    fn touched(events: Vec<PageEvent>) -> Vec<PageRange> {
        by_file(events).values().flat_map(|file| file.touched.ranges()).map(|(pages, _)| pages).collect()
    }

    #[test]
    fn a_read_that_was_returned_in_part_is_whole() {
        let read = vec![
            event(1, 7, Kind::Added, 4, 6),
            event(2, 7, Kind::Added, 6, 8),
            event(9, 7, Kind::Read, 7, 8),
        ];
        assert_eq!(touched(read), [range(4, 8)]);
    }

    #[test]
    fn what_was_brought_in_elsewhere_or_by_others_is_no_part_of_a_read() {
        let elsewhere = vec![event(1, 7, Kind::Added, 0, 2), event(9, 7, Kind::Read, 7, 8)];
        assert_eq!(touched(elsewhere), [range(7, 8)]);
        let others = vec![event(1, 8, Kind::Added, 4, 8), event(9, 7, Kind::Read, 7, 8)];
        assert_eq!(touched(others), [range(7, 8)]);
    }

    #[test]
    fn a_fault_counts_its_folio_and_no_other() {
        let added = [
            event(1, 7, Kind::Added, 0, 4),
            event(2, 7, Kind::Added, 4, 20),
            event(3, 8, Kind::Added, 20, 21),
        ];
        let fault =
            |page| added.iter().copied().chain([event(9, 7, Kind::Faulted, page, page + 1)]).collect();
        assert_eq!(touched(fault(16)), [range(4, 20)]);
        assert_eq!(touched(fault(20)), [range(20, 21)]);
        assert_eq!(touched(fault(30)), [range(30, 31)]);
    }

    proptest! {
        #[test]
        fn pages_keep_about_the_time_of_their_first_event(
            events in prop::collection::vec((0u64..60, 1u64..20, 0u64..9_000_000), 1..60)
        ) {
            let mut time = 0;
            let mut touch = FirstTouch::default();
            let mut model = BTreeMap::new();
            for (start, length, step) in events {
                time += step;
                touch.add(range(start, start + length), time);
                for page in start..start + length {
                    model.entry(page).or_insert(time);
                }
            }
            let mut found = BTreeMap::new();
            let mut end = 0;
            for (pages, at) in touch.ranges() {
                prop_assert!(pages.start >= end && !pages.is_empty());
                end = pages.end;
                found.extend((pages.start..pages.end).map(|page| (page, at)));
            }
            prop_assert!(model.keys().eq(found.keys()));
            for (page, at) in &found {
                prop_assert!(model[page] >= *at && model[page] - at <= TOGETHER.0);
            }
        }
    }
}
