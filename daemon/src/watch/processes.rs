//! The processes of a run, read from `/proc` (`proc(5)`): which they are, and what they used.
//!
//! Invariant: a process is told apart by its number *and* its start time, so a number that was given to another process
//! meanwhile is never taken for the one it was.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::Read as _;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use headstart_shared::units::{Bytes, Nanos};

use crate::roots::Roots;

/// Who a process is: its number and when it started, in clock ticks since boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessKey {
    /// The process number.
    pub pid: i32,
    /// `starttime` of `/proc/PID/stat`.
    pub started: u64,
}

/// One process of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Which.
    pub key: ProcessKey,
    /// Its parent.
    pub parent: i32,
    /// The kernel's name for it: the file name of the program, at most 15 bytes.
    pub comm: String,
    /// What it executes, if that can be read.
    pub exe: Option<PathBuf>,
    /// Ended, but its parent has not asked how.
    pub zombie: bool,
}

/// What a run used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// CPU time, user and system.
    pub cpu: Nanos,
    /// Bytes it had read from a drive: `read_bytes` of `/proc/PID/io`. `None` if a process of it may not be read.
    pub read: Option<Bytes>,
}

/// `/proc/PID/stat`, as far as it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stat {
    comm: String,
    state: u8,
    parent: i32,
    /// Own and reaped children's, user and system, in clock ticks.
    ticks: u64,
    started: u64,
}

fn parse_stat(bytes: &[u8]) -> Option<Stat> {
    // The name is in brackets and may itself hold brackets and spaces: everything up to the last one.
    let open = bytes.iter().position(|&b| b == b'(')?;
    let close = bytes.iter().rposition(|&b| b == b')')?;
    let comm = String::from_utf8_lossy(bytes.get(open + 1..close)?).into_owned();
    let rest = std::str::from_utf8(bytes.get(close + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // Field numbers as in proc(5), where the state is field 3.
    let field = |number: usize| fields.get(number - 3).copied();
    let number = |n: usize| field(n)?.parse::<i64>().ok();
    let ticks = [14, 15, 16, 17].into_iter().map(|n| number(n).map(i64::unsigned_abs));
    Some(Stat {
        comm,
        state: *field(3)?.as_bytes().first()?,
        parent: field(4)?.parse().ok()?,
        ticks: ticks.sum::<Option<u64>>()?,
        started: field(22)?.parse().ok()?,
    })
}

fn read_stat(roots: &Roots, pid: i32) -> Option<Stat> {
    parse_stat(&std::fs::read(roots.proc.join(pid.to_string()).join("stat")).ok()?)
}

/// CPU time and faults of a process, and those of the children that it reaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) comm: String,
    pub(crate) zombie: bool,
    pub(crate) started: u64,
    pub(crate) user: Nanos,
    pub(crate) system: Nanos,
    pub(crate) reaped_user: Nanos,
    pub(crate) reaped_system: Nanos,
    pub(crate) major_faults: u64,
    pub(crate) reaped_major_faults: u64,
}

pub(crate) fn read_times(roots: &Roots, pid: i32) -> Option<Times> {
    parse_times(&std::fs::read(roots.proc.join(pid.to_string()).join("stat")).ok()?)
}

fn parse_times(bytes: &[u8]) -> Option<Times> {
    let Stat { comm, state, started, .. } = parse_stat(bytes)?;
    let close = bytes.iter().rposition(|&b| b == b')')?;
    let fields: Vec<u64> = std::str::from_utf8(bytes.get(close + 1..)?)
        .ok()?
        .split_ascii_whitespace()
        // The state is no number, and some of the others are negative; none of these is asked for.
        .map(|field| field.parse().unwrap_or(0))
        .collect();
    // Field numbers as in proc(5), where the state is field 3.
    let field = |number: usize| fields.get(number - 3).copied();
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    let time = |number| Some(Nanos(field(number)?.saturating_mul(1_000_000_000 / per_second)));
    Some(Times {
        comm,
        zombie: state == b'Z',
        started,
        user: time(14)?,
        system: time(15)?,
        reaped_user: time(16)?,
        reaped_system: time(17)?,
        major_faults: field(12)?,
        reaped_major_faults: field(13)?,
    })
}

/// `/proc/PID/status`, as far as it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) comm: String,
    pub(crate) parent: i32,
    /// The real user: the effective one of `sudo` and `su` is root.
    pub(crate) uid: u32,
    /// The effective user. Where it is another, groups are not the real user's either.
    pub(crate) effective_uid: u32,
    pub(crate) gid: u32,
    pub(crate) groups: Vec<u32>,
}

