//! Putting what is wanted in order.

use std::collections::HashMap;

use headstart_shared::units::{Bytes, Nanos};

use super::{
    MetadataOrder, Need, Order, Plan, PlannedDevice, PlannedFile, Step, Target, Tuning, Wanted, WantedFile,
    budget, ranges,
};
use crate::recording::PageRange;
use crate::sys::fiemap::Extent;

pub(super) fn plan(wanted: &Wanted, page_size: u64, target: Target, tuning: Tuning, bytes: Bytes) -> Plan {
    let mut cut = budget::cut(vec![wanted.clone()], page_size, bytes.0 / page_size.max(1));
    let wanted = cut.wanted.pop().unwrap_or_default();
    let left_out = cut.left_out.pop().unwrap_or_default();
    order(&wanted, left_out, page_size, target, tuning, &mut cut.spare)
}

/// Orders what is wanted; its ranges are clean and within the budget, of which `spare` pages are left for holes.
pub(super) fn order(
    wanted: &Wanted,
    left_out: u64,
    page_size: u64,
    target: Target,
    tuning: Tuning,
    spare: &mut u64,
) -> Plan {
    let sizes = Sizes::of(&tuning, &target, page_size);
    // Files are numbered by first need: the order in which they are listed, and opened ahead of being read.
    let mut files: Vec<&WantedFile> = wanted.files.iter().collect();
    files.sort_by_key(|file| file.first_need);
    let metadata = metadata_pieces(wanted, &tuning, &sizes, spare);
    let data = data_pieces(&files, &tuning, &sizes, spare);
    let steps = match tuning.order {
        Order::Need { .. } => by_need(&files, metadata, data, &tuning),
        Order::Place { bin } => by_place(&files, metadata, data, &tuning, bin),
    };
    Plan {
        page_size,
        target,
        tuning,
        files: files.iter().map(|f| PlannedFile { path: f.path.clone(), identity: f.identity }).collect(),
        devices: wanted
            .devices
            .iter()
            .map(|d| PlannedDevice { device: d.device, filesystem: d.filesystem })
            .collect(),
        steps,
        left_out: Bytes(left_out.saturating_mul(page_size)),
    }
}

/// The tuning's bytes as pages.
struct Sizes {
    page: u64,
    chunk: u64,
    bridge: u64,
    metadata_bridge: u64,
}

impl Sizes {
    fn of(tuning: &Tuning, target: &Target, page_size: u64) -> Self {
        let page = page_size.max(1);
        Self {
            page,
            chunk: (tuning.chunk.min(target.max_readahead).0 / page).max(1),
            bridge: tuning.bridge.0 / page,
            metadata_bridge: tuning.metadata_bridge.0 / page,
        }
    }
}

/// One request-to-be and what it is ordered by.
#[derive(Clone, Copy, Debug)]
struct Piece {
    step: Step,
    at: Nanos,
    /// Where it is on the drive, in bytes.
    place: u64,
}

fn index(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

fn bin_of(at: Nanos, bin: Nanos) -> u64 {
    at.0 / bin.0.max(1)
}

fn together(order: Order) -> impl Fn(Nanos, Nanos) -> bool {
    move |a, b| match order {
        Order::Need { together } => a.0.abs_diff(b.0) <= together.0,
        Order::Place { bin } => bin_of(a, bin) == bin_of(b, bin),
    }
}

/// Structures: sorted by place on their device, holes bridged. Need times count only where they are spread over bins.
fn metadata_pieces(wanted: &Wanted, tuning: &Tuning, sizes: &Sizes, spare: &mut u64) -> Vec<Piece> {
    let spread = matches!((tuning.order, tuning.metadata), (Order::Place { .. }, MetadataOrder::RideAlong));
    let together = together(tuning.order);
    let mut pieces = Vec::new();
    for (device, wanted) in wanted.devices.iter().enumerate() {
        let merged =
            ranges::merge(&wanted.ranges, sizes.metadata_bridge, spare, |a, b| !spread || together(a, b));
        let base = wanted.base;
        for Need { pages, at } in merged {
            pieces.extend(ranges::chunks(pages, sizes.chunk).map(|pages| Piece {
                step: Step::Metadata { device: index(device), pages },
                at,
                place: pages.start.saturating_mul(sizes.page).saturating_add(base),
            }));
        }
    }
    pieces
}

/// Content: neighbours merged, then cut where the drive has it in several places, then cut into requests.
fn data_pieces(files: &[&WantedFile], tuning: &Tuning, sizes: &Sizes, spare: &mut u64) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (file, wanted) in files.iter().enumerate() {
        let file = index(file);
        let merged = ranges::merge(&wanted.ranges, sizes.bridge, spare, together(tuning.order));
        for Need { pages, at } in merged {
            for (pages, place) in places(pages, &wanted.extents, sizes.page, tuning.order) {
                let place_of = |chunk: PageRange| place + (chunk.start - pages.start) * sizes.page;
                pieces.extend(ranges::chunks(pages, sizes.chunk).map(|chunk| Piece {
                    step: Step::Read { file, pages: chunk, at },
                    at,
                    place: place_of(chunk),
                }));
            }
        }
    }
    pieces
}

