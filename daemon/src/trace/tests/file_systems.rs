//! Exactly the touched pages, on every file system that is supported.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::program::line;
use super::*;
use crate::opening::{file_system_of, identity_of};
use crate::recording::DeviceNumber;
use crate::sys::loop_images::{LoopImage, own_mounts, run};
use crate::sys::readahead::readahead;
use crate::sys::residency::cached_ranges;

/// Files in a folder, what is done to them, and what has to be recorded.
struct Scene {
    script: Vec<String>,
    /// In the order of first need.
    expected: Vec<(PathBuf, Vec<PageRange>)>,
    absent: Vec<PathBuf>,
}

impl Scene {
    /// `make` makes a file of so many pages, and a name that is its alone.
    fn new(make: impl Fn(&str, u64) -> PathBuf) -> Self {
        let read = make("read", 100);
        let mapped = make("mapped", 100);
        let streamed = make("streamed", 333);
        let warm = make("half warm", 100);
        let fast = make("mapped warm", 100);
        let opened = make("only opened", 10);
        let other = make("of somebody else", 10);
        for path in [&read, &mapped, &streamed, &warm, &fast, &opened] {
            make_cold(path);
        }
        // What is there already, and not touched by the run, is not its.
        bring_in(&warm, range(8, 60));
        bring_in(&fast, range(21, 22));
        fs::read(&other).unwrap();
        Self {
            script: vec![
                line("read 3 3", &read),
                line("read 40 1", &read),
                line("map 5,9,33", &mapped),
                line("stream", &streamed),
                line("read 10 2", &warm),
                line("map 21", &fast),
                line("open", &opened),
            ],
            expected: vec![
                (read, vec![range(3, 6), range(40, 41)]),
                (mapped, vec![range(5, 6), range(9, 10), range(33, 34)]),
                (streamed, vec![range(0, 333)]),
                (warm, vec![range(10, 12)]),
                (fast, vec![range(21, 22)]),
            ],
            absent: vec![opened, other],
        }
    }

    fn check(&self, backend: Backend) -> Option<Recording> {
        let recording = record(backend, &self.script)?;
        let mut last = 0;
        for (path, pages) in &self.expected {
            assert_eq!(&pages_of(&recording, path), pages, "{}", path.display());
            assert_eq!(
                &common(pages, &resident(path)),
                pages,
                "the kernel does not say so of {}",
                path.display()
            );
            let at = first_need(&recording, path);
            assert!(at > last, "{} was needed at {at} ns, not after {last}", path.display());
            last = at;
            let identity = identity_of(File::open(path).unwrap()).unwrap();
            assert_eq!(file_of(&recording, path).unwrap().identity, identity);
        }
        for path in &self.absent {
            assert_eq!(pages_of(&recording, path), [], "{}", path.display());
        }
        assert_eq!(recording.lost_events, 0);
        assert_eq!((recording.backend, recording.page_size), (backend, page_size()));
        Some(recording)
    }
}

fn bring_in(path: &Path, pages: PageRange) {
    let file = File::open(path).unwrap();
    readahead(&file, pages.start * page_size(), pages.len() * page_size()).unwrap();
    crate::sys::readahead::expect_random(&file).unwrap();
    rustix::io::pread(&file, &mut [0_u8; 1][..], (pages.end - 1) * page_size()).unwrap();
}

fn scene_in(image: &LoopImage, folder: &str) -> Scene {
    fs::create_dir_all(image.join(folder)).unwrap();
    Scene::new(|name, pages| image.file(Path::new(folder).join(name), bytes(pages)))
}

#[test]
fn exactly_the_touched_pages_are_recorded() {
    for fs_type in ["ext4", "xfs", "btrfs"] {
        let Some(image) = LoopImage::new(fs_type, 320) else { return };
        let scene = scene_in(&image, "some folder");
        let Some(recording) = scene.check(Backend::Touched) else { return };
        // Again, with all of it in memory: what is touched is the same, whatever is around it.
        for (path, _) in &scene.expected {
            fs::read(path).unwrap();
        }
        let again = record(Backend::Touched, &scene.script).unwrap();
        for (path, pages) in
            scene.expected.iter().filter(|(path, _)| !path.to_string_lossy().contains("mapped"))
        {
            assert_eq!(&pages_of(&again, path), pages, "warm, {}", path.display());
        }
        let mapped = &scene.expected[1];
        assert_eq!(
            common(&mapped.1, &pages_of(&again, &mapped.0)),
            mapped.1,
            "warm, at least what was touched"
        );
        assert_eq!(recording.unnamed_pages, 0);
        // The program itself and its libraries are there too.
        let program = std::env::current_exe().unwrap();
        assert!(file_of(&recording, &program).is_some_and(|file| !file.touches.is_empty()));
    }
}

