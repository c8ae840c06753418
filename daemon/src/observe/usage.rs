//! What the processes of a launch use, sampled from `/proc` (`proc(5)`) while it goes on.
//!
//! A process belongs to the launch if it descends from its first one. Once seen it is remembered by number and start
//! time, also when its parent ends and it is given to another. Where systemd made a control group for this very launch,
//! all that are in it belong to it, so that none escapes whose parent ended before it was seen.
//!
//! The kernel adds what a process used to its parent's account when that reaps it. The sum is therefore over the living,
//! each with what it reaped, and over those of the dead whose parent is not among the launch's: nobody in it reaped these.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use headstart_shared::launch::{ProcessSpan, Usage, UsageSample};
use headstart_shared::units::{Bytes, Nanos};

use super::delays::Delays;
use crate::identify::unit::Unit;
use crate::roots::Roots;
use crate::watch::processes::{ProcessKey, Times, read_times};
use crate::watch::start::Monotonic;

/// Processes that are told apart in a timeline. A build that someone starts from a launcher has thousands.
const SPANS: usize = 1_000;

/// Samples the processes of one launch.
#[derive(Debug)]
pub struct Sampler {
    roots: Roots,
    first: ProcessKey,
    /// The list of the processes of the control group that was made for it.
    group: Option<PathBuf>,
    started: Monotonic,
    seen: BTreeMap<ProcessKey, Seen>,
    delays: Option<Delays>,
    last: Totals,
    machine: u64,
    samples: Vec<UsageSample>,
}

/// A process of the launch, as it was last seen.
#[derive(Debug)]
struct Seen {
    parent: i32,
    /// Whether its parent is one of the launch's.
    inside: bool,
    name: String,
    began: Nanos,
    ended: Option<Nanos>,
    times: Times,
    read: Option<Bytes>,
    blocked: Option<Nanos>,
}

/// Running totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// CPU time in user mode.
    pub user: Nanos,
    /// CPU time in the kernel.
    pub system: Nanos,
    /// Page faults that waited for a drive.
    pub major_faults: u64,
    /// Bytes read from drives; `None` if a process may not be asked.
    pub read: Option<Bytes>,
    /// Time waited for drives; `None` if the kernel does not count it.
    pub blocked: Option<Nanos>,
}

impl Totals {
    /// CPU time.
    #[must_use]
    pub fn cpu(&self) -> Nanos {
        self.user + self.system
    }
}

impl Sampler {
    /// Watches the launch that begins with process `first`, executed at `started`.
    #[must_use]
    pub fn new(roots: &Roots, first: ProcessKey, started: Monotonic) -> Self {
        Self {
            roots: roots.clone(),
            first,
            group: group(roots, first),
            started,
            seen: BTreeMap::new(),
            delays: Delays::open().ok(),
            last: Totals::default(),
            machine: machine_reads(roots),
            samples: Vec::new(),
        }
    }

    /// Looks at all processes, and gives what they have used together until now.
    pub fn sample(&mut self) -> Totals {
        let at = Monotonic::now().since(self.started);
        self.find(at);
        let keys: Vec<ProcessKey> = self.alive().collect();
        for key in keys {
            self.look(key, at);
        }
        let totals = self.totals();
        let machine = machine_reads(&self.roots);
        self.samples.push(UsageSample {
            at,
            cpu: totals.cpu() - self.last.cpu(),
            blocked: totals.blocked.map(|now| now - self.last.blocked.unwrap_or_default()),
            read: totals.read.unwrap_or_default() - self.last.read.unwrap_or_default(),
            machine_read: Bytes(machine.saturating_sub(self.machine)),
        });
        self.machine = machine;
        self.last = totals;
        totals
    }