/// Where pages are on the drive. What has no known place keeps to what is before it in the file.
fn places(pages: PageRange, extents: &[Extent], page: u64, order: Order) -> Vec<(PageRange, u64)> {
    if matches!(order, Order::Need { .. }) || extents.is_empty() {
        return vec![(pages, 0)];
    }
    let mut found: Vec<(PageRange, u64)> = Vec::new();
    let mut at = pages.start;
    while at < pages.end {
        let offset = at.saturating_mul(page);
        let next = extents.partition_point(|extent| extent.offset.saturating_add(extent.length) <= offset);
        let extent = extents.get(next);
        let inside = extent.filter(|extent| extent.offset < offset.saturating_add(page));
        let (end, place) = match inside {
            Some(extent) => {
                let end = extent.offset.saturating_add(extent.length).div_ceil(page);
                let place = extent.physical.map(|start| start + offset.saturating_sub(extent.offset));
                (end, place)
            }
            None => (extent.map_or(pages.end, |extent| extent.offset / page), None),
        };
        let piece = PageRange { start: at, end: end.clamp(at + 1, pages.end) };
        at = piece.end;
        match (found.last_mut(), place) {
            // In one piece on the drive, or without a place: one request as before.
            (Some((last, from)), place)
                if place.is_none_or(|place| place == *from + (piece.start - last.start) * page) =>
            {
                last.end = piece.end;
            }
            (_, place) => found.push((piece, place.unwrap_or(0))),
        }
    }
    found
}

fn by_need(files: &[&WantedFile], metadata: Vec<Piece>, data: Vec<Piece>, tuning: &Tuning) -> Vec<Step> {
    let mut steps = metadata_steps(metadata);
    let mut data = data;
    data.sort_by_key(|piece| piece.at);
    let ahead = tuning.open_ahead as usize;
    let mut opens = open_order(files, ahead == u32::MAX as usize).into_iter();
    if ahead >= files.len() {
        steps.extend(opens.by_ref());
    }
    // Files are numbered by first need, so reading file `n` for the first time calls for opening up to `n + ahead`.
    let mut opened = files.len() - opens.len();
    for piece in data {
        if let Step::Read { file, .. } = piece.step {
            let due = (file as usize).saturating_add(ahead).saturating_add(1).min(files.len());
            steps.extend(opens.by_ref().take(due.saturating_sub(opened)));
            opened = opened.max(due);
        }
        steps.push(piece.step);
    }
    steps.extend(opens);
    steps
}

fn by_place(
    files: &[&WantedFile],
    metadata: Vec<Piece>,
    data: Vec<Piece>,
    tuning: &Tuning,
    bin: Nanos,
) -> Vec<Step> {
    let ride_along = tuning.metadata == MetadataOrder::RideAlong;
    // Keyed by bin: the sweep of a bin is its data, and of the structures those that the next bin's files need.
    let mut sweeps: HashMap<u64, Vec<Piece>> = HashMap::new();
    let mut first = Vec::new();
    for piece in metadata {
        match bin_of(piece.at, bin).checked_sub(1) {
            Some(sweep) if ride_along => sweeps.entry(sweep).or_default().push(piece),
            _ => first.push(piece),
        }
    }
    let mut bins_of_files: HashMap<u64, Vec<usize>> = HashMap::new();
    let mut bin_of_file: Vec<u64> = files.iter().map(|file| bin_of(file.first_need, bin)).collect();
    for piece in data {
        let sweep = bin_of(piece.at, bin);
        if let Step::Read { file, .. } = piece.step
            && let Some(known) = bin_of_file.get_mut(file as usize)
        {
            *known = sweep.min(*known);
        }
        sweeps.entry(sweep).or_default().push(piece);
    }
    for (file, bin) in bin_of_file.into_iter().enumerate() {
        bins_of_files.entry(bin).or_default().push(file);
    }
    let mut bins: Vec<u64> = sweeps.keys().chain(bins_of_files.keys()).copied().collect();
    bins.sort_unstable();
    bins.dedup();

    let mut steps = metadata_steps(first);
    for bin in bins {
        let mut opens = bins_of_files.remove(&bin).unwrap_or_default();
        opens.sort_by_key(|&file| inode_order(files[file]));
        steps.extend(opens.into_iter().map(|file| Step::Open { file: index(file) }));
        let mut sweep = sweeps.remove(&bin).unwrap_or_default();
        sweep.sort_by_key(|piece| (piece.place, piece.at));
        steps.extend(sweep.into_iter().map(|piece| piece.step));
    }
    steps
}

fn metadata_steps(mut pieces: Vec<Piece>) -> Vec<Step> {
    pieces.sort_by_key(|piece| match piece.step {
        Step::Metadata { device, .. } => (device, piece.place),
        _ => (u32::MAX, piece.place),
    });
    pieces.into_iter().map(|piece| piece.step).collect()
}

/// By inode, which is the order of the inode tables on ext4 and nearly that of creation elsewhere.
fn inode_order(file: &WantedFile) -> (u64, u64) {
    (file.identity.filesystem, file.identity.inode)
}

fn open_order(files: &[&WantedFile], by_inode: bool) -> Vec<Step> {
    let mut order: Vec<usize> = (0..files.len()).collect();
    if by_inode {
        order.sort_by_key(|&file| inode_order(files[file]));
    }
    order.into_iter().map(|file| Step::Open { file: index(file) }).collect()
}
