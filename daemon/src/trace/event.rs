//! Page-cache events, decoded by the kernel's own descriptions.
//!
//! | event | since | says |
//! |---|---|---|
//! | `mm_filemap_add_to_page_cache` | 2.6.39 (`order`: 6.0) | a folio was brought in, wanted or not |
//! | `mm_filemap_fault` | 6.10 | a mapped page was touched and was not mapped yet |
//! | `mm_filemap_map_pages` | 6.10 | resident pages around a touched one were mapped with it |
//! | `mm_filemap_get_pages` | 6.10 | pages were read by `read(2)` and its kin |
//!
//! `map_pages` gives the whole window of fault-around (`do_fault_around` in `mm/memory.c`): up to 64 KiB, whatever was
//! touched of it. It follows a cold fault too, once the page has arrived. All of the window that is resident counts as
//! touched: of the pages mapped along no later event tells whether they are used, so leaving them out would leave out
//! what a start needs. It never leaves out anything, but it makes “touched” an upper bound. Measured on Linux 7.2 by the
//! same starts with fault-around off (`fault_around_bytes` in debugfs, which is for the whole machine and so not for
//! us), of the pages that count as touched there really were: python3 with a dozen modules 71 %, apt-cache 85 %, git
//! 37 %, gcc 33 %. Where files are read rather than mapped it is exact. The accessed bits of `smaps` and `pagemap` know
//! no better on x86, where pages mapped along are marked as accessed (`arch_wants_old_prefaulted_pte`).

use std::path::Path;

use super::format::{EventFormat, Field, FormatError};
use super::ring::RawEvent;
use crate::recording::{DeviceNumber, PageRange};

/// The event that says what was brought in; every kernel since 2.6.39 has it.
pub const ADDED: &str = "filemap/mm_filemap_add_to_page_cache";
/// The events that say what was touched.
pub const TOUCHED: [&str; 3] =
    ["filemap/mm_filemap_fault", "filemap/mm_filemap_get_pages", "filemap/mm_filemap_map_pages"];

/// A file as the kernel's page cache knows it: the super block's device and the inode.
///
/// Not what `stat(2)` says: on btrfs and overlayfs the two differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CacheKey {
    /// The super block's device number.
    pub device: DeviceNumber,
    /// The inode number.
    pub inode: u64,
}

/// What happened to pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Brought into the page cache, whether wanted or read ahead.
    Added,
    /// A mapped page was touched that was not mapped yet, nor could be with what is resident around it.
    Faulted,
    /// Read by `read(2)` or its kin.
    Read,
    /// Mapped since they were resident, because one of them was touched.
    Mapped,
}

impl Kind {
    fn of(event: &str) -> Self {
        match event {
            event if event == TOUCHED[0] => Self::Faulted,
            event if event == TOUCHED[1] => Self::Read,
            event if event == TOUCHED[2] => Self::Mapped,
            _ => Self::Added,
        }
    }
}

/// One decoded event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageEvent {
    /// When, in nanoseconds of the trace clock.
    pub time: u64,
    /// The thread that did it.
    pub pid: u32,
    /// Brought in or touched.
    pub kind: Kind,
    /// The file.
    pub key: CacheKey,
    /// The pages.
    pub pages: PageRange,
}

/// The fields of one event that matter.
#[derive(Clone, Copy, Debug)]
struct Layout {
    id: u16,
    kind: Kind,
    inode: Field,
    device: Field,
    first: Field,
    /// The last page, where the event names it.
    last: Option<Field>,
    /// The power of two of the folio's pages, where the event names it.
    order: Option<Field>,
}

/// Decodes events of one tracefs.
#[derive(Clone, Debug)]
pub struct Decoder {
    common_type: Field,
    common_pid: Field,
    layouts: Vec<Layout>,
}

impl Decoder {
    /// Reads the descriptions of `events` (of [`ADDED`] and [`TOUCHED`]) below `tracefs`.
    ///
    /// # Errors
    /// When one is missing, or lacks a field that is needed.
    pub fn load(tracefs: &Path, events: &[&str]) -> Result<Self, FormatError> {
        let mut layouts = Vec::new();
        let mut common = None;
        for &name in events {
            let format = EventFormat::load(tracefs, name)?;
            common = Some((format.field("common_type")?, format.field("common_pid")?));
            layouts.push(Layout {
                id: format.id,
                kind: Kind::of(name),
                inode: format.field("i_ino")?,
                device: format.field("s_dev")?,
                first: format.field("index")?,
                last: format.optional("last_index"),
                order: format.optional("order"),
            });
        }
        let (common_type, common_pid) = common.ok_or_else(|| FormatError::Unusable {
            path: tracefs.join("events"),
            what: "event to decode".into(),
        })?;
        Ok(Self { common_type, common_pid, layouts })
    }

