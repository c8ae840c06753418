//! Pages captured from real kernels, compared with what these kernels wrote as text about the same events; and damaged.
//!
//! How they were captured is in `tests/fixtures/trace/capture.sh`.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;
use crate::recording::DeviceNumber;
use crate::trace::decode::{Decoded, decode};
use crate::trace::event::{ADDED, CacheKey, Decoder, Kind, PageEvent, TOUCHED};
use crate::trace::format::PageLayout;
use crate::trace::pipes::Pages;
use crate::trace::touched::by_file;
use crate::trace::tracefs::Counts;

const KERNELS: [&str; 2] = ["6.18", "7.2"];
const PAGE: usize = 4096;

fn fixture(kernel: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/trace").join(kernel)
}

/// One processor's pages after the other's.
fn raw(kernel: &str) -> Vec<Vec<u8>> {
    let pages = |cpu| fs::read(fixture(kernel).join(format!("cpu{cpu}.raw"))).ok();
    (0..).map_while(pages).collect()
}

struct Kernel {
    layout: PageLayout,
    decoder: Decoder,
}

impl Kernel {
    fn new(kernel: &str) -> Self {
        let at = fixture(kernel);
        let decoder = Decoder::load(&at, &[ADDED, TOUCHED[0], TOUCHED[1], TOUCHED[2]]).unwrap();
        Self { layout: PageLayout::load(&at).unwrap(), decoder }
    }

    fn decode(&self, processors: Vec<Vec<u8>>, counts: Counts) -> Decoded {
        decode(&Pages { processors, size: PAGE, cut: 0 }, &self.layout, &self.decoder, counts)
    }
}

/// The events of the kernel's text, whose time has no more than microseconds.
fn told(kernel: &str) -> Vec<PageEvent> {
    let text = fs::read_to_string(fixture(kernel).join("trace.txt")).unwrap();
    text.lines().map(|line| parse(line).unwrap_or_else(|| panic!("{line}"))).collect()
}

fn parse(line: &str) -> Option<PageEvent> {
    let (task, rest) = line.split_once(" [")?;
    let (head, fields) = rest.split_once(": mm_filemap_")?;
    let (name, fields) = fields.split_once(": ")?;
    let (seconds, micros) = head.rsplit(' ').next()?.split_once('.')?;
    let time = seconds.parse::<u64>().ok()? * 1_000_000 + micros.parse::<u64>().ok()?;
    // Older and newer events write `dev=8:1` and `dev 8:1`.
    let fields = fields.replace("dev ", "dev=").replace("ino ", "ino=");
    let field = |name: &str| fields.split(' ').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
    let (major, minor) = field("dev")?.split_once(':')?;
    let device = DeviceNumber { major: major.parse().ok()?, minor: minor.parse().ok()? };
    let (first, last) = field("ofs")?.split_once('-').unwrap_or((field("ofs")?, ""));
    let start = first.parse::<u64>().ok()? / 4096;
    let (kind, end) = match name {
        "add_to_page_cache" => (Kind::Added, start + (1 << field("order")?.parse::<u32>().ok()?)),
        "fault" => (Kind::Faulted, start + 1),
        "get_pages" => (Kind::Read, (last.parse::<u64>().ok()? + 1) / 4096),
        "map_pages" => (Kind::Mapped, (last.parse::<u64>().ok()? + 1) / 4096),
        _ => return None,
    };
    Some(PageEvent {
        time,
        pid: task.rsplit('-').next()?.parse().ok()?,
        kind,
        key: CacheKey { device, inode: u64::from_str_radix(field("ino")?, 16).ok()? },
        pages: PageRange { start, end },
    })
}

#[test]
fn pages_are_decoded_as_the_kernel_says_itself() {
    for kernel in KERNELS {
        let told = told(kernel);
        let written = told.len() as u64;
        let mut found = Kernel::new(kernel).decode(raw(kernel), Counts { written, lost: 0 });
        assert_eq!(found.lost, 0, "{kernel}");
        found.events.sort_by_key(|event| event.time);
        // The kernel rounds to the nearest microsecond.
        for (event, told) in found.events.iter_mut().zip(&told) {
            assert!(event.time.abs_diff(told.time * 1000) <= 1000, "{kernel} {event:?} {told:?}");
            event.time = told.time;
        }
        assert!(found.events.len() > 300, "{kernel}");
        assert_eq!(found.events, told, "{kernel}");
        for kind in [Kind::Added, Kind::Faulted, Kind::Read, Kind::Mapped] {
            assert!(told.iter().any(|event| event.kind == kind), "{kernel} {kind:?}");
        }
    }
    assert!(
        told("6.18").iter().any(|event| event.kind == Kind::Added && event.pages.len() > 1),
        "a large folio"
    );
}

