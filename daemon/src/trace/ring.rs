//! Pages of the kernel's tracing ring buffer, as `per_cpu/cpuN/trace_pipe_raw` gives them.
//!
//! A page is a header (see [`PageLayout`]) and a run of entries. An entry's first 32-bit word holds a type or length
//! in 5 bits and the time since the previous entry in 27 (`events/header_event`; `include/linux/ring_buffer.h`):
//!
//! | `type_len` | entry |
//! |---|---|
//! | 0 | payload of the length in the next word, which counts itself |
//! | 1–28 | payload of `type_len` words |
//! | 29 | padding: to the end of the page if the time is 0, else of the length in the next word |
//! | 30 | more time: the next word is the delta's bits from 27 up |
//! | 31 | absolute time: the next word is its bits from 27 up, to bit 58 |
//!
//! Any bytes are accepted: a page that makes no sense ends where it stops making sense, and is reported as damaged.

use super::format::PageLayout;

/// Set in a page's commit word when events were lost before it.
const MISSED_EVENTS: u64 = 1 << 31;
/// Set when the number lost stands behind the page's events.
const MISSED_STORED: u64 = 1 << 30;

const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
const DELTA_BITS: u32 = 27;
/// An absolute time has 59 bits; the 5 above come from the page's own time stamp.
const ABSOLUTE_MASK: u64 = (1 << 59) - 1;

/// One event, not yet decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawEvent<'a> {
    /// When, in nanoseconds of the instance's `trace_clock`.
    pub time: u64,
    /// The event, from its `common_type` on.
    pub payload: &'a [u8],
}

/// What the kernel says about events missing before a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// None.
    Nothing,
    /// This many.
    Events(u64),
    /// Some, but there was no room for their number.
    Unknown,
}

/// A page, ready to be walked through.
#[derive(Clone, Debug)]
pub struct Page<'a> {
    events: &'a [u8],
    time: u64,
    damaged: bool,
    /// Events lost before this page.
    pub missed: Missed,
}

impl<'a> Page<'a> {
    /// Reads a page's header. `None` if `bytes` is too short to have one.
    #[must_use]
    pub fn new(layout: &PageLayout, bytes: &'a [u8]) -> Option<Self> {
        let time = layout.timestamp.read(bytes)?;
        let commit = layout.commit.read(bytes)?;
        let data = bytes.get(layout.data..)?;
        let length = usize::try_from(commit & (MISSED_STORED - 1)).ok()?;
        let events = data.get(..length);
        let missed = if commit & MISSED_EVENTS == 0 {
            Missed::Nothing
        } else if commit & MISSED_STORED == 0 {
            Missed::Unknown
        } else {
            stored_count(data, length).map_or(Missed::Unknown, Missed::Events)
        };
        Some(Self { events: events.unwrap_or(data), time, damaged: events.is_none(), missed })
    }

    /// Whether the page, as far as it was walked through, stopped making sense.
    #[must_use]
    pub fn damaged(&self) -> bool {
        self.damaged
    }

    fn stop(&mut self, damaged: bool) -> Option<RawEvent<'a>> {
        self.events = &[];
        self.damaged |= damaged;
        None
    }

    /// Splits `length` bytes off the front; `None` if there are not so many.
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.events.split_at_checked(length)?;
        self.events = rest;
        Some(front)
    }

    fn word(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_ne_bytes)
    }

    /// The payload of an entry whose first word said `type_len`, or `None` where it runs out of the page.
    fn payload(&mut self, type_len: u32) -> Option<&'a [u8]> {
        let length = match type_len {
            // The length word counts itself.
            0 => self.word()?.checked_sub(4)?,
            words => words * 4,
        };
        self.take(usize::try_from(length).ok()?)
    }
}

/// The count is an `unsigned long` right behind the events.
fn stored_count(data: &[u8], at: usize) -> Option<u64> {
    let bytes = data.get(at..at.checked_add(size_of::<usize>())?)?;
    u64::try_from(usize::from_ne_bytes(bytes.try_into().ok()?)).ok()
}

/// The bit fields of an entry's first word lie from the low end up on little-endian machines, from the high end down
/// on the others.
fn split(word: u32) -> (u32, u64) {
    if cfg!(target_endian = "big") {
        (word >> DELTA_BITS, u64::from(word & ((1 << DELTA_BITS) - 1)))
    } else {
        (word & 0x1f, u64::from(word >> 5))
    }
}

impl<'a> Iterator for Page<'a> {
    type Item = RawEvent<'a>;