    /// Whether no process is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.alive().next().is_none()
    }

    /// Whether the first process is gone.
    #[must_use]
    pub fn first_is_gone(&self) -> bool {
        self.seen.get(&self.first).is_none_or(|seen| seen.ended.is_some())
    }

    /// Whether a process is, or was, one of the launch's.
    #[must_use]
    pub fn has(&self, pid: i32) -> bool {
        self.seen.keys().any(|key| key.pid == pid)
    }

    /// The living processes.
    pub fn alive(&self) -> impl Iterator<Item = ProcessKey> {
        self.seen.iter().filter(|(_, seen)| seen.ended.is_none()).map(|(key, _)| *key)
    }

    /// The account of the launch so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let Totals { user, system, major_faults, read, blocked } = self.last;
        let processes = u32::try_from(self.seen.len()).unwrap_or(u32::MAX);
        Usage { user, system, blocked, major_faults, read, processes }
    }

    /// What is needed to draw it.
    #[must_use]
    pub fn into_timeline(self) -> (Vec<ProcessSpan>, Vec<UsageSample>) {
        let span = |(key, seen): (ProcessKey, Seen)| ProcessSpan {
            pid: key.pid,
            parent: if key == self.first { 0 } else { seen.parent },
            name: seen.name,
            began: seen.began,
            ended: seen.ended,
            cpu: seen.times.user + seen.times.system,
            blocked: seen.blocked,
            read: seen.read,
        };
        let mut spans: Vec<ProcessSpan> = self.seen.into_iter().map(span).collect();
        spans.sort_by_key(|span| (span.began, span.pid));
        spans.truncate(SPANS);
        (spans, self.samples)
    }

    /// Adds processes that have come since.
    fn find(&mut self, at: Nanos) {
        let mut next: Vec<(i32, i32)> = self.alive().flat_map(|key| children(&self.roots, key.pid)).collect();
        if self.seen.is_empty() {
            next.push((self.first.pid, 0));
        }
        if let Some(group) = &self.group {
            let known = |pid| self.seen.keys().any(|key| key.pid == pid);
            let new = members(group).into_iter().filter(|pid| !known(*pid));
            // Whoever was its parent is gone, or will be met on the way.
            next.splice(0..0, new.map(|pid| (pid, self.first.pid)).collect::<Vec<_>>());
        }
        while let Some((pid, parent)) = next.pop() {
            let Some(times) = read_times(&self.roots, pid) else { continue };
            let key = ProcessKey { pid, started: times.started };
            if self.seen.contains_key(&key) || (parent == 0 && key != self.first) {
                continue;
            }
            let inside = parent != 0;
            let began = if inside { at } else { Nanos(0) };
            let name = name(&self.roots, pid, &times.comm);
            let seen = Seen { parent, inside, name, began, ended: None, times, read: None, blocked: None };
            self.seen.insert(key, seen);
            next.extend(children(&self.roots, pid));
        }
    }

    /// Looks at one process again.
    fn look(&mut self, key: ProcessKey, at: Nanos) {
        let times = read_times(&self.roots, key.pid).filter(|now| now.started == key.started && !now.zombie);
        let Some(seen) = self.seen.get_mut(&key) else { return };
        let Some(times) = times else {
            seen.ended = Some(at);
            return;
        };
        // An exec changes the name.
        if times.comm != seen.times.comm {
            seen.name = name(&self.roots, key.pid, &times.comm);
        }
        seen.times = times;
        seen.read = read_bytes(&self.roots, key.pid).or(seen.read);
        if let Some(delays) = &mut self.delays {
            seen.blocked = delays.of(key.pid).ok().or(seen.blocked);
        }
    }

    fn totals(&self) -> Totals {
        let mut totals = Totals { read: Some(Bytes(0)), ..Totals::default() };
        for seen in self.seen.values() {
            totals.blocked = match (totals.blocked, seen.blocked) {
                (Some(sum), Some(more)) => Some(sum + more),
                (sum, more) => sum.or(more),
            };
            if seen.ended.is_some() && seen.inside {
                continue;
            }
            totals.user += seen.times.user + seen.times.reaped_user;
            totals.system += seen.times.system + seen.times.reaped_system;
            totals.major_faults += seen.times.major_faults + seen.times.reaped_major_faults;
            totals.read = totals.read.zip(seen.read).map(|(sum, more)| sum + more);
        }
        // What a process of the launch did is not undone by its end.
        Totals {
            user: totals.user.max(self.last.user),
            system: totals.system.max(self.last.system),
            major_faults: totals.major_faults.max(self.last.major_faults),
            read: totals.read.or(self.last.read).max(self.last.read),
            blocked: totals.blocked,
        }
    }
}

/// The control group that was made for a launch: an app's unit in which nothing is older than its first process.
fn group(roots: &Roots, first: ProcessKey) -> Option<PathBuf> {
    let text = fs::read_to_string(roots.proc.join(format!("{}/cgroup", first.pid))).ok()?;
    Unit::of_cgroup(&text)?;
    // Only version 2 has one hierarchy, which is that of systemd.
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let list = roots.sys.join("fs/cgroup").join(path).join("cgroup.procs");
    let older = |pid: i32| read_times(roots, pid).is_some_and(|times| times.started < first.started);
    let members = members(&list);
    (members.contains(&first.pid) && !members.into_iter().any(older)).then_some(list)
}

fn members(list: &std::path::Path) -> Vec<i32> {
    let text = fs::read_to_string(list).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// The children of all threads of a process, each with its number.
fn children(roots: &Roots, pid: i32) -> Vec<(i32, i32)> {
    let Ok(threads) = fs::read_dir(roots.proc.join(format!("{pid}/task"))) else { return Vec::new() };
    let lists =
        threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|n| n.parse().ok()).collect::<Vec<i32>>())
        .map(|n| (n, pid))
        .collect()
}

/// What a process had read from drives, with what its reaped children had.
fn read_bytes(roots: &Roots, pid: i32) -> Option<Bytes> {
    let text = fs::read_to_string(roots.proc.join(format!("{pid}/io"))).ok()?;
    text.lines().find_map(|line| line.strip_prefix("read_bytes:"))?.trim().parse().ok().map(Bytes)
}

/// Bytes that the whole machine read from drives since boot (`pgpgin` of `/proc/vmstat`, in KiB).
pub(super) fn machine_reads(roots: &Roots) -> u64 {
    let text = fs::read_to_string(roots.proc.join("vmstat")).unwrap_or_default();
    let kib = text.lines().find_map(|line| line.strip_prefix("pgpgin ")?.parse::<u64>().ok());
    kib.unwrap_or(0).saturating_mul(1024)
}

/// The file name of what a process executes; of an interpreted script the script's, as its first argument that is a path.
fn name(roots: &Roots, pid: i32, comm: &str) -> String {
    let folder = roots.proc.join(pid.to_string());
    let Ok(exe) = fs::read_link(folder.join("exe")) else { return comm.to_owned() };
    let base = |path: PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let arguments = fs::read(folder.join("cmdline")).unwrap_or_default();
    let script = arguments.split(|b| *b == 0).nth(1).filter(|first| first.starts_with(b"/"));
    let script = script.and_then(|path| base(PathBuf::from(String::from_utf8_lossy(path).into_owned())));
    match (base(exe), script) {
        (Some(program), Some(script)) if crate::watch::processes::is_interpreter_name(&program) => script,
        (Some(program), _) => program,
        (None, _) => comm.to_owned(),
    }
}

#[cfg(test)]
#[path = "usage_tests.rs"]
mod tests;