#[test]
fn a_large_folio_counts_whole() {
    let Some(image) = LoopImage::new("xfs", 320) else { return };
    let path = image.file("file", bytes(2048));
    make_cold(&path);
    // Enough read-ahead for the kernel to use large folios.
    let Some(recording) = record(Backend::Added, &[line("stream", &path)]) else { return };
    assert_eq!(pages_of(&recording, &path), [range(0, 2048)]);
    assert_eq!(resident(&path), [range(0, 2048)]);
}

#[test]
fn structures_of_the_file_system_are_recorded_as_pages_of_its_device() {
    let Some(image) = LoopImage::new("ext4", 64) else { return };
    fs::create_dir(image.join("folder")).unwrap();
    let path = image.file("folder/file", bytes(10));
    // A new mount has an empty cache of its device.
    let (at, file) = (image.path(), image.path().with_file_name("image"));
    let (at, file) = (at.to_str().unwrap(), file.to_str().unwrap());
    if !run("umount", &[at]) || !run("mount", &["-o", "loop", file, at]) {
        return;
    }
    let Some(recording) = record(Backend::Touched, &[line("stream", &path)]) else { return };

    let mounts = own_mounts();
    let mount = mounts.at(&image.path()).unwrap();
    let device = File::open(Path::new(&mount.source)).unwrap();
    let number = device.metadata().unwrap().rdev();
    let number = DeviceNumber { major: rustix::fs::major(number), minor: rustix::fs::minor(number) };
    let recorded = recording.devices.iter().find(|recorded| recorded.device == number).unwrap();
    assert_eq!(recorded.filesystem, file_system_of(File::open(&path).unwrap()).unwrap());
    let blocks = 64 * 256 * 4096 / page_size();
    let cached = cached_ranges(&device, range(0, blocks)).unwrap();
    let pages: Vec<PageRange> = recorded.touches.iter().map(|touch| touch.pages).collect();
    // At least the inode table, the folder and the map of neither, which were read for the open.
    assert!(pages.len() >= 2, "{pages:?}");
    assert_eq!(
        common(&pages, &cached).iter().map(|r| r.len()).sum::<u64>(),
        pages.iter().map(|r| r.len()).sum::<u64>()
    );
    assert!(recorded.touches.iter().all(|touch| touch.at.0 > 0));
    assert_eq!(pages_of(&recording, &path), [range(0, 10)]);
}

#[test]
fn files_of_two_subvolumes_are_told_apart() {
    let Some(image) = LoopImage::new("btrfs", 320) else { return };
    let volumes = ["one", "two"].map(|name| image.join(name));
    for volume in &volumes {
        if !run("btrfs", &["-q", "subvolume", "create", volume.to_str().unwrap()]) {
            return;
        }
    }
    let paths = ["one/file", "two/file"].map(|name| image.file(name, bytes(50)));
    let inodes = paths.each_ref().map(|path| fs::metadata(path).unwrap().ino());
    assert_eq!(inodes[0], inodes[1], "the case to be tested");
    let _ = paths.each_ref().map(|path| make_cold(path));
    let script = [line("read 3 2", &paths[0]), line("read 30 1", &paths[1])];
    let Some(recording) = record(Backend::Touched, &script) else { return };
    assert_eq!(pages_of(&recording, &paths[0]), [range(3, 5)]);
    assert_eq!(pages_of(&recording, &paths[1]), [range(30, 31)]);
    // btrfs's own structures are no file that lacks a name.
    assert_eq!(recording.unnamed_pages, 0);
}

#[test]
fn an_overlays_files_are_recorded_by_their_names_there() {
    let Some(image) = LoopImage::new("ext4", 64) else { return };
    for name in ["lower", "upper", "work", "merged"] {
        fs::create_dir(image.join(name)).unwrap();
    }
    let make = |name: &str, pages| {
        let layer = if name.contains("warm") { "upper" } else { "lower" };
        image.file(Path::new(layer).join(name), bytes(pages))
    };
    let mut scene = Scene::new(make);
    let merged = image.join("merged");
    let layers = format!(
        "lowerdir={},upperdir={},workdir={}",
        image.join("lower").display(),
        image.join("upper").display(),
        image.join("work").display()
    );
    if !run("mount", &["-t", "overlay", "overlay", "-o", &layers, merged.to_str().unwrap()]) {
        return;
    }
    let seen = |path: &Path| merged.join(path.file_name().unwrap());
    for layer in ["lower", "upper"] {
        let from = image.join(layer).to_str().unwrap().to_owned();
        scene.script.iter_mut().for_each(|line| *line = line.replace(&from, merged.to_str().unwrap()));
    }
    for (path, _) in &mut scene.expected {
        *path = seen(path);
    }
    scene.absent.iter_mut().for_each(|path| *path = seen(path));
    scene.check(Backend::Touched);
}
