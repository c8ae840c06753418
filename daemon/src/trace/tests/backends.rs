//! What each way of recording can see, and what it cannot.

use std::fs;

use super::program::line;
use super::*;
use crate::sys::loop_images::LoopImage;
use crate::trace::backend::{choose, try_out};

struct Seen {
    /// Read ahead by the kernel, and only in part touched.
    ahead: Vec<PageRange>,
    /// In memory before, and touched.
    warm: Vec<PageRange>,
    /// In memory before, and only opened.
    opened: Vec<PageRange>,
    /// What is resident of the first, as the kernel says.
    resident: Vec<PageRange>,
}

fn see(backend: Backend) -> Option<Seen> {
    let image = LoopImage::new("ext4", 64)?;
    let [ahead, warm, opened] = ["ahead", "warm", "opened"].map(|name| image.file(name, bytes(200)));
    make_cold(&ahead);
    for path in [&warm, &opened] {
        fs::read(path).unwrap();
    }
    let script = [line("window 70", &ahead), line("read 5 2", &warm), line("open", &opened)];
    let recording = record(backend, &script)?;
    assert_eq!(recording.backend, backend);
    let pages = |path| pages_of(&recording, path);
    Some(Seen {
        ahead: pages(&ahead),
        warm: pages(&warm),
        opened: pages(&opened),
        resident: resident(&ahead),
    })
}

#[test]
fn touched_sees_what_was_touched_whether_it_was_there_or_not() {
    let Some(seen) = see(Backend::Touched) else { return };
    // What is mapped with the touched page counts, see below; the rest of what the kernel reads ahead does not.
    let [ahead] = seen.ahead[..] else { panic!("{:?}", seen.ahead) };
    assert!(ahead.start <= 70 && ahead.end > 70 && ahead.len() * page_size() <= 64 << 10, "{ahead:?}");
    assert!(seen.resident[0].len() > ahead.len(), "the kernel reads ahead");
    assert_eq!(seen.warm, [range(5, 7)]);
    assert_eq!(seen.opened, []);
}

#[test]
fn added_sees_what_came_in_read_ahead_included_and_not_what_was_there() {
    let Some(seen) = see(Backend::Added) else { return };
    assert_eq!(seen.ahead, seen.resident);
    assert_eq!((seen.warm, seen.opened), (vec![], vec![]));
}

#[test]
fn resident_sees_all_that_is_in_memory_of_what_was_opened() {
    let Some(seen) = see(Backend::Resident) else { return };
    assert_eq!(seen.ahead, seen.resident);
    assert_eq!((seen.warm, seen.opened), (vec![range(0, 200)], vec![range(0, 200)]));
}

/// Fault-around: with a touched page the kernel maps what is resident around it, up to 64 KiB, and no event says which
/// of these was touched, nor is there one when another of them is touched later.
#[test]
fn what_is_mapped_along_counts_as_touched() {
    let Some(image) = LoopImage::new("ext4", 64) else { return };
    let path = image.file("file", bytes(200));
    fs::read(&path).unwrap();
    let Some(recording) = record(Backend::Touched, &[line("window 70", &path)]) else { return };
    let pages = pages_of(&recording, &path);
    assert_eq!(pages.len(), 1);
    assert!(pages[0].start <= 70 && pages[0].end > 70, "{pages:?}");
    assert!(pages[0].len() * page_size() <= 64 << 10, "{pages:?}");
}

#[test]
fn the_self_test_chooses_the_finest_that_works() {
    if recorder(Backend::Touched).is_none() {
        return;
    }
    let choice = choose(&Roots::default());
    assert_eq!(choice.backend, Some(Backend::Touched), "{:?}", choice.failures);
    assert_eq!(choice.failures, []);
    for backend in [Backend::Added, Backend::Resident] {
        try_out(backend, &Roots::default()).unwrap();
    }
}
