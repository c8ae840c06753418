//! Kills at random moments: what was reported as written is there, and the database is sound.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use headstart_shared::launch::{Arm, Timeline};
use headstart_shared::units::Nanos;

use super::launches::launch;
use super::*;

const CHILD: &str = "HEADSTART_TEST_STORE_LAUNCHES";
const TEST: &str = "store::tests::kills::a_launch_that_was_reported_written_survives_a_kill_at_any_moment";
const KILLS: u64 = 50;

/// In the child: records launches without end, as the daemon does, and says each number once it is stored.
fn record(dir: &Path) -> ! {
    let mut store = open_well(dir);
    let mut said = std::io::stdout();
    for second in 1.. {
        let app = ["a", "b", "c"][usize::try_from(second % 3).unwrap()];
        let arm = [Arm::Prefetched, Arm::HeldOut][usize::try_from(second % 2).unwrap()];
        let launch = launch(app, second, arm, 1 + second.unsigned_abs() % 7);
        let timeline = Timeline {
            format: 1,
            launch: launch.clone(),
            processes: Vec::new(),
            samples: Vec::new(),
            priorities: Vec::new(),
        };
        let number = store.record_launch(1, &launch, Some(&timeline)).unwrap();
        writeln!(said, "stored {number} {app} {} .", launch.milestones[0].1.0).unwrap();
        store.judge(1, &id(app)).unwrap();
        if second % 20 == 0 {
            store.save_profile(1, &profile(app, second.unsigned_abs() % 300 + 1)).unwrap();
        }
    }
    unreachable!("the parent ends this");
}

fn child(dir: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", TEST, "--nocapture"]).env(CHILD, dir);
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// What a killed child had said. Its last line may be cut.
fn reported(lines: impl Iterator<Item = String>) -> Vec<(u64, String, u64)> {
    let report = |line: String| {
        let mut words = line.strip_prefix("stored ")?.split(' ').map(str::to_owned);
        let report = (words.next()?.parse().ok()?, words.next()?, words.next()?.parse().ok()?);
        (words.next()? == ".").then_some(report)
    };
    lines.filter_map(report).collect()
}

#[test]
fn a_launch_that_was_reported_written_survives_a_kill_at_any_moment() {
    if let Some(dir) = std::env::var_os(CHILD) {
        record(Path::new(&dir));
    }
    let dir = tempfile::tempdir().unwrap();
    let mut stored = 0;
    for round in 0..KILLS {
        let mut child = child(dir.path());
        let mut out = BufReader::new(child.stdout.take().unwrap());
        // Killed from the moment on at which it opens, in some rounds; in others when it is at work.
        let mut first = String::new();
        while round % 5 != 0 && !first.starts_with("stored ") {
            first.clear();
            assert!(out.read_line(&mut first).unwrap() > 0, "the child ended by itself");
        }
        std::thread::sleep(Duration::from_micros(rand::random_range(0..25_000)));
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        let rest =
            out.split(b'\n').map_while(Result::ok).map(|line| String::from_utf8_lossy(&line).into_owned());
        let all = reported(std::iter::once(first.trim_end().to_owned()).chain(rest));
        let store = open_well(dir.path());
        assert_eq!(check::flaw(&store.db.conn, "integrity_check").unwrap(), None);
        for (number, app, nanos) in &all {
            let launch = store.launch(1, *number).unwrap().value;
            let launch =
                launch.unwrap_or_else(|| panic!("round {round}: launch {number} was reported, and is gone"));
            assert_eq!((&launch.app.0, launch.milestones[0].1), (app, Nanos(*nanos)));
        }
        stored += all.len();
        let records = store.app_records(1).unwrap();
        let counted: u64 = records.iter().map(|record| record.launches).sum();
        assert_eq!(counted, store.launches(1, None, None, u32::MAX).unwrap().value.len() as u64);
        assert!(counted >= stored as u64);
    }
    assert!(stored > 100, "only {stored} were recorded");
}
