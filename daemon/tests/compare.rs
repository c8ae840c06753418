//! Whole comparisons of real commands on the real kernel. Needs root: recording does.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use headstart_daemon::measure::cold::Cold;
use headstart_daemon::measure::compare::{CompareError, Compared, Doing, Options, Until, compare};
use headstart_daemon::measure::prefetch::Choices;
use headstart_daemon::measure::subject::{Request, Subject};
use headstart_daemon::mounts::Mounts;
use headstart_daemon::recording::Backend;
use headstart_daemon::roots::Roots;
use headstart_daemon::sys::residency::resident_in;
use headstart_daemon::watch::session::Session;
use headstart_shared::run::{ColdMethod, Condition, Milestone};
use headstart_shared::units::Bytes;

const SIZE: u64 = 1 << 20;
/// A place on a drive wherever the checkout is; folders for temporary files are never learned from.
const DRIVE: &str = "/usr/local";

/// A folder on a drive with files of a megabyte each; not a temporary one, since nothing there is learned.
struct Folder(tempfile::TempDir);

impl Folder {
    /// `None`, said on standard error, where there is nothing to be tested.
    fn new(files: usize) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            assert!(
                std::env::var_os("HEADSTART_REQUIRE_ROOT_TESTS").is_none(),
                "required, but missing: root"
            );
            eprintln!("SKIPPED: root");
            return None;
        }
        let folder = Self(tempfile::tempdir_in(DRIVE).unwrap());
        for number in 0..files {
            let bytes: Vec<u8> = (0..SIZE).map(|byte| ((byte * 31 + number as u64) % 251) as u8).collect();
            fs::write(folder.file(number), bytes).unwrap();
            File::open(folder.file(number)).unwrap().sync_all().unwrap();
        }
        Some(folder)
    }

    fn file(&self, number: usize) -> PathBuf {
        self.0.path().join(format!("file {number}"))
    }

    fn cat(&self, numbers: std::ops::Range<usize>) -> Vec<OsString> {
        std::iter::once("cat".into()).chain(numbers.map(|number| self.file(number).into())).collect()
    }
}

fn options() -> Options {
    Options {
        rounds: 2,
        learn: 2,
        cold: ColdMethod::Evict,
        until: Until::Milestone(Milestone::Exit),
        timeout: Duration::from_secs(20),
        linger: Duration::from_millis(300),
        choices: Choices::default(),
        backend: Backend::Touched,
        time_recording: false,
        ignore_failure: false,
    }
}