    fn next(&mut self) -> Option<RawEvent<'a>> {
        while !self.events.is_empty() {
            let Some((type_len, delta)) = self.word().map(split) else { return self.stop(true) };
            match type_len {
                PADDING if delta == 0 => return self.stop(false),
                PADDING => {
                    if self.payload(0).is_none() {
                        return self.stop(true);
                    }
                    self.time = self.time.wrapping_add(delta);
                }
                TIME_EXTEND | TIME_STAMP => {
                    let Some(high) = self.word() else { return self.stop(true) };
                    let value = (u64::from(high) << DELTA_BITS) | delta;
                    self.time = if type_len == TIME_EXTEND {
                        self.time.wrapping_add(value)
                    } else {
                        (self.time & !ABSOLUTE_MASK) | (value & ABSOLUTE_MASK)
                    };
                }
                _ => {
                    let Some(payload) = self.payload(type_len) else { return self.stop(true) };
                    self.time = self.time.wrapping_add(delta);
                    return Some(RawEvent { time: self.time, payload });
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::trace::format::PageLayout;

    fn layout() -> PageLayout {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("events")).unwrap();
        std::fs::write(
            dir.path().join("events/header_page"),
            "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n",
        )
        .unwrap();
        PageLayout::load(dir.path()).unwrap()
    }

    fn entry(type_len: u32, delta: u32) -> [u8; 4] {
        let word = if cfg!(target_endian = "big") { type_len << 27 | delta } else { delta << 5 | type_len };
        word.to_ne_bytes()
    }

    fn page(flags: u64, body: &[u8]) -> Vec<u8> {
        let mut bytes = 1000u64.to_ne_bytes().to_vec();
        bytes.extend((body.len() as u64 | flags).to_ne_bytes());
        bytes.extend(body);
        bytes
    }

    fn walk(bytes: &[u8]) -> (Vec<(u64, Vec<u8>)>, bool) {
        let mut page = Page::new(&layout(), bytes).unwrap();
        let events = page.by_ref().map(|e| (e.time, e.payload.to_vec())).collect();
        (events, page.damaged())
    }

    #[test]
    fn every_kind_of_entry_is_understood() {
        let mut body = Vec::new();
        body.extend(entry(2, 5));
        body.extend([1; 8]);
        // A long payload: its length word counts itself.
        body.extend(entry(0, 1));
        body.extend(16u32.to_ne_bytes());
        body.extend([2; 12]);
        body.extend(entry(TIME_EXTEND, 3));
        body.extend(2u32.to_ne_bytes());
        // A discarded event still takes its time.
        body.extend(entry(PADDING, 10));
        body.extend(8u32.to_ne_bytes());
        body.extend([9; 4]);
        body.extend(entry(1, 0));
        body.extend([3; 4]);
        body.extend(entry(TIME_STAMP, 7));
        body.extend(1u32.to_ne_bytes());
        body.extend(entry(1, 1));
        body.extend([4; 4]);
        body.extend(entry(PADDING, 0));
        body.extend([0xff; 16]);
        let (events, damaged) = walk(&page(0, &body));
        let extended = 1000 + 5 + 1 + (2 << 27) + 3 + 10;
        assert_eq!(
            events,
            [
                (1005, vec![1; 8]),
                (1006, vec![2; 12]),
                (extended, vec![3; 4]),
                ((1 << 27) + 7 + 1, vec![4; 4]),
            ]
        );
        assert!(!damaged);
    }

    #[test]
    fn lost_events_are_reported() {
        let counted = [&page(MISSED_EVENTS | MISSED_STORED, &[])[..], &7usize.to_ne_bytes()].concat();
        let missed = |bytes: &[u8]| Page::new(&layout(), bytes).unwrap().missed;
        assert_eq!(missed(&counted), Missed::Events(7));
        assert_eq!(missed(&page(MISSED_EVENTS | MISSED_STORED, &[])), Missed::Unknown);
        assert_eq!(missed(&page(MISSED_EVENTS, &[])), Missed::Unknown);
        assert_eq!(missed(&page(0, &[])), Missed::Nothing);
    }

    #[test]
    fn a_page_cut_short_gives_what_is_whole() {
        let body = [&entry(1, 0)[..], &[1; 4], &entry(2, 0), &[2; 8]].concat();
        let whole = page(0, &body);
        let (events, damaged) = walk(&whole[..whole.len() - 3]);
        assert_eq!(events, [(1000, vec![1; 4])]);
        assert!(damaged);
    }

    proptest! {
        #[test]
        fn any_bytes_end_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..5000)) {
            if let Some(page) = Page::new(&layout(), &bytes) {
                let total: usize = page.map(|e| e.payload.len()).sum();
                prop_assert!(total <= bytes.len());
            }
        }

        #[test]
        fn what_is_written_is_read(events in prop::collection::vec((0u32..1 << 27, 1u8..40), 0..50)) {
            let mut body = Vec::new();
            let mut expected = Vec::new();
            let mut now = 1000;
            for &(delta, words) in &events {
                if words <= 28 {
                    body.extend(entry(u32::from(words), delta));
                } else {
                    body.extend(entry(0, delta));
                    body.extend((u32::from(words) * 4 + 4).to_ne_bytes());
                }
                let payload = vec![words; usize::from(words) * 4];
                body.extend(&payload);
                now += u64::from(delta);
                expected.push((now, payload));
            }
            prop_assert_eq!(walk(&page(0, &body)), (expected, false));
        }
    }
}
