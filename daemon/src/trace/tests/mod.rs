//! On the real kernel: programs that touch what a test tells them to, running as any program is, and compared with what
//! the kernel says by other means.

mod backends;
mod captured;
mod failures;
mod file_systems;
mod files;
mod namespaces;
mod processes;
mod program;
mod standing;

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::recorder::{Recorded, Recorder};
use crate::recording::{Backend, PageRange, RecordedFile, Recording};
use crate::roots::Roots;
use crate::sys::loop_images::skip;
use crate::sys::readahead::evict;
use crate::sys::residency::{page_size, resident_in};
use crate::watch::launch::{Command, Gate, Run, launch};
use crate::watch::start::StartEvent;
use crate::watch::testing::{session, until};

/// A recorder; `None`, said on standard error, where none can work.
fn recorder(backend: Backend) -> Option<Recorder> {
    if !rustix::process::geteuid().is_root() {
        skip("root");
        return None;
    }
    match Recorder::prepare(backend, &Roots::default()) {
        Ok(recorder) => Some(recorder),
        Err(error) => {
            skip(&error.to_string());
            None
        }
    }
}

/// A program that is running.
struct Running {
    recorder: Recorder,
    run: Run,
}

impl Running {
    /// Starts it as callers do: its number goes to the filter through the gate.
    fn start(recorder: Recorder, command: &Command) -> Self {
        let gate = Gate { start: Arc::new(StartEvent::new().unwrap()), announce_to: recorder.announce_to() };
        let run = launch(command, &gate, &Roots::default()).unwrap();
        Self { recorder, run }
    }

    /// Waits until it has ended, all that it started included.
    fn until_over(&self) {
        until("the end of the program", || self.run.is_empty());
        let ended = self.run.ended().unwrap();
        assert!(ended.status.success(), "{:?}: {}", ended.status, self.run.last_words());
    }

    fn finish(self) -> Recording {
        let keeper = self.run.keeper();
        let started = self.run.started();
        self.recorder.finish(Recorded { started, keeper, prefetched: false }).unwrap()
    }
}

/// Records a script of `program` from its start to its end.
fn record(backend: Backend, script: &[String]) -> Option<Recording> {
    let running = Running::start(recorder(backend)?, &program::command(script));
    running.until_over();
    Some(running.finish())
}

fn shell(script: &str) -> Command {
    Command::new(&session(), "/bin/sh".into(), ["sh", "-ec", script].map(OsString::from).into())
}

fn range(start: u64, end: u64) -> PageRange {
    PageRange { start, end }
}

fn bytes(pages: u64) -> usize {
    usize::try_from(pages * page_size()).unwrap()
}

/// What a recording holds of a file: its pages, neighbouring ranges joined.
fn pages_of(recording: &Recording, path: &Path) -> Vec<PageRange> {
    let Some(file) = file_of(recording, path) else { return Vec::new() };
    let mut joined: Vec<PageRange> = Vec::new();
    for touch in &file.touches {
        match joined.last_mut() {
            Some(last) if last.end == touch.pages.start => last.end = touch.pages.end,
            last => {
                assert!(last.is_none_or(|last| last.end < touch.pages.start), "sorted and disjoint");
                joined.push(touch.pages);
            }
        }
    }
    joined
}

fn file_of<'a>(recording: &'a Recording, path: &Path) -> Option<&'a RecordedFile> {
    let mut found = recording.files.iter().filter(|file| file.path == path);
    let first = found.next();
    assert!(found.next().is_none(), "{} is there twice", path.display());
    first
}

/// When the first page of a file was needed, in nanoseconds.
fn first_need(recording: &Recording, path: &Path) -> u64 {
    file_of(recording, path).unwrap().touches.iter().map(|touch| touch.at.0).min().unwrap()
}

/// What is resident of a file, as `mincore(2)` says.
fn resident(path: &Path) -> Vec<PageRange> {
    resident_in(&File::open(path).unwrap()).unwrap()
}

fn make_cold(path: &Path) {
    let file = File::open(path).unwrap();
    file.sync_all().unwrap();
    evict(&file).unwrap();
    assert_eq!(resident_in(&file).unwrap(), [], "{} could not be evicted", path.display());
}

/// The parts of `ranges` that are in `others` too; both sorted and disjoint.
fn common(ranges: &[PageRange], others: &[PageRange]) -> Vec<PageRange> {
    let both = ranges.iter().flat_map(|a| {
        others.iter().map(|b| range(a.start.max(b.start), a.end.min(b.end))).filter(|both| !both.is_empty())
    });
    both.collect()
}
