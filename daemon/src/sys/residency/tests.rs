use super::*;
use crate::sys::loop_images::LoopImage;

const fn pages(start: u64, end: u64) -> PageRange {
    PageRange { start, end }
}

/// Evicts a file, then reads the given pages of it, and nothing else, into the cache.
fn cache_only(file: &File, ranges: &[PageRange]) {
    use rustix::fs::{Advice, fadvise};
    file.sync_all().unwrap();
    fadvise(file, 0, None, Advice::DontNeed).unwrap();
    fadvise(file, 0, None, Advice::Random).unwrap();
    for range in ranges {
        let mut buffer = vec![0; usize::try_from(range.len() * page_size()).unwrap()];
        let _ = std::os::unix::fs::FileExt::read_at(file, &mut buffer, range.start * page_size()).unwrap();
    }
}

#[test]
fn the_kernel_tells_which_pages_are_cached() {
    for fs_type in ["ext4", "xfs", "btrfs"] {
        let Some(image) = LoopImage::new(fs_type, 320) else { return };
        let page = page_size();
        let path = image.file("file", usize::try_from(100 * page + 10).unwrap());
        let file = File::open(&path).unwrap();
        cache_only(&file, &[]);
        assert_eq!(resident_in(&file).unwrap(), [], "{fs_type}");
        assert_eq!(cached_pages(&file, pages(0, 101)).unwrap().cached, 0, "{fs_type}");

        let wanted = [pages(3, 5), pages(40, 41), pages(100, 101)];
        cache_only(&file, &wanted);
        assert_eq!(resident_in(&file).unwrap(), wanted, "{fs_type}");
        assert_eq!(cached_pages(&file, pages(0, 200)).unwrap().cached, 4, "{fs_type}");
        assert_eq!(cached_ranges(&file, pages(0, 200)).unwrap(), wanted, "{fs_type}");
        assert_eq!(cached_ranges(&file, pages(4, 41)).unwrap(), [pages(4, 5), pages(40, 41)], "{fs_type}");
        assert_eq!(cached_pages(&file, pages(4, 50)).unwrap().cached, 2, "{fs_type}");
        assert_eq!(cached_pages(&file, pages(7, 7)).unwrap(), CacheCount::default());
        assert_eq!(counted_by_mincore(file.as_fd(), pages(0, 101)).unwrap().cached, 4, "{fs_type}");
    }
}

#[test]
fn changed_pages_are_counted_as_dirty() {
    let Some(image) = LoopImage::new("ext4", 32) else { return };
    let path = image.file("file", 1 << 16);
    let file = File::options().write(true).read(true).open(&path).unwrap();
    let before = cached_pages(&file, pages(0, 16)).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"new", page_size()).unwrap();
    let after = cached_pages(&file, pages(0, 16)).unwrap();
    if cachestat(file.as_fd(), pages(0, 1)).is_err() {
        return crate::sys::loop_images::skip("cachestat (Linux 6.5)");
    }
    assert_eq!(before.dirty, 0);
    // The kernel counts a large folio as dirty whole.
    assert!((1..=16).contains(&after.dirty), "{after:?}");
}

#[test]
fn a_file_larger_than_a_window_is_seen_whole() {
    let Some(image) = LoopImage::new("ext4", 64) else { return };
    let page = page_size();
    let path = image.join("sparse");
    let file = File::options().create_new(true).write(true).read(true).open(&path).unwrap();
    file.set_len((3 * WINDOW + 5) * page).unwrap();
    let wanted = [pages(WINDOW - 1, WINDOW + 1), pages(3 * WINDOW + 4, 3 * WINDOW + 5)];
    cache_only(&file, &wanted);
    assert_eq!(resident_in(&file).unwrap(), wanted);
}

#[test]
fn what_cannot_be_mapped_is_an_error() {
    let folder = File::open("/").unwrap();
    assert!(resident_ranges(&folder, 4096, page_size()).is_err());
    assert!(resident_ranges(&folder, 4096, 2 * page_size()).is_err());
    assert_eq!(resident_ranges(&folder, 0, page_size()).unwrap(), []);
}

#[test]
fn structures_of_a_file_system_are_seen_on_its_device() {
    let Some(image) = LoopImage::new("ext4", 64) else { return };
    let mounts = crate::sys::loop_images::own_mounts();
    let source = mounts.at(&image.path()).unwrap().source.clone();
    let device = File::open(source).unwrap();
    let cached = || {
        let ranges = cached_ranges(&device, pages(0, (64 << 20) / page_size())).unwrap();
        ranges.into_iter().map(PageRange::len).sum::<u64>()
    };
    let before = cached();
    for n in 0..40 {
        std::fs::create_dir(image.join(format!("folder {n}"))).unwrap();
    }
    // Each folder has a block, of which a page holds four on a small file system.
    assert!(cached() >= before + 10, "{before}, then {}", cached());
}