pub(crate) fn read_status(roots: &Roots, pid: i32) -> Option<Status> {
    let bytes = std::fs::read(roots.proc.join(pid.to_string()).join("status")).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: BTreeMap<&str, &str> =
        text.lines().filter_map(|line| line.split_once(':')).map(|(k, v)| (k, v.trim())).collect();
    let first = |key| lines.get(key)?.split_ascii_whitespace().next();
    Some(Status {
        comm: (*lines.get("Name")?).to_owned(),
        parent: first("PPid")?.parse().ok()?,
        uid: first("Uid")?.parse().ok()?,
        effective_uid: lines.get("Uid")?.split_ascii_whitespace().nth(1)?.parse().ok()?,
        gid: first("Gid")?.parse().ok()?,
        groups: lines.get("Groups")?.split_ascii_whitespace().map_while(|g| g.parse().ok()).collect(),
    })
}

/// `read_bytes` of `/proc/PID/io`: what the process and the children it reaped had read from a drive.
fn read_disk_bytes(roots: &Roots, pid: i32) -> Option<Bytes> {
    let text = std::fs::read_to_string(roots.proc.join(pid.to_string()).join("io")).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix("read_bytes:"))?;
    value.trim().parse().ok().map(Bytes)
}

/// Every process, by number.
fn all(roots: &Roots) -> BTreeMap<i32, Stat> {
    let Ok(entries) = std::fs::read_dir(&roots.proc) else { return BTreeMap::new() };
    let numbers = entries.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok());
    numbers.filter_map(|pid| Some((pid, read_stat(roots, pid)?))).collect()
}

/// The descendants of `keeper`, parents before their children; not `keeper` itself.
#[must_use]
pub fn descendants(roots: &Roots, keeper: i32) -> Vec<Process> {
    let all = all(roots);
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for (&pid, stat) in &all {
        children.entry(stat.parent).or_default().push(pid);
    }
    let mut found: Vec<i32> = Vec::new();
    let mut next = vec![keeper];
    while let Some(parent) = next.pop() {
        for &child in children.get(&parent).into_iter().flatten() {
            // Two processes may have read each other's number as parent while numbers were reused.
            if child != keeper && !found.contains(&child) {
                found.push(child);
                next.push(child);
            }
        }
    }
    found.iter().filter_map(|pid| Some(process(roots, *pid, all.get(pid)?))).collect()
}

fn process(roots: &Roots, pid: i32, stat: &Stat) -> Process {
    Process {
        key: ProcessKey { pid, started: stat.started },
        parent: stat.parent,
        comm: stat.comm.clone(),
        exe: executable(roots, pid),
        zombie: stat.state == b'Z',
    }
}

/// What process `pid` executes. A file that was replaced since is named without the kernel's ` (deleted)`.
#[must_use]
pub fn executable(roots: &Roots, pid: i32) -> Option<PathBuf> {
    let link = std::fs::read_link(roots.proc.join(pid.to_string()).join("exe")).ok()?;
    let bytes = link.into_os_string().into_vec();
    let kept = bytes.strip_suffix(b" (deleted)").unwrap_or(&bytes).to_vec();
    Some(PathBuf::from(OsString::from_vec(kept)))
}

/// When process `pid` started, if there is one.
#[must_use]
pub fn key_of(roots: &Roots, pid: i32) -> Option<ProcessKey> {
    Some(ProcessKey { pid, started: read_stat(roots, pid)?.started })
}

/// The same with its parent's number.
pub(crate) fn key_and_parent(roots: &Roots, pid: i32) -> Option<(ProcessKey, i32)> {
    let stat = read_stat(roots, pid)?;
    Some((ProcessKey { pid, started: stat.started }, stat.parent))
}

/// Whether `pid` is a descendant of `keeper`.
#[must_use]
pub fn is_descendant(roots: &Roots, keeper: i32, pid: i32) -> bool {
    let mut next = pid;
    // No process tree is deeper; a number reused while we read could otherwise lead in circles.
    for _ in 0..512 {
        match read_stat(roots, next) {
            Some(stat) if stat.parent == keeper => return true,
            Some(stat) if stat.parent > 0 => next = stat.parent,
            _ => return false,
        }
    }
    false
}

