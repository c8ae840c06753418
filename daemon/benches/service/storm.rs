//! A thousand starts a second of an app that is prefetched. What each takes is compared with the same starts of a program
//! that nobody watches; both in turns, so that whatever else the machine does concerns both.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::apps::Apps;
use crate::daemon::{Daemon, config};
use crate::spread::Sorted;

/// Starts in a second.
const RATE: u32 = 1000;
/// How much longer a watched start may take, by medians.
const BOUND: f64 = 0.02;

pub(crate) fn measure(turn: Duration, turns: usize) -> Result<bool> {
    let apps = Apps::install(2, 0)?;
    let daemon = Daemon::start(&config(0.0, 0.0))?;
    daemon.register(&apps)?;
    let unwatched = Apps::install(1, 0)?;
    let (mut ratios, mut executed, mut kept) = (Vec::new(), 0, Vec::new());
    for number in 0..turns {
        // The first of a turn has it a little harder: it is taken in turns as well.
        let mut medians = [0.0; 2];
        for arm in if number % 2 == 0 { [0, 1] } else { [1, 0] } {
            let from = if arm == 0 { &apps } else { &unwatched };
            let (times, rate) = storm(&mut from.command(0), turn)?;
            executed += if arm == 0 { times.len() as u64 } else { 0 };
            medians[arm] = times.median();
            kept.push(rate);
        }
        println!("watched {:.3} ms, not watched {:.3} ms", medians[0], medians[1]);
        ratios.push(medians[0] / medians[1] - 1.0);
    }
    std::thread::sleep(Duration::from_secs(1));
    let status = daemon.status()?;
    let ratios = Sorted::of(ratios.iter().map(|ratio| ratio * 100.0));
    println!("starts a second: {}", Sorted::of(kept));
    println!("longer by, %: {ratios}");
    println!(
        "{executed} starts: {} seen ({} followed, {} again, {} unwatched, {} of no app), {} lost and reported",
        status.starts, status.followed, status.again, status.unwatched, status.others, status.lost
    );
    // A report of loss says that some were lost, not how many.
    let all = status.starts == executed || status.lost > 0;
    Ok(ratios.median() <= BOUND * 100.0 && all)
}

/// Starts a program at the rate; gives what each start took from spawn to end, in milliseconds, and the rate reached.
fn storm(command: &mut Command, turn: Duration) -> Result<(Sorted, f64)> {
    let (began, step) = (Instant::now(), Duration::from_secs(1) / RATE);
    let mut times = Vec::new();
    command.stdin(std::process::Stdio::null());
    while began.elapsed() < turn {
        let due = began + step * u32::try_from(times.len())?;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let started = Instant::now();
        command.spawn()?.wait()?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    #[expect(clippy::cast_precision_loss, reason = "some thousands")]
    let rate = times.len() as f64 / began.elapsed().as_secs_f64();
    Ok((Sorted::of(times), rate))
}
