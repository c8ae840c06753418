//! From a program's exec to the first read ahead for it, by the kernel's own stamps: its call of `execve(2)`, and the first
//! `readahead(2)` or `pread64(2)` of a thread that carries out the plan.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use headstart_daemon::roots::Roots;
use headstart_daemon::trace::tracefs::{Instance, Tracefs};

use crate::apps::Apps;
use crate::daemon::{Daemon, config};
use crate::spread::Sorted;

/// Milliseconds from the exec to the first read, for 99 of 100 launches.
const BOUND: f64 = 2.0;

pub(crate) fn measure(launches: usize) -> Result<bool> {
    let apps = Apps::install(1, 24)?;
    let daemon = Daemon::start(&config(0.0, 0.0))?;
    daemon.register(&apps)?;
    daemon.learn(&apps, 0)?;
    let tracefs = Tracefs::find(&Roots::default())?;
    let mut times = Vec::new();
    for _ in 0..launches {
        std::thread::sleep(Duration::from_millis(400));
        apps.make_cold(0)?;
        let instance = Instance::create(&tracefs, Some(4096))?;
        let calls = ["execve", "readahead", "pread64"].map(|call| format!("syscalls/sys_enter_{call}"));
        calls.iter().try_for_each(|call| instance.enable(call))?;
        instance.start()?;
        let mut child = apps.command(0).spawn()?;
        let pid = child.id();
        child.wait()?;
        std::thread::sleep(Duration::from_millis(50));
        instance.stop()?;
        let text = std::fs::read_to_string(instance.path().join("trace"))?;
        let (exec, read) = stamps(&text, pid);
        times.push((read.context("nothing was read ahead")? - exec.context("no exec was seen")?) * 1e3);
    }
    let times = Sorted::of(times);
    println!("from execve to the first read, ms: {times}");
    ensure!(times.len() == launches);
    Ok(times.percentile(0.99) <= BOUND)
}

/// The moments, in seconds, of the process's exec and of the first read after it.
fn stamps(trace: &str, pid: u32) -> (Option<f64>, Option<f64>) {
    let (of_process, mut exec, mut read) = (format!("-{pid} "), None, None);
    for line in trace.lines().filter(|line| !line.starts_with('#')) {
        // "       read vda/0-1234    [000] .....  12.345678: sys_readahead(…"
        let Some((head, call)) = line.split_once(": ") else { continue };
        let at = || head.rsplit(' ').next().and_then(|at| at.parse::<f64>().ok());
        if call.starts_with("sys_execve") && head.contains(&of_process) {
            exec = exec.or_else(at);
        } else if exec.is_some() && head.trim_start().starts_with("read ") {
            read = read.or_else(at);
        }
    }
    (exec, read)
}
