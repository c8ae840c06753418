//! What of the kernel Headstart needs is there, what is used instead of what is not, and the cure.
//!
//! Everything is tried rather than deduced from version numbers: distributions port features back, and configure them
//! away.

use std::fs::{self, File};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::drive::Drives;
use crate::mounts::{Kind, Mounts};
use crate::recording::{Backend, PageRange};
use crate::roots::Roots;
use crate::sys::residency::{cached_pages, resident_in};
use crate::trace::backend::try_out;
use crate::trace::event::{ADDED, TOUCHED};
use crate::trace::tracefs::Tracefs;

/// How a feature was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// There, and works.
    Good,
    /// Not there; something else serves, less well.
    Replaced,
    /// Not there, and nothing serves instead.
    Missing,
    /// Nothing to be good or bad at: a fact to know.
    Fact,
}

/// One feature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is.
    pub feature: String,
    /// How it was found.
    pub state: State,
    /// What was found, in words.
    pub found: String,
    /// What is used instead.
    pub instead: Option<String>,
    /// What to do about it.
    pub cure: Option<String>,
}

impl Finding {
    fn new(feature: &str, state: State, found: impl Into<String>) -> Self {
        Self { feature: feature.into(), state, found: found.into(), instead: None, cure: None }
    }

    fn instead(mut self, what: &str) -> Self {
        self.instead = Some(what.into());
        self
    }

    fn cure(mut self, what: &str) -> Self {
        self.cure = Some(what.into());
        self
    }
}

/// Looks at everything.
#[must_use]
pub fn examine(roots: &Roots) -> Vec<Finding> {
    let mut findings = vec![kernel(), root()];
    findings.extend(lockdown(roots));
    findings.extend([events(roots), recording(roots), opens(roots), residency(roots), counting(roots)]);
    findings.extend([dropping(roots), pressure(roots)]);
    findings.extend(drives(roots));
    findings
}

fn kernel() -> Finding {
    let uname = rustix::system::uname();
    Finding::new("kernel", State::Fact, format!("Linux {}", uname.release().to_string_lossy()))
}

fn root() -> Finding {
    if rustix::process::geteuid().is_root() {
        return Finding::new("root", State::Good, "running as root");
    }
    Finding::new(
        "root",
        State::Missing,
        "not running as root: the findings below are those of an ordinary user",
    )
    .cure("run with sudo")
}

fn lockdown(roots: &Roots) -> Option<Finding> {
    // `none [integrity] confidentiality`
    let text = fs::read_to_string(roots.sys.join("kernel/security/lockdown")).ok()?;
    let mode = text.split(['[', ']']).nth(1)?.to_owned();
    Some(match mode.as_str() {
        "confidentiality" => {
            Finding::new("lockdown", State::Replaced, "the kernel is locked down: confidentiality")
                .instead("what is resident after a start is recorded, since tracing is forbidden")
                .cure("boot with lockdown=integrity or without Secure Boot's confidentiality mode")
        }
        mode => Finding::new("lockdown", State::Good, format!("{mode}: tracing is allowed")),
    })
}

fn events(roots: &Roots) -> Finding {
    let feature = "page-cache events";
    let tracefs = match Tracefs::find(roots) {
        Ok(tracefs) => tracefs,
        Err(error) => {
            return Finding::new(feature, State::Replaced, error.to_string())
                .instead("opens and what is resident afterwards")
                .cure("mount -t tracefs nodev /sys/kernel/tracing, on a kernel with CONFIG_FTRACE");
        }
    };
    let touched = TOUCHED.iter().all(|event| tracefs.has(event));
    match (touched, tracefs.has(ADDED)) {
        (true, true) => Finding::new(feature, State::Good, "what is touched and what is brought in"),
        (false, true) => {
            Finding::new(feature, State::Replaced, "only what is brought in, as before Linux 6.10")
                .instead("what is brought in, which includes what the kernel read ahead by itself")
                .cure("a kernel from 6.10 on")
        }
        _ => Finding::new(feature, State::Replaced, "none, or they may not be looked at")
            .instead("opens and what is resident afterwards")
            .cure("run as root, on a kernel with CONFIG_FTRACE"),
    }
}

fn recording(roots: &Roots) -> Finding {
    let feature = "recording";
    let mut failures = Vec::new();
    for backend in [Backend::Touched, Backend::Added, Backend::Resident] {
        match try_out(backend, roots) {
            Ok(()) if failures.is_empty() => {
                return Finding::new(feature, State::Good, "a read of our own was recorded page by page");
            }
            Ok(()) => {
                let instead = match backend {
                    Backend::Added => "pages brought in, the kernel's own read-ahead included",
                    _ => "opens by fanotify, then what of these files is resident",
                };
                return Finding::new(feature, State::Replaced, failures.join("; ")).instead(instead);
            }
            Err(why) => failures.push(why),
        }
    }
    Finding::new(feature, State::Missing, failures.join("; "))
        .cure("run as root, on a kernel with CONFIG_FANOTIFY and CONFIG_FTRACE")
}

fn opens(roots: &Roots) -> Finding {
    let feature = "names of opened files (fanotify)";
    let listened = Mounts::of(roots, None).map_err(|error| error.to_string()).and_then(|mounts| {
        crate::trace::opens::Listener::start(&mounts, roots).map_err(|error| error.to_string())
    });
    match listened {
        Ok(_) => Finding::new(feature, State::Good, "whole file systems can be listened to"),
        Err(why) => Finding::new(feature, State::Missing, why)
            .cure("run as root, on a kernel from 5.1 on with CONFIG_FANOTIFY"),
    }
}

