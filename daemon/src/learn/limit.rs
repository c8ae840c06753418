//! Keeps a profile within the limits that its readers accept, whatever was recorded.

use std::cmp::Reverse;

use crate::learn::RECENT;
use crate::profile::{MAX_DEVICES, MAX_FILES, MAX_RANGES, Profile, RangeUse};

/// Leaves out files, then devices, until the profile is within its limits: first what the fewest recent runs used.
pub(super) fn limit(profile: &mut Profile) {
    keep_most_used(&mut profile.devices, |d| &d.ranges, MAX_DEVICES, MAX_RANGES / 4);
    let left = MAX_RANGES - profile.devices.iter().map(|d| d.ranges.len()).sum::<usize>();
    keep_most_used(&mut profile.files, |f| &f.ranges, MAX_FILES, left);
}

/// Keeps the order of what is kept.
fn keep_most_used<T>(
    items: &mut Vec<T>,
    ranges: impl Fn(&T) -> &Vec<RangeUse>,
    most: usize,
    most_ranges: usize,
) {
    let total: usize = items.iter().map(|i| ranges(i).len()).sum();
    if items.len() <= most && total <= most_ranges {
        return;
    }
    let use_of = |i: &usize| {
        let ranges = ranges(&items[*i]);
        let runs = ranges.iter().map(|r| r.history.among_last(RECENT)).max();
        (Reverse(runs), ranges.iter().map(|r| r.first_need).min())
    };
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(use_of);
    let mut budget = most_ranges;
    let mut kept = vec![false; items.len()];
    for i in order.into_iter().take(most) {
        let count = ranges(&items[i]).len();
        if count <= budget {
            budget -= count;
            kept[i] = true;
        }
    }
    let mut kept = kept.into_iter();
    items.retain(|_| kept.next().unwrap_or(false));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::History;
    use crate::recording::PageRange;
    use headstart_shared::units::Nanos;

    fn item(id: u32, ranges: usize, history: u32) -> (u32, Vec<RangeUse>) {
        let range = |i: u64| RangeUse {
            pages: PageRange { start: 2 * i, end: 2 * i + 1 },
            first_need: Nanos(u64::from(id)),
            history: History(history),
        };
        (id, (0..ranges as u64).map(range).collect())
    }

    #[test]
    fn the_least_used_is_left_out_and_the_order_kept() {
        let mut items =
            vec![item(0, 2, 1), item(1, 2, 0b111), item(2, 9, 0b11111), item(3, 2, 1), item(4, 1, 0b11)];
        keep_most_used(&mut items, |i| &i.1, 3, 100);
        assert_eq!(items.iter().map(|i| i.0).collect::<Vec<_>>(), [1, 2, 4]);
        keep_most_used(&mut items, |i| &i.1, 3, 4);
        assert_eq!(
            items.iter().map(|i| i.0).collect::<Vec<_>>(),
            [1, 4],
            "one that is too large does not stop the rest"
        );
    }
}
