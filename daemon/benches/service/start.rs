//! From the daemon's exec to its answer on the bus, and listing the apps, with a history of five years.

use std::time::Instant;

use anyhow::Result;
use headstart_daemon::store::Store;

use crate::daemon::Daemon;
use crate::fill;
use crate::spread::Sorted;

/// Milliseconds.
const START: f64 = 200.0;
const LIST: f64 = 50.0;
const APPS: usize = 500;
const TIMES: usize = 11;

pub(crate) fn measure(launches: usize) -> Result<bool> {
    let mut daemon = Daemon::start("")?;
    daemon.kill()?;
    let began = Instant::now();
    fill::fill(
        &mut Store::open(&daemon.state_dir())?.store,
        rustix::process::getuid().as_raw(),
        APPS,
        launches,
    )?;
    println!("{APPS} apps with {launches} launches, written in {:.0} s", began.elapsed().as_secs_f64());
    let (mut starts, mut lists) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        let began = Instant::now();
        daemon.restart()?;
        starts.push(began.elapsed().as_secs_f64() * 1e3);
        let began = Instant::now();
        let listed = daemon.list_apps()?;
        anyhow::ensure!(listed >= APPS, "only {listed} apps are listed");
        lists.push(began.elapsed().as_secs_f64() * 1e3);
        daemon.kill()?;
    }
    let (starts, lists) = (Sorted::of(starts), Sorted::of(lists));
    println!("from exec to the first answer, ms: {starts}");
    println!("the first list of all apps, ms: {lists}");
    Ok(starts.median() <= START && lists.median() <= LIST)
}