/// Every process there is.
#[must_use]
pub fn snapshot(roots: &Roots) -> BTreeSet<ProcessKey> {
    all(roots).into_iter().map(|(pid, stat)| ProcessKey { pid, started: stat.started }).collect()
}

/// Processes of user `uid` that run `program`: that execute it or, if it is a script, have it as an argument. None for
/// an interpreter by itself, which says nothing about what it runs.
#[must_use]
pub fn running_instances(roots: &Roots, program: &Path, uid: u32) -> Vec<ProcessKey> {
    let Ok(real) = program.canonicalize() else { return Vec::new() };
    let script = is_script(&real);
    if !script && is_interpreter(&real) {
        return Vec::new();
    }
    let runs = |pid: i32| {
        let by_argument = || {
            arguments(roots, pid)
                .is_some_and(|args| args.contains(&real) || args.iter().any(|a| a == program))
        };
        if script { by_argument() } else { executable(roots, pid).is_some_and(|exe| exe == real) }
    };
    snapshot(roots)
        .into_iter()
        .filter(|key| runs(key.pid) && read_status(roots, key.pid).is_some_and(|status| status.uid == uid))
        .collect()
}

fn is_script(program: &Path) -> bool {
    let mut start = [0; 2];
    std::fs::File::open(program).is_ok_and(|mut file| file.read_exact(&mut start).is_ok()) && start == *b"#!"
}

fn is_interpreter(program: &Path) -> bool {
    program.file_name().is_some_and(|name| is_interpreter_name(&name.to_string_lossy()))
}

/// Whether a program of this file name interprets scripts.
pub(crate) fn is_interpreter_name(name: &str) -> bool {
    const NAMES: [&str; 12] =
        ["sh", "bash", "dash", "zsh", "python", "perl", "ruby", "node", "java", "gjs", "mono", "env"];
    NAMES.contains(&name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.'))
}

/// The first two arguments, which is where the kernel puts the path of a script.
fn arguments(roots: &Roots, pid: i32) -> Option<Vec<PathBuf>> {
    let bytes = std::fs::read(roots.proc.join(pid.to_string()).join("cmdline")).ok()?;
    let args = bytes.split(|&b| b == 0).take(3).skip(1);
    Some(args.map(|arg| PathBuf::from(OsString::from_vec(arg.to_vec()))).collect())
}

/// What the run used: what its living processes used and the children that each of them reaped, and what the keeper
/// reaped. The kernel adds a process's CPU time and I/O to its parent's when that reaps it, so nothing is missing but
/// what a parent lets the kernel reap by itself (`SIGCHLD` ignored).
#[must_use]
pub fn account(roots: &Roots, keeper: i32) -> Account {
    // A process may move from the living to the reaped while we look, and would be missed or counted twice.
    let mut tries = 3;
    loop {
        let before = reaped_ticks(roots, keeper);
        let account = account_once(roots, keeper);
        tries -= 1;
        if tries == 0 || reaped_ticks(roots, keeper) == before {
            return account;
        }
    }
}

fn reaped_ticks(roots: &Roots, keeper: i32) -> Option<u64> {
    read_stat(roots, keeper).map(|stat| stat.ticks)
}

fn account_once(roots: &Roots, keeper: i32) -> Account {
    let mut ticks = reaped_ticks(roots, keeper).unwrap_or(0);
    let mut read = read_disk_bytes(roots, keeper);
    for process in descendants(roots, keeper) {
        ticks += read_stat(roots, process.key.pid).map_or(0, |stat| stat.ticks);
        read = match (read, read_disk_bytes(roots, process.key.pid)) {
            (Some(sum), Some(more)) => Some(sum + more),
            // It ended between the two reads: its sum is with who reaped it by the next time.
            (sum, None) if key_of(roots, process.key.pid).is_none() => sum,
            _ => None,
        };
    }
    let per_second = u128::from(rustix::param::clock_ticks_per_second().max(1));
    let nanos = u128::from(ticks) * 1_000_000_000 / per_second;
    Account { cpu: Nanos(u64::try_from(nanos).unwrap_or(u64::MAX)), read }
}

#[cfg(test)]
#[path = "processes_tests.rs"]
mod tests;
