//! Processor, memory and wake-ups of the daemon while no app starts, with the apps of a desktop watched.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::apps::Apps;
use crate::daemon::{Daemon, config};

/// Shares of one processor, bytes and wake-ups a second.
const PROCESSOR: f64 = 0.001;
const MEMORY: u64 = 15 << 20;
const WAKE_UPS: f64 = 1.0;
/// As many as a full desktop has.
const APPS: usize = 150;

pub(crate) fn measure(span: Duration) -> Result<bool> {
    let apps = Apps::install(APPS, 0)?;
    let daemon = Daemon::start(&config(0.0, 0.0))?;
    daemon.register(&apps)?;
    std::thread::sleep(Duration::from_secs(2));
    let (before, began) = (Cost::of(daemon.pid())?, std::time::Instant::now());
    std::thread::sleep(span);
    let (after, seconds) = (Cost::of(daemon.pid())?, began.elapsed().as_secs_f64());
    let processor = (after.processor - before.processor) / seconds;
    #[expect(clippy::cast_precision_loss, reason = "a count")]
    let wake_ups = (after.switches - before.switches) as f64 / seconds;
    println!("over {seconds:.0} s, {APPS} apps watched:");
    println!("processor   {:.4} % of one", processor * 100.0);
    println!("wake-ups    {wake_ups:.2} a second");
    println!(
        "memory      {:.1} MiB resident, {:.1} of them its own",
        mib(after.resident),
        mib(after.anonymous)
    );
    Ok(processor <= PROCESSOR && wake_ups <= WAKE_UPS && after.resident <= MEMORY)
}

#[expect(clippy::cast_precision_loss, reason = "some millions")]
fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// What the kernel counts for a process, all threads of it that there are.
struct Cost {
    processor: f64,
    switches: u64,
    resident: u64,
    anonymous: u64,
}

impl Cost {
    fn of(pid: u32) -> Result<Self> {
        let folder = format!("/proc/{pid}");
        let status = fs::read_to_string(format!("{folder}/status"))?;
        let kib = |key| number(&status, key).map(|kib| kib * 1024);
        let (mut nanoseconds, mut switches) = (0, 0);
        for task in fs::read_dir(format!("{folder}/task"))? {
            let task = task?.path();
            // "<nanoseconds on a processor> <nanoseconds waited> <time slices>"
            let schedstat = fs::read_to_string(task.join("schedstat"))?;
            nanoseconds += schedstat.split(' ').next().context("schedstat is empty")?.parse::<u64>()?;
            switches += number(&fs::read_to_string(task.join("status"))?, "voluntary_ctxt_switches:")?;
        }
        #[expect(clippy::cast_precision_loss, reason = "some seconds")]
        let processor = nanoseconds as f64 / 1e9;
        Ok(Self { processor, switches, resident: kib("VmRSS:")?, anonymous: kib("RssAnon:")? })
    }
}

fn number(text: &str, key: &str) -> Result<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    let word = line.and_then(|rest| rest.split_whitespace().next());
    word.and_then(|word| word.parse().ok()).with_context(|| format!("no {key} in procfs"))
}