#[test]
fn events_that_the_pages_lack_are_counted() {
    let kernel = Kernel::new("6.18");
    let written = told("6.18").len() as u64;
    let lost = |written, lost| kernel.decode(raw("6.18"), Counts { written, lost }).lost;
    assert_eq!(lost(written + 5, 0), 5);
    assert_eq!(lost(written, 7), 7);
    assert_eq!(lost(written + 5, 7), 12);
}

/// Kernels before 6.0 have single pages and a `struct page *`, and before 6.10 nothing but this event.
#[test]
fn a_5_10_kernels_description_is_understood() {
    let at = fixture("5.10");
    let decoder = Decoder::load(&at, &[ADDED]).unwrap();
    assert!(Decoder::load(&at, &[TOUCHED[0]]).is_err());
    let layout = PageLayout::load(&at).unwrap();
    let mut payload = vec![0; 40];
    payload[..2].copy_from_slice(&523_u16.to_ne_bytes());
    payload[4..8].copy_from_slice(&4711_u32.to_ne_bytes());
    payload[16..24].copy_from_slice(&77_u64.to_ne_bytes());
    payload[24..32].copy_from_slice(&9_u64.to_ne_bytes());
    payload[32..36].copy_from_slice(&(8_u32 << 20 | 2).to_ne_bytes());
    let mut page = 1000_u64.to_ne_bytes().to_vec();
    page.extend(44_u64.to_ne_bytes());
    page.extend((if cfg!(target_endian = "big") { 10_u32 << 27 } else { 10_u32 }).to_ne_bytes());
    page.extend(payload);
    page.resize(PAGE, 0);
    let pages = Pages { processors: vec![page], size: layout.size, cut: 0 };
    let found = decode(&pages, &layout, &decoder, Counts { written: 1, lost: 0 });
    let key = CacheKey { device: DeviceNumber { major: 8, minor: 2 }, inode: 77 };
    let event = PageEvent { time: 1000, pid: 4711, kind: Kind::Added, key, pages: range(9, 10) };
    assert_eq!(found, Decoded { events: vec![event], lost: 0 });
}

/// What can happen to pages.
#[derive(Clone, Debug)]
enum Damage {
    Flip(usize, u8),
    Word(usize, u32),
    Cut(usize),
    Splice { from: usize, to: usize, length: usize },
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = || 0..16 * PAGE;
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, bits)| Damage::Flip(at, bits)),
        // Headers and the words at entries' beginnings are where it hurts most.
        (at(), prop_oneof![any::<u32>(), Just(u32::MAX), Just(0), 0..40_u32])
            .prop_map(|(at, word)| Damage::Word(at, word)),
        (0..16_usize, 0..6_usize, prop_oneof![Just(u32::MAX), any::<u32>()])
            .prop_map(|(page, word, value)| Damage::Word(page * PAGE + word * 4, value)),
        at().prop_map(Damage::Cut),
        (at(), at(), 0..300_usize).prop_map(|(from, to, length)| Damage::Splice { from, to, length }),
    ]
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let end = bytes.len();
        match *self {
            Self::Flip(at, bits) => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= bits),
            Self::Word(at, word) => {
                bytes.iter_mut().skip(at & !3).zip(word.to_ne_bytes()).for_each(|(byte, new)| *byte = new);
            }
            Self::Cut(at) => bytes.truncate(at),
            Self::Splice { from, to, length } => {
                let part = bytes[from.min(end)..(from + length).min(end)].to_vec();
                bytes.splice(to.min(end)..to.min(end), part);
            }
        }
    }
}

proptest! {
    #[test]
    fn damaged_pages_give_no_more_than_they_can_hold(
        kernel in prop::sample::select(&KERNELS[..]),
        damages in prop::collection::vec(damage(), 1..12),
    ) {
        let mut processors = raw(kernel);
        for damage in &damages {
            for bytes in &mut processors {
                damage.apply(bytes);
            }
        }
        let total: usize = processors.iter().map(Vec::len).sum();
        let found = Kernel::new(kernel).decode(processors, Counts::default());
        // The shortest event has some 30 bytes, but a damaged length may point into others.
        prop_assert!(found.events.len() <= total / 4);
        let count = found.events.len();
        // Folding takes what is given, however wide, in memory that the number of events bounds.
        let files = by_file(found.events);
        let ranges: usize = files.values().map(|f| f.touched.ranges().count() + f.added.ranges().count()).sum();
        prop_assert!(ranges <= 2 * count);
        for file in files.values() {
            let everything = [range(0, u64::MAX)];
            let _ = (file.touched.len(), file.touched.within(&everything, 0), file.added.within(&everything, u64::MAX));
        }
    }
}
