//! `kill -9` of the daemon at random moments while apps start, some of them for the first time: every program has to start
//! and end as ever, the history to be whole, and each launch in it once.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use headstart_daemon::store::Store;
use rand::RngExt as _;

use crate::apps::Apps;
use crate::daemon::{Daemon, config};

const APPS: usize = 6;

pub(crate) fn measure(times: usize) -> Result<bool> {
    let apps = Apps::install(APPS, 4)?;
    let mut daemon = Daemon::start(&config(0.3, 0.5))?;
    let mut rng = rand::rng();
    let mut started = 0;
    for _ in 0..times {
        daemon.register(&apps)?;
        let end = Instant::now() + Duration::from_millis(rng.random_range(0..2500));
        while Instant::now() < end {
            started += start_some(&apps, rng.random_range(1..=3), rng.random_range(0..APPS))?;
            std::thread::sleep(Duration::from_millis(rng.random_range(0..120)));
        }
        // Programs that start in this very moment.
        let last = apps.command(rng.random_range(0..APPS)).spawn()?;
        std::thread::sleep(Duration::from_micros(rng.random_range(0..3000)));
        daemon.kill()?;
        ensure!(wait(last)?, "a program did not start when the daemon was killed");
        started += 1;
        let store = Store::open(&daemon.state_dir())?;
        ensure!(store.set_aside.is_none(), "the history was damaged");
        daemon.restart()?;
    }
    let opened = Store::open(&daemon.state_dir())?;
    let uid = rustix::process::getuid().as_raw();
    let all = opened.store.launches(uid, None, None, u32::MAX)?;
    let mut moments: Vec<_> = all.value.iter().map(|launch| (launch.began, launch.app.clone())).collect();
    moments.sort();
    moments.dedup();
    let interrupted = all
        .value
        .iter()
        .filter(|launch| launch.exclusions.contains(&headstart_shared::launch::Exclusion::Interrupted));
    println!(
        "killed {times} times; {started} programs started; {} launches in the history, {} of them interrupted",
        all.value.len(),
        interrupted.count()
    );
    Ok(all.damaged.is_empty() && moments.len() == all.value.len())
}

fn start_some(apps: &Apps, count: usize, first: usize) -> Result<usize> {
    let children = (0..count).map(|n| {
        let app = (first + n) % APPS;
        apps.make_cold(app)?;
        Ok(apps.command(app).spawn()?)
    });
    for child in children.collect::<Result<Vec<_>>>()? {
        ensure!(wait(child)?, "a program did not start");
    }
    Ok(count)
}

/// Waits for a program, but not for ever: whether it ended well.
fn wait(mut child: std::process::Child) -> Result<bool> {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if Instant::now() > deadline {
            child.kill()?;
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
