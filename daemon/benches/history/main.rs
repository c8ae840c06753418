//! How large a history becomes and how long it takes to open and to list, with 500 apps and 100,000 launches in five
//! years, and whether that is within the limits.
//!
//!     cargo bench -p headstart-daemon --bench history [-- APPS LAUNCHES]

mod fill;

use std::path::Path;
use std::time::{Duration, Instant};

use chrono::Utc;
use headstart_daemon::store::{Retention, Store};
use headstart_shared::units::Bytes;

use fill::fill;

const UID: u32 = 1000;
const DAY: Duration = Duration::from_hours(24);
/// The whole history, at most.
const SIZE: Bytes = Bytes(200 << 20);
/// Opening is most of the daemon's start, which may take 200 ms.
const OPEN: Duration = Duration::from_millis(150);
/// Listing may take 50 ms over the bus, which takes its share.
const LIST: Duration = Duration::from_millis(25);

fn main() -> anyhow::Result<()> {
    let numbers: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let (apps, launches) = match numbers[..] {
        [apps, launches] => (apps.max(1), launches),
        _ => (500, 100_000),
    };
    let folder = tempfile::tempdir()?;
    println!("{apps} apps, {launches} launches in five years");
    let began = Instant::now();
    fill(&mut open(folder.path())?.0, UID, apps, launches)?;
    println!("recorded in        {:.1} s", began.elapsed().as_secs_f64());
    let size = Bytes(std::fs::metadata(folder.path().join("history.db"))?.len());
    println!("size before        {size}");

    let mut store = open(folder.path())?.0;
    let began = Instant::now();
    let retention = Retention { launches: DAY * 365 * 2, activity: DAY * 90, size: SIZE };
    let removed = store.maintain(Utc::now(), &retention)?;
    println!("upkeep             {:.1} s, {removed:?}", began.elapsed().as_secs_f64());
    let used = store.used()?;
    println!("size after         {used} in use");
    let began = Instant::now();
    anyhow::ensure!(store.check_weekly(Utc::now() + chrono::Duration::weeks(2))?);
    println!("looking at all     {:.1} s", began.elapsed().as_secs_f64());
    drop(store);

    let opened = median(|| Ok(open(folder.path())?.1))?;
    println!("opening            {:.1} ms", opened.as_secs_f64() * 1e3);
    let (store, _) = open(folder.path())?;
    let listed = median(|| {
        let began = Instant::now();
        let records = store.app_records(UID)?;
        anyhow::ensure!(records.len() == apps && records.iter().all(|record| record.verdict.is_some()));
        Ok(began.elapsed())
    })?;
    println!("listing the apps   {:.1} ms", listed.as_secs_f64() * 1e3);
    let paged = median(|| {
        let began = Instant::now();
        anyhow::ensure!(store.launches(UID, None, None, 100)?.damaged.is_empty());
        Ok(began.elapsed())
    })?;
    println!("100 launches       {:.1} ms", paged.as_secs_f64() * 1e3);
    anyhow::ensure!(used <= SIZE, "more than {SIZE}");
    anyhow::ensure!(opened <= OPEN, "opening took more than {OPEN:?}");
    anyhow::ensure!(listed <= LIST, "listing took more than {LIST:?}");
    Ok(())
}

fn open(folder: &Path) -> anyhow::Result<(Store, Duration)> {
    let began = Instant::now();
    let opened = Store::open(folder)?;
    anyhow::ensure!(opened.set_aside.is_none());
    Ok((opened.store, began.elapsed()))
}

fn median(mut time: impl FnMut() -> anyhow::Result<Duration>) -> anyhow::Result<Duration> {
    let mut times = (0..9).map(|_| time()).collect::<anyhow::Result<Vec<_>>>()?;
    times.sort();
    Ok(times[times.len() / 2])
}
