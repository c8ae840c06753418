//! What a run used of what was planned for it.

use std::collections::HashMap;
use std::path::Path;

use headstart_shared::units::{Bytes, Pages};

use super::{Plan, Step};
use crate::learn::ranges;
use crate::recording::{PageRange, Recording, Touch};

/// Bytes of the plans' file content that a recording shows as touched.
#[must_use]
pub fn used(plans: &[Plan], recording: &Recording) -> Bytes {
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