    /// Decodes one event; `None` for an event of another kind, or one too short for its description.
    #[must_use]
    pub fn decode(&self, event: &RawEvent<'_>) -> Option<PageEvent> {
        let read = |field: Field| field.read(event.payload);
        let id = read(self.common_type)?;
        let layout = self.layouts.iter().find(|l| u64::from(l.id) == id)?;
        let start = read(layout.first)?;
        let end = match (layout.last, layout.order) {
            (Some(last), _) => read(last)?.checked_add(1)?,
            (None, Some(order)) => start.checked_add(1u64.checked_shl(u32::try_from(read(order)?).ok()?)?)?,
            (None, None) => start.checked_add(1)?,
        };
        (end > start).then_some(PageEvent {
            time: event.time,
            pid: u32::try_from(read(self.common_pid)?).ok()?,
            kind: layout.kind,
            key: CacheKey { device: kernel_device(read(layout.device)?)?, inode: read(layout.inode)? },
            pages: PageRange { start, end },
        })
    }
}

/// Inside the kernel a `dev_t` is 12 bits of major and 20 of minor (`include/linux/kdev_t.h`), unlike in user space.
#[must_use]
pub fn kernel_device(dev: u64) -> Option<DeviceNumber> {
    let dev = u32::try_from(dev).ok()?;
    Some(DeviceNumber { major: dev >> 20, minor: dev & 0xf_ffff })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Descriptions with the fields at unusual places: only names may matter.
    fn tracefs(with_order: bool) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let common = "\tfield:int common_pid;\toffset:0;\tsize:4;\tsigned:1;
\tfield:unsigned short common_type;\toffset:4;\tsize:2;\tsigned:0;
\tfield:dev_t s_dev;\toffset:8;\tsize:4;\tsigned:0;
\tfield:unsigned long i_ino;\toffset:16;\tsize:8;\tsigned:0;
\tfield:unsigned long index;\toffset:24;\tsize:8;\tsigned:0;\n";
        let last = "\tfield:unsigned long last_index;\toffset:32;\tsize:8;\tsigned:0;\n";
        let order = "\tfield:unsigned char order;\toffset:6;\tsize:1;\tsigned:0;\n";
        let write = |name: &str, id: u16, more: &str| {
            let at = dir.path().join("events").join(name);
            fs::create_dir_all(&at).unwrap();
            fs::write(at.join("format"), format!("ID: {id}\n{common}{more}")).unwrap();
        };
        write(ADDED, 1, if with_order { order } else { "" });
        write(TOUCHED[0], 2, "");
        write(TOUCHED[1], 3, last);
        write(TOUCHED[2], 4, last);
        dir
    }

    fn payload(id: u16, order: u8, index: u64, last: u64) -> Vec<u8> {
        let mut bytes = 77u32.to_ne_bytes().to_vec();
        bytes.extend(id.to_ne_bytes());
        bytes.extend([order, 0]);
        bytes.extend(((8u32 << 20) | 3).to_ne_bytes());
        bytes.extend([0; 4]);
        for word in [42, index, last] {
            bytes.extend(u64::to_ne_bytes(word));
        }
        bytes
    }

    fn decode(tracefs: &Path, payload: &[u8]) -> Option<PageEvent> {
        let events = [ADDED, TOUCHED[0], TOUCHED[1], TOUCHED[2]];
        Decoder::load(tracefs, &events).unwrap().decode(&RawEvent { time: 5, payload })
    }

    #[test]
    fn a_large_folio_counts_whole() {
        let dir = tracefs(true);
        let event = decode(dir.path(), &payload(1, 4, 16, 0)).unwrap();
        let key = CacheKey { device: DeviceNumber { major: 8, minor: 3 }, inode: 42 };
        let pages = PageRange { start: 16, end: 32 };
        assert_eq!(event, PageEvent { time: 5, pid: 77, kind: Kind::Added, key, pages });
    }

    #[test]
    fn an_old_kernel_adds_single_pages() {
        let dir = tracefs(false);
        assert_eq!(
            decode(dir.path(), &payload(1, 4, 16, 0)).unwrap().pages,
            PageRange { start: 16, end: 17 }
        );
    }

    #[test]
    fn the_last_page_is_included() {
        let dir = tracefs(true);
        let event = decode(dir.path(), &payload(3, 0, 7, 9)).unwrap();
        assert_eq!((event.kind, event.pages), (Kind::Read, PageRange { start: 7, end: 10 }));
        assert_eq!(decode(dir.path(), &payload(2, 0, 7, 9)).unwrap().pages, PageRange { start: 7, end: 8 });
    }

    #[test]
    fn nonsense_is_passed_over() {
        let dir = tracefs(true);
        assert_eq!(decode(dir.path(), &payload(9, 0, 7, 9)), None, "another event");
        assert_eq!(decode(dir.path(), &payload(3, 0, 9, 7)), None, "a range that ends before it begins");
        assert_eq!(decode(dir.path(), &payload(3, 0, 0, u64::MAX)), None, "a last page that overflows");
        assert_eq!(decode(dir.path(), &payload(1, 200, 0, 0)), None, "an absurd order");
        assert_eq!(decode(dir.path(), &payload(3, 0, 7, 9)[..38]), None, "a short payload");
    }

    #[test]
    fn a_missing_event_is_named() {
        let dir = tracefs(true);
        let error = Decoder::load(dir.path(), &["filemap/none"]).unwrap_err();
        assert!(error.to_string().contains("filemap/none/format"), "{error}");
    }
}
