//! Collecting an instance's raw pages while a run goes on.
//!
//! One thread sleeps until a quarter of a processor's buffer is full, so most starts are over before it wakes at all.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;

use super::tracefs::{Instance, TraceError};

/// The bytes of pages kept of one recording, at most: more than a million events, where a large desktop application's
/// start makes some ten thousand. With this a recording's memory has a bound, whatever a program does.
pub(super) const LIMIT: usize = 64 << 20;

/// What was collected: the pages of each processor in order, one after the other.
#[derive(Debug, Default)]
pub struct Pages {
    /// One entry a processor; each page where [`Pages::size`] says.
    pub processors: Vec<Vec<u8>>,
    /// Bytes in a page.
    pub size: usize,
    /// How many pages were thrown away because there were too many.
    pub cut: u64,
}

/// A thread that collects.
#[derive(Debug)]
pub struct Collector {
    thread: Option<JoinHandle<Pages>>,
    stop: Arc<OwnedFd>,
    id: i32,
    begin: Option<Sender<Option<File>>>,
}

impl Collector {
    /// Makes ready to collect from `instance`, whose pages have `page_size` bytes, until [`Collector::begin`].
    ///
    /// # Errors
    /// When its files cannot be opened, or there is no thread to be had.
    pub fn start(instance: &Instance, page_size: usize) -> Result<Self, TraceError> {
        let mut pipes = Vec::new();
        for path in instance.pipes()? {
            pipes.push(open(&path)?);
        }
        let here = || PathBuf::from("trace_pipe_raw");
        let stop = eventfd(0, EventfdFlags::CLOEXEC)
            .map_err(|error| TraceError::Control { path: here(), source: error.into() })?;
        let stop = Arc::new(stop);
        let (tell, told) = channel();
        let (begin, signal) = channel::<Option<File>>();
        let thread = {
            let stop = Arc::clone(&stop);
            std::thread::Builder::new().name("trace".into()).spawn(move || {
                let _ = tell.send(rustix::thread::gettid().as_raw_nonzero().get());
                if let Ok(Some(probe)) = signal.recv() {
                    // Only that it was read matters.
                    let _ = probe.read_at(&mut [0], 0);
                }
                collect(pipes, page_size, &stop)
            })
        };
        let thread = thread.map_err(|source| TraceError::Control { path: here(), source })?;
        Ok(Self { thread: Some(thread), stop, id: told.recv().unwrap_or_default(), begin: Some(begin) })
    }

    /// Begins, with a read of the first byte of `probe`. Only once.
    pub fn begin(&mut self, probe: Option<File>) {
        if let Some(begin) = self.begin.take() {
            let _ = begin.send(probe);
        }
    }

    /// The thread's number: a thread that touches no file but the probe.
    #[must_use]
    pub fn id(&self) -> i32 {
        self.id
    }

    /// Ends, with all that was collected.
    #[must_use]
    pub fn finish(mut self) -> Pages {
        self.join().unwrap_or_default()
    }

    fn join(&mut self) -> Option<Pages> {
        self.begin = None;
        let thread = self.thread.take()?;
        // Writing 1 to an eventfd that is read by nobody cannot fail.
        let _ = rustix::io::write(&*self.stop, &1_u64.to_ne_bytes());
        thread.join().ok()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.join();
    }
}

fn open(path: &PathBuf) -> Result<File, TraceError> {
    let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    OpenOptions::new()
        .read(true)
        .custom_flags(nonblocking)
        .open(path)
        .map_err(|source| TraceError::Control { path: path.clone(), source })
}

fn collect(mut pipes: Vec<File>, size: usize, stop: &OwnedFd) -> Pages {
    let mut pages = Pages { processors: vec![Vec::new(); pipes.len()], size, cut: 0 };
    loop {
        let mut fds = vec![PollFd::new(stop, PollFlags::IN)];
        fds.extend(pipes.iter().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        match poll(&mut fds, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return pages,
        }
        let stopping = !fds[0].revents().is_empty();
        let ready: Vec<bool> = fds[1..].iter().map(|fd| stopping || !fd.revents().is_empty()).collect();
        drop(fds);
        for (processor, pipe) in pipes.iter_mut().enumerate().filter(|(processor, _)| ready[*processor]) {
            pages.drain(processor, pipe);
        }
        if stopping {
            return pages;
        }
    }
}

impl Pages {
    /// Reads all that one processor has by now. A page read is whole, but what is behind its last event is not set,
    /// so each takes its full size here.
    fn drain(&mut self, processor: usize, pipe: &mut File) {
        let mut page = vec![0; self.size];
        while let Some(length) = read(pipe, &mut page) {
            page[length..].fill(0);
            if self.processors.iter().map(Vec::len).sum::<usize>() >= LIMIT {
                self.cut += 1;
            } else if let Some(kept) = self.processors.get_mut(processor) {
                kept.extend_from_slice(&page);
            }
        }
    }
}

/// One page; `None` when there is none, or none to be had any more.
fn read(pipe: &mut File, page: &mut [u8]) -> Option<usize> {
    loop {
        match pipe.read(page) {
            Ok(0) => return None,
            Ok(length) => return Some(length),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}
