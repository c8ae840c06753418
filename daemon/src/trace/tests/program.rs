//! The program that tests record: this test binary itself, told by its environment what to touch.
//!
//! A script is lines of words, the last of which is a path that may hold spaces and `\\xNN`:
//!
//! | line | does |
//! |---|---|
//! | `read START COUNT PATH` | reads pages, with as little read-ahead as the kernel can be asked for |
//! | `stream PATH` | reads a file from its start to its end, with the kernel's own read-ahead |
//! | `map PAGES PATH` | touches pages (`3,9,12`) through a mapping, with as little read-ahead |
//! | `window PAGES PATH` | touches pages through a mapping, as the kernel reads ahead by itself |
//! | `fork LINES` / `thread LINES` | lets a child or thread do lines (`;` between them) and waits for it |
//! | `beside LINES` | lets a child do lines and goes on; waits for it in the end |
//! | `write PATH` | makes a file with content, writes it out and reads it |
//! | `replace FROM TO` | renames |
//! | `delete PATH` | |
//! | `open PATH` | opens, without waiting, whatever it is |
//! | `wait PATH` | until there is such a file |
//! | `tell PATH` | makes an empty file |
//! | `hold` | stays until killed |
//! | `record PATH` | makes a recorder ready, and writes down the folder of its instance |
//! | `refused` | shows why no recorder can be made ready |

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Mutex;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::bytes;
use crate::path_text;
use crate::recording::Backend;
use crate::roots::Roots;
use crate::sys::readahead::expect_random;
use crate::sys::touching::Mapped;
use crate::trace::recorder::Recorder;
use crate::watch::launch::Command;
use crate::watch::testing::session;

const SCRIPT: &str = "HEADSTART_TEST_SCRIPT";
const ENTRY: &str = "trace::tests::program::entry";
/// What children do that are not waited for before the end.
static BESIDE: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

/// A line with a path in it.
pub(super) fn line(words: &str, path: &Path) -> String {
    format!("{words} {}", path_text::to_text(path))
}

/// The program with a script.
pub(super) fn command(script: &[String]) -> Command {
    let program = std::env::current_exe().unwrap();
    let args = ["program", "--exact", ENTRY, "--ignored", "--nocapture", "--test-threads=1"];
    let mut command = Command::new(&session(), program, args.map(OsString::from).into());
    command.env.insert(SCRIPT.into(), script.join("\n").into());
    command
}

/// A command line for a shell that runs the program; its script is in the environment of [`command`].
pub(super) fn in_shell() -> String {
    format!(
        "exec '{}' --exact {ENTRY} --ignored --nocapture --test-threads=1",
        std::env::current_exe().unwrap().display()
    )
}

#[test]
#[ignore = "not a test: the program that tests record"]
fn entry() {
    let script = std::env::var(SCRIPT).unwrap();
    run_all(script.lines());
    let children = std::mem::take(&mut *BESIDE.lock().unwrap());
    for child in children {
        child.join().unwrap();
    }
}

fn run_all<'a>(lines: impl Iterator<Item = &'a str>) {
    for line in lines {
        run(line.trim());
    }
}

fn split(words: &str) -> (&str, &str) {
    words.split_once(' ').unwrap_or((words, ""))
}

fn path(text: &str) -> PathBuf {
    path_text::from_text(text).unwrap()
}

fn run(line: &str) {
    let (verb, rest) = split(line);
    match verb {
        "read" => {
            let (start, rest) = split(rest);
            let (count, file) = split(rest);
            let file = File::open(path(file)).unwrap();
            expect_random(&file).unwrap();
            let mut buffer = vec![0; bytes(count.parse().unwrap())];
            file.read_at(&mut buffer, bytes(start.parse().unwrap()) as u64).unwrap();
        }
        "stream" => {
            let mut buffer = vec![0; 1 << 17];
            let mut file = File::open(path(rest)).unwrap();
            while file.read(&mut buffer).unwrap() > 0 {}
        }
        "map" | "window" => {
            let (pages, file) = split(rest);
            let mapped = Mapped::new(&File::open(path(file)).unwrap(), verb == "map");
            pages.split(',').for_each(|page| mapped.touch(page.parse().unwrap()));
        }
        "fork" => {
            let mut child = process::Command::new(std::env::current_exe().unwrap());
            child.args(["--exact", ENTRY, "--ignored", "--nocapture", "--test-threads=1"]);
            assert!(child.env(SCRIPT, rest.replace(';', "\n")).status().unwrap().success());
        }
        "beside" => {
            let line = format!("fork {rest}");
            BESIDE.lock().unwrap().push(thread::spawn(move || run(&line)));
        }
        "thread" => {
            let lines = rest.to_owned();
            thread::spawn(move || run_all(lines.split(';'))).join().unwrap();
        }
        "write" => {
            fs::write(path(rest), vec![7; bytes(4)]).unwrap();
            File::open(path(rest)).unwrap().sync_all().unwrap();
            fs::read(path(rest)).unwrap();
        }
        "replace" => {
            let (from, to) = split(rest);
            fs::rename(path(from), path(to)).unwrap();
        }
        "delete" => fs::remove_file(path(rest)).unwrap(),
        "open" => {
            let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap();
            // A socket cannot be opened; that it is tried is what counts.
            let _ = File::options().read(true).custom_flags(nonblocking).open(path(rest));
        }
        "wait" => {
            while !path(rest).exists() {
                thread::sleep(Duration::from_millis(2));
            }
        }
        "tell" => drop(File::create(path(rest)).unwrap()),
        "record" => {
            let recorder = Recorder::prepare(Backend::Touched, &Roots::default()).unwrap();
            let told = recorder.instance().unwrap().0.as_os_str().to_owned();
            fs::write(path(rest), told.as_encoded_bytes()).unwrap();
            run("hold");
            drop(recorder);
        }
        "refused" => {
            for backend in [Backend::Touched, Backend::Added, Backend::Resident] {
                eprintln!("{backend:?}: {}", Recorder::prepare(backend, &Roots::default()).unwrap_err());
            }
        }
        "hold" => loop {
            thread::park();
        },
        _ => panic!("no such line: {line}"),
    }
}
