//! Everything at once for long: launches at random, upgrades of the programs underneath, memory that runs short, a disk that
//! fills. At the end every start has to be accounted for, and the history to be whole.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use headstart_daemon::store::Store;
use rand::RngExt as _;

use crate::apps::Apps;
use crate::daemon::{Daemon, config};

const APPS: usize = 12;
/// After an upgrade, the new program is not watched for a moment.
const NOTICED: Duration = Duration::from_secs(5);
/// Of the history's disk, and of what fills it.
const DISK: &str = "24m";
const BALLAST: usize = 24 << 20;
/// Memory is taken until only so much is left.
const LEFT: u64 = 512 << 20;

pub(crate) fn measure(span: Duration) -> Result<bool> {
    let apps = Apps::install(APPS, 8)?;
    let mut daemon = Daemon::start(&config(0.125, 0.2))?;
    daemon.on_small_disk(DISK)?;
    daemon.register(&apps)?;
    let (mut rng, end) = (rand::rng(), Instant::now() + span);
    let mut upgraded = [None; APPS];
    let (mut started, mut upgrades, mut fills, mut shortages) = (0, 0, 0, 0);
    while Instant::now() < end {
        match rng.random_range(0..1000) {
            0..10 => {
                let app = rng.random_range(0..APPS);
                apps.upgrade(app)?;
                upgraded[app] = Some(Instant::now());
                upgrades += 1;
            }
            10..13 => {
                fills += fill(&daemon.state_dir(), Duration::from_millis(rng.random_range(500..20_000)))?;
            }
            13..15 => shortages += take_memory(Duration::from_secs(3))?,
            _ => {
                let app = rng.random_range(0..APPS);
                if upgraded[app].is_some_and(|at: Instant| at.elapsed() < NOTICED) {
                    continue;
                }
                if rng.random_bool(0.7) {
                    apps.make_cold(app)?;
                }
                ensure!(apps.command(app).status()?.success(), "a program did not start");
                started += 1;
                std::thread::sleep(Duration::from_millis(rng.random_range(0..600)));
            }
        }
    }
    // What waits for room on the disk is tried again each minute.
    std::thread::sleep(Duration::from_secs(if fills > 0 { 70 } else { 5 }));
    println!(
        "{started} programs started; {upgrades} upgrades, {fills} full disks, {shortages} shortages of memory"
    );
    account(&mut daemon, started)
}

/// Whether what the daemon counted, what it stored and what was started agree.
fn account(daemon: &mut Daemon, started: u64) -> Result<bool> {
    let status = daemon.status()?;
    daemon.kill()?;
    let opened = Store::open(&daemon.state_dir())?;
    let uid = rustix::process::getuid().as_raw();
    let stored = opened.store.launches(uid, None, None, u32::MAX)?;
    let hot: u64 = opened.store.app_records(uid)?.iter().map(|record| record.hot).sum();
    println!(
        "{} seen: {} followed, {} parts, {} again, {} of no app, {} unwatched; {} reports of lost ones",
        status.starts,
        status.followed,
        status.parts,
        status.again,
        status.others,
        status.unwatched,
        status.lost
    );
    println!(
        "{} launches and {hot} hot starts in the history; {} KiB in memory",
        stored.value.len(),
        status.resident >> 10
    );
    let whole = opened.set_aside.is_none() && stored.damaged.is_empty();
    Ok(whole && status.starts == started && status.followed == stored.value.len() as u64 + hot)
}

/// Fills the disk for a while.
fn fill(folder: &Path, span: Duration) -> Result<u32> {
    let ballast = folder.join("ballast");
    // As much as there is room for.
    let _ = fs::write(&ballast, vec![1; BALLAST]);
    std::thread::sleep(span);
    fs::remove_file(ballast)?;
    Ok(1)
}

/// Leaves the machine little memory for a while.
fn take_memory(span: Duration) -> Result<u32> {
    let mut taken = Vec::new();
    while available()? > LEFT {
        taken.push(vec![1_u8; 64 << 20]);
    }
    std::thread::sleep(span);
    drop(taken);
    Ok(1)
}

fn available() -> Result<u64> {
    let text = fs::read_to_string("/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib =
        line.and_then(|rest| rest.split_whitespace().next()).context("no MemAvailable in /proc/meminfo")?;
    Ok(kib.parse::<u64>()? * 1024)
}