fn run(words: &[OsString], options: &Options, cancel: &AtomicBool) -> Result<Compared, CompareError> {
    let roots = Roots::default();
    let session = Session::invoking(&roots).unwrap();
    let subject = Subject::find(&Request::Command(words.to_vec()), &session).unwrap();
    compare(&subject, &session, None, options, &roots, cancel, &mut |_| {})
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

fn in_memory(path: &Path) -> u64 {
    resident_in(&File::open(path).unwrap()).unwrap().iter().map(|range| range.len()).sum()
}

#[test]
fn a_command_is_learned_prefetched_and_timed() {
    let Some(folder) = Folder::new(8) else { return };
    let compared = run(&folder.cat(0..8), &options(), &AtomicBool::new(false)).unwrap();
    let comparison = &compared.comparison;
    for condition in Condition::ALL {
        let count = comparison.runs.iter().filter(|run| run.condition == condition).count();
        assert_eq!(count, 2, "{condition}: {comparison:?}");
    }
    assert_eq!(comparison.milestone, Milestone::Exit);
    assert!(comparison.prefetch.planned >= Bytes(8 * SIZE), "{:?}", comparison.prefetch);
    // What the program was quicker to read itself does not count.
    assert!(comparison.prefetch.read >= Bytes(4 * SIZE), "{:?}", comparison.prefetch);
    let used = comparison.prefetch.used.unwrap();
    assert!(used.0 * 100 >= comparison.prefetch.read.0 * 85, "{:?}", comparison.prefetch);
    let learned: Vec<_> = compared.profile.files.iter().map(|file| file.path.clone()).collect();
    assert!((0..8).all(|number| learned.contains(&folder.file(number))), "{learned:?}");
    compared.profile.verify().unwrap();
}

#[test]
fn emptying_evicts_the_profiles_files_and_no_others() {
    let Some(folder) = Folder::new(3) else { return };
    let profile = run(&folder.cat(0..2), &options(), &AtomicBool::new(false)).unwrap().profile;
    let roots = Roots::default();
    let mounts = Mounts::of(&roots, None).unwrap();
    for number in 0..3 {
        fs::read(folder.file(number)).unwrap();
    }
    Cold::new(ColdMethod::Evict, &roots).make(&profile, &mounts).unwrap();
    let pages: Vec<u64> = (0..3).map(|number| in_memory(&folder.file(number))).collect();
    assert_eq!(pages[..2], [0, 0]);
    assert_eq!(pages[2], SIZE / 4096);
}

#[test]
fn a_command_that_fails_is_not_measured_unless_asked_for() {
    let Some(folder) = Folder::new(1) else { return };
    let mut command = folder.cat(0..1);
    command.push("/nowhere/at all".into());
    let error = run(&command, &options(), &AtomicBool::new(false)).unwrap_err();
    assert!(error.to_string().contains("--ignore-failure"), "{error}");
    let tolerant = Options { ignore_failure: true, rounds: 1, ..options() };
    assert_eq!(run(&command, &tolerant, &AtomicBool::new(false)).unwrap().comparison.runs.len(), 3);
}

#[test]
fn a_start_that_is_never_over_is_told_with_the_cure() {
    if Folder::new(0).is_none() {
        return;
    }
    let impatient = Options { timeout: Duration::from_millis(300), ..options() };
    let error = run(&words(&["sleep", "1000"]), &impatient, &AtomicBool::new(false)).unwrap_err();
    assert!(error.to_string().contains("--until settled"), "{error}");
}

#[test]
fn a_quiet_program_is_settled() {
    let Some(folder) = Folder::new(2) else { return };
    let script =
        format!("cat '{}' '{}'; exec sleep 1000", folder.file(0).display(), folder.file(1).display());
    let settled = Options { until: Until::Milestone(Milestone::Settled), rounds: 1, ..options() };
    let compared = run(&words(&["sh", "-c", &script]), &settled, &AtomicBool::new(false)).unwrap();
    assert_eq!(compared.comparison.milestone, Milestone::Settled);
    assert_eq!(compared.comparison.runs.len(), 3);
    assert!(compared.comparison.prefetch.planned >= Bytes(2 * SIZE));
}

#[test]
fn stopping_ends_the_running_start_and_keeps_what_was_finished() {
    let Some(folder) = Folder::new(1) else { return };
    let roots = Roots::default();
    let session = Session::invoking(&roots).unwrap();
    // The name of the file is the mark by which a process that is left would be found.
    let script = format!("cat '{}'; sleep 0.4", folder.file(0).display());
    let request = Request::Command(words(&["sh", "-c", &script]));
    let subject = Subject::find(&request, &session).unwrap();
    let cancel = AtomicBool::new(false);
    let many = Options { rounds: 50, learn: 1, ..options() };
    let began = Instant::now();
    let compared = compare(&subject, &session, None, &many, &roots, &cancel, &mut |progress| {
        let timing = matches!(progress.doing, Doing::Timing(slot) if slot.round == 2);
        cancel.store(timing && progress.time.is_none(), Ordering::Relaxed);
    })
    .unwrap();
    assert!(compared.cancelled && began.elapsed() < Duration::from_secs(30));
    assert_eq!(compared.comparison.runs.len(), 3, "the first round was finished");
    let mark = folder.file(0);
    let left = fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let text = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&text).contains(mark.to_str().unwrap())
    });
    assert!(!left);
}
