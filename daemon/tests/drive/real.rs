//! The drive on the real kernel: what is read is what is stored, in the model's time, and nothing is left behind.

#![allow(clippy::unwrap_used, reason = "what cannot be set up is a failed test")]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::drive::parameters::Kind;
use crate::drive::{Drive, calibrate};

const MIB: u64 = 1 << 20;

/// A drive of 64 MiB in which each page holds its own number; `None`, said, where it cannot be had.
fn numbered(kind: Kind) -> Option<Drive> {
    let store = tempfile::tempfile_in("/dev/shm").unwrap();
    let page: Vec<u8> = (0..64 * MIB / 8).flat_map(|word| (word / 512).to_le_bytes()).collect();
    store.write_all_at(&page, 0).unwrap();
    if rustix::process::geteuid().is_root()
        && Path::new("/dev/fuse").exists()
        && Path::new("/dev/loop-control").exists()
    {
        return Some(Drive::start(kind, store).unwrap());
    }
    let missing = "root, /dev/fuse and loop devices";
    assert!(std::env::var_os("HEADSTART_REQUIRE_ROOT_TESTS").is_none(), "missing: {missing}");
    eprintln!("SKIPPED: {missing}");
    None
}

#[test]
fn the_device_holds_the_store_and_is_dressed_as_its_kind() {
    for kind in [Kind::Hdd, Kind::Sata] {
        let Some(drive) = numbered(kind) else { return };
        let mut content = Vec::new();
        File::open(drive.device()).unwrap().read_to_end(&mut content).unwrap();
        assert_eq!(content.len() as u64, 64 * MIB);
        let pages = content.chunks_exact(4096).zip(0_u64..);
        assert!(pages.clone().all(|(page, number)| page.chunks_exact(8).all(|w| w == number.to_le_bytes())));
        assert_eq!(pages.count() as u64, 64 * MIB / 4096);

        let queue = Path::new("/sys/block").join(drive.device().file_name().unwrap()).join("queue");
        let attribute = |name| fs::read_to_string(queue.join(name)).unwrap().trim().to_owned();
        assert_eq!(attribute("rotational"), if kind == Kind::Hdd { "1" } else { "0" });
        assert!(attribute("scheduler").contains(&format!("[{}]", kind.scheduler())));
        assert_eq!(attribute("read_ahead_kb"), "128");
    }
}

#[test]
fn counters_count_and_are_reset_through_the_file() {
    let Some(drive) = numbered(Kind::Emmc) else { return };
    let began = Instant::now();
    let mut page = [0; 4096];
    File::open(drive.device()).unwrap().read_exact_at(&mut page, 32 * MIB).unwrap();
    assert!(began.elapsed() >= Duration::from_micros(300), "answered before the drive could");
    let shown: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(drive.counters_file()).unwrap()).unwrap();
    assert_eq!(shown["reads"], drive.counters().reads);
    assert!(drive.counters().reads >= 1 && drive.counters().read_bytes.0 >= 4096);
    assert!(drive.counters().busy.0 >= 350_000);
    fs::write(drive.counters_file(), "0").unwrap();
    assert_eq!((drive.counters().reads, drive.counters().busy.0), (0, 0));
}

#[test]
fn writes_reach_the_store_and_cost_nothing() {
    let Some(drive) = numbered(Kind::Hdd) else { return };
    let mut device = File::options().read(true).write(true).open(drive.device()).unwrap();
    device.write_all(&[7; 8192]).unwrap();
    device.sync_all().unwrap();
    drop(device);
    drive.forget().unwrap();
    let mut back = [0; 8192];
    File::open(drive.device()).unwrap().read_exact(&mut back).unwrap();
    assert_eq!(back, [7; 8192]);
    assert_eq!(drive.counters().written_bytes.0, 8192);
}

#[test]
fn several_requests_are_in_the_drive_at_once() {
    let Some(drive) = numbered(Kind::Emmc) else { return };
    let check = calibrate::check(&drive, calibrate::PATTERNS[2]).unwrap();
    assert!(check.counters.deepest_queue > 16, "{check:?}");
    // One after the other would take 375 µs each. The margin is for a machine that does much else.
    assert!(check.measured < Duration::from_micros(250), "{check:?}");
    assert!(check.measured.mul_f64(1.1) > check.expected, "{check:?}");
}

#[test]
fn nothing_is_left_when_the_drive_is_dropped() {
    let Some(drive) = numbered(Kind::Sata) else { return };
    let (device, file) = (drive.device().to_owned(), drive.counters_file());
    let backing = Path::new("/sys/block").join(device.file_name().unwrap()).join("loop/backing_file");
    assert!(fs::read_to_string(&backing).unwrap().contains("headstart-drive-"));
    drop(drive);
    let directory = file.parent().unwrap().to_owned();
    assert!(!directory.exists());
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(directory.to_str().unwrap()));
    // Another test may have taken the device meanwhile, but not with this file.
    let now = fs::read_to_string(&backing).unwrap_or_default();
    assert!(!now.starts_with(directory.to_str().unwrap()), "{now}");
}
