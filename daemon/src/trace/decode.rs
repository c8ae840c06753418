//! From an instance's raw pages to events, and how many are missing.

use super::event::{Decoder, Kind, PageEvent};
use super::format::PageLayout;
use super::pipes::Pages;
use super::ring::{Missed, Page};
use super::tracefs::Counts;

/// What pages hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// Their events, in order for each processor.
    pub events: Vec<PageEvent>,
    /// How many events are missing, of whatever kind.
    pub lost: u64,
}

/// All events of the pages, of which the kernel says that there are so many.
#[must_use]
pub fn decode(pages: &Pages, layout: &PageLayout, decoder: &Decoder, counts: Counts) -> Decoded {
    let mut found = Decoded::default();
    let mut gaps = 0;
    let mut seen = 0;
    for bytes in pages.processors.iter().flat_map(|processor| processor.chunks(pages.size.max(1))) {
        let Some(mut page) = Page::new(layout, bytes) else { continue };
        gaps += match page.missed {
            Missed::Nothing => 0,
            Missed::Events(count) => count,
            Missed::Unknown => 1,
        };
        for event in page.by_ref() {
            seen += 1;
            found.events.extend(decoder.decode(&event));
        }
        gaps += u64::from(page.damaged());
    }
    // The same loss shows in more than one place: in the kernel's counts, in the pages, and in what is not there.
    let unseen = counts.written.saturating_sub(seen);
    found.lost = gaps.max(counts.lost + unseen).max(pages.cut);
    found
}

/// Makes reads end where they ended.
///
/// `mm_filemap_get_pages` as it came with Linux 6.10 gives as its last page the one behind it. Later kernels do not. Which
/// one is running, patched or not, shows in how it reports a read of one byte, made by thread `own` of a file whose blocks have
/// `expected` pages.
pub fn correct_reads(events: &mut [PageEvent], own: u32, expected: u64) {
    let is_read = |event: &&PageEvent| event.kind == Kind::Read;
    let probe = events.iter().filter(is_read).find(|event| event.pid == own);
    if probe.is_none_or(|event| event.pages.start != 0 || event.pages.end != expected + 1) {
        return;
    }
    for event in events.iter_mut().filter(|event| event.kind == Kind::Read && event.pages.len() > 1) {
        event.pages.end -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{DeviceNumber, PageRange};
    use crate::trace::event::CacheKey;

    fn event(pid: u32, kind: Kind, start: u64, end: u64) -> PageEvent {
        let key = CacheKey { device: DeviceNumber { major: 8, minor: 1 }, inode: 7 };
        PageEvent { time: 0, pid, kind, key, pages: PageRange { start, end } }
    }

    #[test]
    fn reads_of_older_kernels_end_a_page_earlier() {
        let run =
            || vec![event(9, Kind::Read, 4, 9), event(9, Kind::Mapped, 0, 16), event(9, Kind::Faulted, 3, 4)];
        let corrected = |probe: PageEvent, expected| {
            let mut events = run();
            events.push(probe);
            correct_reads(&mut events, 5, expected);
            events.pop();
            events
        };
        let older =
            [event(9, Kind::Read, 4, 8), event(9, Kind::Mapped, 0, 16), event(9, Kind::Faulted, 3, 4)];
        assert_eq!(corrected(event(5, Kind::Read, 0, 2), 1), older);
        assert_eq!(corrected(event(5, Kind::Read, 0, 1), 1), run(), "newer");
        assert_eq!(corrected(event(5, Kind::Read, 0, 2), 2), run(), "blocks of two pages");
        assert_eq!(corrected(event(6, Kind::Read, 0, 2), 1), run(), "somebody else's read");
        assert_eq!(corrected(event(5, Kind::Mapped, 0, 2), 1), run(), "no read");
    }
}
