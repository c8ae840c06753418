//! Reading [`Facts`] from `/proc` (`proc(5)`): a handful of short reads, none of which touches a drive.
//!
//! A process may end or become another program while it is read. It is told apart by its number *and* its start time;
//! of one that is gone nothing is given, of one that is ending what is still there.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use super::facts::{Ancestor, Facts, Hints, Image};
use super::index::Index;
use super::unit::Unit;
use crate::roots::Roots;
use crate::watch::execs::{Exec, FileId};
use crate::watch::processes::{executable, key_and_parent, read_status};
use crate::watch::start::Monotonic;

/// The most bytes of its arguments that are read of a process: what tells apps apart stands at their beginning.
pub const MOST_ARGUMENTS: u64 = 16 << 10;
/// The most bytes of its environment.
const MOST_ENVIRONMENT: u64 = 128 << 10;
/// Ancestors that are looked at: a helper's parent, and a launcher before it.
const ANCESTORS: usize = 4;
/// How long a process may take from the event to being the new program. Most take 0.1 ms to 0.5 ms.
const PATIENCE: Duration = Duration::from_millis(10);
/// How long to wait before looking again.
const PAUSE: Duration = Duration::from_micros(100);

impl Facts {
    /// What is known of a process. `None` if there is none (any more).
    #[must_use]
    pub fn read(roots: &Roots, pid: i32) -> Option<Self> {
        let (key, parent) = key_and_parent(roots, pid)?;
        let uid = read_status(roots, pid)?.uid;
        let own = roots.proc.join(pid.to_string());
        let facts = Self {
            key,
            parent,
            uid,
            opened: None,
            image: image(roots, pid),
            cwd: std::fs::read_link(own.join("cwd")).ok(),
            foreign_root: is_foreign(roots, &own),
            unit: unit(&own),
            hints: hints(&own),
            ancestors: ancestors(roots, pid, parent),
        };
        // What was read after it had ended may be another's that was given the number.
        key_and_parent(roots, pid).filter(|(now, _)| *now == key).map(|_| facts)
    }
}

/// What is known of the process of an event, once it is the program that was opened (or has gone on from there).
/// `None` if it is gone, or the program could not be executed after all. Waits for some milliseconds at most.
#[must_use]
pub fn await_exec(roots: &Roots, index: &Index, exec: &Exec) -> Option<Facts> {
    let deadline = Monotonic::now().after(PATIENCE);
    while !index.is_execution_of(exec.file, &image(roots, exec.pid)) && Monotonic::now() < deadline {
        key_and_parent(roots, exec.pid)?;
        std::thread::sleep(PAUSE);
    }
    let mut facts = Facts::read(roots, exec.pid)?;
    // A wrapper may have gone on to something unknown before it was looked at. What still is a copy of its parent has
    // executed nothing.
    let executed = index.is_execution_of(exec.file, &facts.image)
        || facts.ancestors.first().is_some_and(|parent| parent.image != facts.image);
    facts.opened = Some(exec.file);
    executed.then_some(facts)
}

fn image(roots: &Roots, pid: i32) -> Image {
    let own = roots.proc.join(pid.to_string());
    let file = file_id(&own.join("exe"));
    let bytes = read_start(&own.join("cmdline"), MOST_ARGUMENTS);
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    let argv = if bytes.is_empty() { Vec::new() } else { bytes.split(|&b| b == 0).map(os).collect() };
    Image { exe: executable(roots, pid), file, argv }
}

fn ancestors(roots: &Roots, pid: i32, parent: i32) -> Vec<Ancestor> {
    let mut line: Vec<Ancestor> = Vec::new();
    let mut next = parent;
    // Process 1 and what it looks like says nothing; numbers may be given anew while we look and lead in circles.
    while next > 1 && next != pid && line.len() < ANCESTORS && line.iter().all(|a| a.key.pid != next) {
        let Some((key, parent)) = key_and_parent(roots, next) else { break };
        let unit = unit(&roots.proc.join(next.to_string()));
        line.push(Ancestor { key, image: image(roots, next), unit });
        next = parent;
    }
    line
}

fn unit(own: &Path) -> Option<Unit> {
    Unit::of_cgroup(&String::from_utf8_lossy(&read_start(&own.join("cgroup"), 16 << 10)))
}

/// Which file a link of `/proc/PID` leads to. Only from what the kernel has at hand: the server of a network file system
/// that a program is on is not asked, so that it cannot keep us waiting.
fn file_id(link: &Path) -> Option<FileId> {
    let stat = statx(CWD, link, AtFlags::STATX_DONT_SYNC, StatxFlags::INO).ok()?;
    let device = rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor);
    Some(FileId { device, inode: stat.stx_ino })
}

/// Whether paths of the process lead elsewhere than those of the system. Compared with process 1: we may have mounts of
/// our own ourselves, from how the service is confined.
fn is_foreign(roots: &Roots, own: &Path) -> bool {
    let namespace = |of: &Path| std::fs::read_link(of.join("ns/mnt")).ok();
    let system = roots.proc.join("1");
    file_id(&own.join("root")) != file_id(&system.join("root")) || namespace(own) != namespace(&system)
}

fn hints(own: &Path) -> Hints {
    let bytes = read_start(&own.join("environ"), MOST_ENVIRONMENT);
    let mut hints = Hints::default();
    let mut instance = None;
    for line in bytes.split(|&b| b == 0) {
        let Some(equals) = line.iter().position(|&b| b == b'=') else { continue };
        let (name, value) = (&line[..equals], &line[equals + 1..]);
        if value.is_empty() {
            continue;
        }
        let text = || String::from_utf8(value.to_vec()).ok();
        match name {
            b"GIO_LAUNCHED_DESKTOP_FILE" => hints.desktop_file = Some(os(value).into()),
            b"GIO_LAUNCHED_DESKTOP_FILE_PID" => {
                hints.desktop_file_pid = text().and_then(|text| text.parse().ok());
            }
            b"FLATPAK_ID" => hints.flatpak = text(),
            b"SNAP_INSTANCE_NAME" => instance = text(),
            b"SNAP_NAME" => hints.snap = text(),
            b"APPIMAGE" => hints.app_image = Some(os(value).into()),
            _ => {}
        }
    }
    hints.snap = instance.or(hints.snap);
    hints
}

/// At most so many bytes from the beginning of a file; none of one that cannot be read.
fn read_start(path: &Path, limit: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(path) {
        // What was read before an error is kept: a process may end in the middle.
        let _ = file.take(limit).read_to_end(&mut bytes);
    }
    bytes
}

fn os(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
