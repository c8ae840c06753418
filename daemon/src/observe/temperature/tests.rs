use std::fs;
use std::process::Command;
use std::time::Instant;

use headstart_shared::run::AppId;
use headstart_shared::units::Nanos;

use super::*;
use crate::opening::identity_of;
use crate::profile::testing::profile;
use crate::profile::{FileProfile, History, RangeUse};
use crate::sys::loop_images::{LoopImage, skip};

const PROC: &str = "/proc";

fn learned(paths: &[PathBuf]) -> Profile {
    let file = |path: &PathBuf| {
        let identity = identity_of(fs::File::open(path).unwrap()).unwrap();
        let end = identity.size.div_ceil(4096);
        let range =
            RangeUse { pages: PageRange { start: 0, end }, first_need: Nanos(0), history: History(1) };
        FileProfile { path: path.clone(), identity, earlier: History(0), ranges: vec![range] }
    };
    let files = paths.iter().map(file).collect();
    Profile { app: AppId("a".into()), page_size: 4096, runs: 1, files, devices: Vec::new() }
}

#[test]
fn a_sample_is_small_and_draws_large_files_more_than_small_ones() {
    let sample = Sample::of(&profile("a", 1_000));
    let weight: u64 = sample.files.iter().map(|f| f.weight).sum();
    assert!(sample.files.len() <= FILES && (20..=FILES as u64).contains(&weight), "{sample:?}");
    assert_eq!(Sample::from_bytes(&sample.to_bytes()), sample);
    assert_eq!(Sample::from_bytes(b"\xff\xff"), Sample::default());
    assert_eq!(Sample::default().cached_share(Path::new(PROC)), None, "nothing to look at");
}

#[test]
fn what_is_gone_tells_nothing() {
    let profile = profile("a", 9);
    // That a name leads nowhere is cached by looking it up, and only then is known.
    assert!(profile.files.iter().all(|file| fs::metadata(&file.path).is_err()));
    assert_eq!(Sample::of(&profile).cached_share(Path::new(PROC)), None);
}

/// Reads that a block device has answered since boot.
fn reads(device: &str) -> String {
    let stat = fs::read_to_string(format!("/sys/class/block/{device}/stat")).unwrap();
    stat.split_whitespace().next().unwrap().to_owned()
}

#[test]
fn looking_reads_nothing_and_warms_nothing() {
    let Some(image) = LoopImage::new("ext4", 64) else { return };
    let paths: Vec<PathBuf> = (0..40).map(|n| image.file(format!("{n}"), 100_000)).collect();
    let sample = Sample::of(&learned(&paths));
    let share = || sample.cached_share(Path::new(PROC));
    assert_eq!(share(), Some(1.0), "just written");
    let mount = image.path().to_str().unwrap().to_owned();
    let source = Command::new("findmnt").args(["-no", "SOURCE", &mount]).output().unwrap();
    let device = String::from_utf8(source.stdout).unwrap().trim().trim_start_matches("/dev/").to_owned();
    // Mounting anew forgets what was cached of it, and of nothing else.
    for arguments in [vec!["umount", &mount], vec!["mount", "-o", "loop", &image.folder_image(), &mount]] {
        assert!(Command::new(arguments[0]).args(&arguments[1..]).status().unwrap().success());
    }
    if share().is_none() {
        return skip("openat2 with RESOLVE_CACHED");
    }
    let before = reads(&device);
    let began = Instant::now();
    for _ in 0..10 {
        assert_eq!(share(), Some(0.0));
    }
    eprintln!("looking takes {:?}", began.elapsed() / 10);
    assert_eq!(reads(&device), before);
    for path in &paths[..20] {
        fs::read(path).unwrap();
    }
    let half = share().unwrap();
    assert!((0.3..=0.7).contains(&half), "{half}");
    for path in &paths {
        fs::read(path).unwrap();
    }
    assert_eq!(share(), Some(1.0));
    let began = Instant::now();
    share();
    eprintln!("looking at what is cached takes {:?}", began.elapsed());
}
