//! Keeping within a budget: what is needed last is cut first, wherever it is.

use headstart_shared::units::{Bytes, Nanos};

use super::{Plan, Target, Tuning, Wanted, ranges};
use crate::recording::PageRange;

/// What is wanted, cut to a number of pages.
#[derive(Debug)]
pub(super) struct Cut {
    /// What is left of it: clean ranges ([`ranges::clean`]).
    pub(super) wanted: Vec<Wanted>,
    /// Pages that are left of the budget.
    pub(super) spare: u64,
    /// Pages that were cut, from each.
    pub(super) left_out: Vec<u64>,
}

/// Cuts what is wanted, from any number of drives together, to at most `budget` pages. Of what is needed at the same
/// time, structures stay before content, since content cannot be reached without them.
pub(super) fn cut(wanted: Vec<Wanted>, page_size: u64, budget: u64) -> Cut {
    let mut wanted = wanted;
    for one in &mut wanted {
        clean(one, page_size);
    }
    let total = |one: &Wanted| every_range(one).map(|need| need.pages.len()).sum::<u64>();
    let before: Vec<u64> = wanted.iter().map(total).collect();
    let sum = before.iter().fold(0_u64, |sum, pages| sum.saturating_add(*pages));
    if sum <= budget {
        return Cut { left_out: vec![0; wanted.len()], wanted, spare: budget - sum };
    }
    let (last, mut room) = last_that_fits(&wanted, budget);
    for one in &mut wanted {
        cut_after(one, last, &mut room);
    }
    let left_out = before.iter().zip(&wanted).map(|(pages, one)| pages - total(one)).collect();
    Cut { wanted, spare: 0, left_out }
}

/// The plans for several drives within one budget.
pub(super) fn share(wanted: Vec<(Wanted, Target, Tuning)>, page_size: u64, budget: Bytes) -> Vec<Plan> {
    let mut targets = Vec::with_capacity(wanted.len());
    let mut wants = Vec::with_capacity(wanted.len());
    for (one, target, tuning) in wanted {
        wants.push(one);
        targets.push((target, tuning));
    }
    let cut = cut(wants, page_size, budget.0 / page_size.max(1));
    let mut spare = cut.spare;
    let parts = cut.wanted.iter().zip(cut.left_out).zip(targets);
    parts
        .map(|((wanted, left_out), (target, tuning))| {
            super::order::order(wanted, left_out, page_size, target, tuning, &mut spare)
        })
        .collect()
}

fn clean(wanted: &mut Wanted, page_size: u64) {
    for file in &mut wanted.files {
        file.ranges = ranges::clean(&file.ranges, file.identity.size.div_ceil(page_size.max(1)));
        let first_range = file.ranges.iter().map(|need| need.at).min();
        file.first_need = first_range.map_or(file.first_need, |at| at.min(file.first_need));
    }
    for device in &mut wanted.devices {
        device.ranges = ranges::clean(&device.ranges, u64::MAX / page_size.max(1));
    }
}

fn every_range(wanted: &Wanted) -> impl Iterator<Item = &super::Need> {
    let devices = wanted.devices.iter().flat_map(|device| &device.ranges);
    devices.chain(wanted.files.iter().flat_map(|file| &file.ranges))
}

/// The latest need time of which anything fits, and how many pages needed at exactly that time do.
fn last_that_fits(wanted: &[Wanted], budget: u64) -> (Nanos, u64) {
    let mut needs: Vec<(Nanos, u64)> =
        wanted.iter().flat_map(every_range).map(|need| (need.at, need.pages.len())).collect();
    needs.sort_unstable();
    let mut used = 0_u64;
    for same_time in needs.chunk_by(|a, b| a.0 == b.0) {
        let pages = same_time.iter().fold(0_u64, |sum, (_, pages)| sum.saturating_add(*pages));
        if used.saturating_add(pages) > budget {
            return (same_time[0].0, budget - used);
        }
        used += pages;
    }
    (Nanos(u64::MAX), budget - used)
}

fn cut_after(wanted: &mut Wanted, last: Nanos, room: &mut u64) {
    let Wanted { files, devices } = wanted;
    let devices = devices.iter_mut().map(|device| &mut device.ranges);
    for ranges in devices.chain(files.iter_mut().map(|file| &mut file.ranges)) {
        ranges.retain_mut(|need| {
            if need.at < last {
                return true;
            }
            if need.at > last {
                return false;
            }
            let fits = need.pages.len().min(*room);
            *room -= fits;
            need.pages = PageRange { start: need.pages.start, end: need.pages.start + fits };
            fits > 0
        });
    }
    devices_and_files_left(wanted, last);
}

/// Devices without a range go, and so do files that are wanted later than the cut or of which everything was cut.
fn devices_and_files_left(wanted: &mut Wanted, last: Nanos) {
    wanted.devices.retain(|device| !device.ranges.is_empty());
    wanted.files.retain(|file| !file.ranges.is_empty() || file.first_need < last);
}