fn residency(roots: &Roots) -> Finding {
    let feature = "which pages are cached (mincore)";
    match own_program(roots).and_then(|file| resident_in(&file)) {
        Ok(ranges) if !ranges.is_empty() => Finding::new(feature, State::Good, "works"),
        Ok(_) => {
            Finding::new(feature, State::Missing, "our own running program is not cached, says the kernel")
                .cure("report this: a program that runs is cached")
        }
        Err(error) => Finding::new(feature, State::Missing, error.to_string()).cure("run as root"),
    }
}

fn counting(roots: &Roots) -> Finding {
    let feature = "how much is cached (cachestat)";
    let counted = own_program(roots).and_then(|file| cached_pages(&file, PageRange { start: 0, end: 1 }));
    match counted {
        // `cached_pages` falls back by itself where the call is missing, so ask by version.
        Ok(_) if kernel_has(6, 5) => Finding::new(feature, State::Good, "works"),
        Ok(_) => Finding::new(feature, State::Replaced, "not in kernels before 6.5")
            .instead("mincore, which costs a mapping of each file"),
        Err(error) => Finding::new(feature, State::Missing, error.to_string()).cure("run as root"),
    }
}

fn own_program(roots: &Roots) -> std::io::Result<File> {
    File::open(roots.proc.join("self/exe"))
}

fn kernel_has(major: u32, minor: u32) -> bool {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (major, minor)
}

fn dropping(roots: &Roots) -> Finding {
    let feature = "emptying all caches (drop_caches)";
    let path = roots.proc.join("sys/vm/drop_caches");
    match rustix::fs::access(&path, rustix::fs::Access::WRITE_OK) {
        Ok(()) => Finding::new(feature, State::Good, "can be written: --cold=drop works"),
        Err(errno) => Finding::new(feature, State::Replaced, format!("{}: {errno}", path.display()))
            .instead("--cold=evict, which leaves names and inodes in memory")
            .cure("run as root"),
    }
}

fn pressure(roots: &Roots) -> Finding {
    let feature = "memory pressure (PSI)";
    match fs::read_to_string(roots.proc.join("pressure/memory")) {
        Ok(_) => Finding::new(feature, State::Good, "a replay stops when programs wait for memory"),
        Err(error) => Finding::new(feature, State::Replaced, error.to_string())
            .instead("only how much memory is available is watched")
            .cure("boot with psi=1, on a kernel with CONFIG_PSI"),
    }
}

/// Inodes and folders of the ext family are read ahead through the block device; some sandboxes forbid opening it.
fn structures(mounts: &Mounts, roots: &Roots) -> Finding {
    let feature = "inodes and folders read ahead";
    let ext = mounts.iter().filter(|mount| mount.fs_type.as_encoded_bytes().starts_with(b"ext"));
    let refused = ext.map(|mount| roots.dev.join(format!("block/{}", mount.device))).find_map(|path| {
        let error = File::open(&path).err()?;
        Some(format!("{} cannot be opened: {error}", path.display()))
    });
    match refused {
        None => Finding::new(feature, State::Good, "the block devices of file systems can be opened"),
        Some(why) => Finding::new(feature, State::Replaced, why)
            .instead("files are opened ahead one by one, which reads the same in a worse order")
            .cure("run as root, outside of containers that forbid block devices"),
    }
}

fn drives(roots: &Roots) -> Vec<Finding> {
    let Ok(mounts) = Mounts::of(roots, None) else { return Vec::new() };
    let mut findings: Vec<Finding> = vec![structures(&mounts, roots)];
    for mount in mounts.iter().filter(|mount| mount.kind() == Kind::Drive) {
        let finding = match Drives::of(mount, &mounts, roots) {
            Ok(drives) => {
                let drive = drives.deciding();
                let model = drive.model.as_deref().unwrap_or("no model name");
                let text = format!("{}, {model}; {}", drive.class, drive.priority_remark());
                Finding::new(&format!("drive {}", drive.name), State::Fact, text)
            }
            Err(error) => {
                let place = Path::new(&mount.mount_point).display();
                Finding::new(&format!("drive under {place}"), State::Replaced, error.to_string())
                    .instead("read ahead in order of need, as from flash")
            }
        };
        if findings.iter().all(|known| known.feature != finding.feature) {
            findings.push(finding);
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_a_machine_with_nothing_each_gap_has_a_replacement_or_a_cure() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_path_buf();
        let roots = Roots { proc: path.clone(), sys: path.clone(), tracefs: path.clone(), dev: path };
        fs::create_dir(dir.path().join("events")).unwrap();
        let findings = examine(&roots);
        for finding in &findings {
            let helped = finding.instead.is_some() || finding.cure.is_some();
            let sound = matches!(finding.state, State::Good | State::Fact);
            assert!(sound || helped, "{finding:?}");
        }
        let state = |feature: &str| findings.iter().find(|f| f.feature.contains(feature)).map(|f| f.state);
        assert_eq!(state("page-cache"), Some(State::Replaced));
        assert_eq!(state("recording"), Some(State::Missing));
        assert_eq!(state("PSI"), Some(State::Replaced));
    }

    #[test]
    fn lockdown_is_read_from_its_brackets() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots { sys: dir.path().into(), ..Roots::default() };
        assert_eq!(lockdown(&roots), None);
        fs::create_dir_all(dir.path().join("kernel/security")).unwrap();
        let say = |text: &str| {
            fs::write(dir.path().join("kernel/security/lockdown"), text).unwrap();
            lockdown(&roots).unwrap().state
        };
        assert_eq!(say("[none] integrity confidentiality\n"), State::Good);
        assert_eq!(say("none integrity [confidentiality]\n"), State::Replaced);
    }
}
