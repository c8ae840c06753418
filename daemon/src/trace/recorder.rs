//! Recording one run: what is set up before it, and what is made of it afterwards.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::fstatvfs;
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use super::assemble::Assembly;
use super::decode::{Decoded, correct_reads, decode};
use super::event::{ADDED, Decoder, TOUCHED};
use super::format::{FormatError, PageLayout};
use super::opens::{Listener, OpensError};
use super::pipes::Collector;
use super::tracefs::{Instance, TraceError, Tracefs};
use crate::mounts::{Mounts, MountsError};
use crate::recording::{Backend, DeviceNumber, Recording};
use crate::roots::Roots;
use crate::sys::residency::page_size;
use crate::watch::start::Monotonic;

/// Why a run cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Tracing does not work.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The kernel's descriptions cannot be used.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// Opens cannot be listened to.
    #[error(transparent)]
    Opens(#[from] OpensError),
    /// The table of mounts cannot be read.
    #[error(transparent)]
    Mounts(#[from] MountsError),
    /// Announcing a number to the filter failed.
    #[error("cannot restrict tracing to the run: {0}")]
    Filter(#[source] std::io::Error),
}

/// The part of a recorder that only tracing has.
#[derive(Debug)]
struct Tracing {
    // Before the instance: it must have closed its files when that is removed.
    collector: Collector,
    filter: File,
    events: Vec<&'static str>,
    decoder: Decoder,
    layout: PageLayout,
    /// The file that [`decode`] needs a read of.
    probe: Option<File>,
    /// The blocks of the file system of the file read for [`decode`], in pages.
    probe_pages: u64,
    instance: Instance,
}

/// A recorder, ready or at work.
#[derive(Debug)]
pub struct Recorder {
    tracing: Option<Tracing>,
    listener: Listener,
    backend: Backend,
    mounts: Mounts,
    roots: Roots,
    began: SystemTime,
}

/// A recorder that is kept ready for a run which nobody announces. Nothing is traced and no open is heard, so it costs other
/// programs nothing, and the machine its buffers.
///
/// What a run touches before it is armed is missing: the loader and what it maps first, which a prefetch could not overtake.
#[derive(Debug)]
pub struct Standing {
    tracing: Option<Tracing>,
    backend: Backend,
    roots: Roots,
}

impl Standing {
    /// Makes everything ready that may take its time.
    ///
    /// # Errors
    /// When the kernel lacks or refuses what `backend` needs.
    pub fn prepare(backend: Backend, roots: &Roots) -> Result<Self, RecordError> {
        let tracing = Tracing::for_backend(backend, roots, Some(STANDING_KIB))?;
        Ok(Self { tracing, backend, roots: roots.clone() })
    }

    /// How it will record.
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// Records the threads of these processes and all that they fork from now on.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn arm(self, processes: impl Fn() -> Vec<i32>) -> Result<Recorder, RecordError> {
        let Self { mut tracing, backend, roots } = self;
        let began = file_system_time();
        let mounts = Mounts::of(&roots, None)?;
        let listener = Listener::start(&mounts, &roots)?;
        // The filter last: what it lets through counts from the moment it is written, though the kernel then keeps the
        // writer waiting for tens of milliseconds.
        if let Some(tracing) = &mut tracing {
            tracing.begin()?;
            tracing.follow(&roots, processes)?;
        }
        Ok(Recorder { tracing, listener, backend, mounts, roots, began })
    }
}

/// One processor's buffer of a [`Standing`] recorder, in KiB. A large desktop application's start makes some ten thousand
/// events of 64 bytes, and the collector empties a buffer when a quarter is full.
const STANDING_KIB: u64 = 1024;

/// The run that was recorded.
#[derive(Clone, Copy, Debug)]
pub struct Recorded {
    /// When it executed.
    pub started: Monotonic,
    /// The process that all others of the run descend from.
    pub keeper: i32,
    /// Whether it was prefetched.
    pub prefetched: bool,
}

impl Recorder {
    /// Makes everything ready. Nothing is recorded before a thread's number is written to the files of
    /// [`Recorder::announce_to`].
    ///
    /// # Errors
    /// When the kernel lacks or refuses what `backend` needs.
    pub fn prepare(backend: Backend, roots: &Roots) -> Result<Self, RecordError> {
        Self::with_buffer(backend, roots, None)
    }

    /// [`Recorder::prepare`], with buffers of `kib` KiB for each processor.
    pub(super) fn with_buffer(
        backend: Backend,
        roots: &Roots,
        kib: Option<u64>,
    ) -> Result<Self, RecordError> {
        let mounts = Mounts::of(roots, None)?;
        let listener = Listener::start(&mounts, roots)?;
        let mut tracing = Tracing::for_backend(backend, roots, kib)?;
        if let Some(tracing) = &mut tracing {
            tracing.begin()?;
        }
        Ok(Self { tracing, listener, backend, mounts, roots: roots.clone(), began: tick_before_now() })
    }

    /// The files that must get the number of the run's first thread before it executes.
    #[must_use]
    pub fn announce_to(&self) -> Vec<BorrowedFd<'_>> {
        self.tracing.iter().map(|tracing| tracing.filter.as_fd()).collect()
    }

    /// The folder of the instance, and the number of the thread that collects.
    #[cfg(test)]
    pub(super) fn instance(&self) -> Option<(&Path, i32)> {
        self.tracing.as_ref().map(|tracing| (tracing.instance.path(), tracing.collector.id()))
    }

    /// Whether the names of files on the file system with this super block are heard: see [`Listener::hears`].
    #[must_use]
    pub fn hears(&self, device: DeviceNumber) -> bool {
        self.listener.hears(device)
    }

    /// A counter of page events so far, to tell quiet by; `None` without tracing.
    #[must_use]
    pub fn counter(&self) -> Option<Box<dyn FnMut() -> Option<u64> + Send>> {
        let instance = self.tracing.as_ref()?.instance.counter();
        Some(Box::new(move || instance.counts().ok().map(|counts| counts.written + counts.lost)))
    }

    /// Ends the recording and works out what it holds. Call it while the run's processes are still there: what they hold
    /// open without having opened it is asked from them.
    ///
    /// # Errors
    /// When the kernel's counts cannot be read.
    pub fn finish(self, run: Recorded) -> Result<Recording, RecordError> {
        let Self { tracing, listener, backend, mounts, roots, began } = self;
        // Mounts that the run has added to our namespace belong to it.
        let mounts = Mounts::of(&roots, None).unwrap_or(mounts);
        let (traced, instance) = match tracing {
            Some(tracing) => tracing.finish().map(|(decoded, instance)| (Some(decoded), Some(instance)))?,
            None => (None, None),
        };
        let opens = listener.finish();
        let assembly = Assembly { mounts: &mounts, roots: &roots, began, run };
        Ok(std::thread::scope(|scope| {
            // The kernel takes a tenth of a second to remove an instance: it waits for every processor to pass by.
            scope.spawn(|| drop(instance));
            match traced {
                None => assembly.resident(&opens),
                Some(decoded) => assembly.traced(backend, decoded, opens),
            }
        }))
    }
}

impl Tracing {
    /// What `backend` needs of tracing, made ready.
    fn for_backend(backend: Backend, roots: &Roots, kib: Option<u64>) -> Result<Option<Self>, RecordError> {
        Ok(match backend {
            Backend::Touched => Some(Self::ready(roots, kib, &[ADDED, TOUCHED[0], TOUCHED[1], TOUCHED[2]])?),
            Backend::Added => Some(Self::ready(roots, kib, &[ADDED])?),
            Backend::Resident => None,
        })
    }

    /// Everything but the events themselves, which cost whoever touches a page as soon as they are enabled.
    fn ready(roots: &Roots, kib: Option<u64>, events: &[&'static str]) -> Result<Self, RecordError> {
        let tracefs = Tracefs::find(roots)?;
        let instance = Instance::create(&tracefs, kib)?;
        let decoder = Decoder::load(tracefs.root(), events)?;
        let layout = PageLayout::load(tracefs.root())?;
        let collector = Collector::start(&instance, layout.size)?;
        let filter = instance.pid_filter()?;
        // An empty filter lets all threads through. The collector's own, which is not counted, closes it to all others.
        write_filter(&filter, &[collector.id()])?;
        let (probe, probe_pages) = probe(&roots.proc.join("self/exe")).unzip();
        let probe_pages = probe_pages.unwrap_or(1);
        Ok(Self { collector, filter, events: events.to_vec(), decoder, layout, probe, probe_pages, instance })
    }

    /// Begins to trace.
    fn begin(&mut self) -> Result<(), RecordError> {
        for event in &self.events {
            self.instance.enable(event)?;
        }
        self.instance.start()?;
        self.collector.begin(self.probe.take());
        Ok(())
    }

    /// Follows the threads of processes that run already. They may fork while they are listed, so they are listed until
    /// nothing new is found. All that are found are written at once: each write waits for every processor.
    fn follow(&self, roots: &Roots, processes: impl Fn() -> Vec<i32>) -> Result<(), RecordError> {
        let mut known = std::collections::BTreeSet::new();
        for _ in 0..8 {
            let threads = processes().into_iter().flat_map(|pid| threads(roots, pid));
            let new: Vec<i32> = threads.filter(|thread| known.insert(*thread)).collect();
            if new.is_empty() {
                break;
            }
            if write_filter(&self.filter, &new).is_err() {
                // One of them has ended meanwhile; the kernel has taken those before it.
                new.iter().try_for_each(|thread| match write_filter(&self.filter, &[*thread]) {
                    Err(RecordError::Filter(error)) if error.raw_os_error() == Some(GONE) => Ok(()),
                    written => written,
                })?;
            }
        }
        Ok(())
    }

    /// Ends it. The instance can then be dropped: nothing of it is open any more.
    fn finish(self) -> Result<(Decoded, Instance), RecordError> {
        self.instance.stop()?;
        let own = self.collector.id().unsigned_abs();
        let pages = self.collector.finish();
        let counts = self.instance.counts()?;
        let mut decoded = decode(&pages, &self.layout, &self.decoder, counts);
        correct_reads(&mut decoded.events, own, self.probe_pages);
        decoded.events.retain(|event| event.pid != own);
        Ok((decoded, self.instance))
    }
}

/// `ESRCH`: no such process.
const GONE: i32 = Errno::SRCH.raw_os_error();

/// Adds threads. What the kernel has taken of a longer list is not written again.
fn write_filter(filter: &File, threads: &[i32]) -> Result<(), RecordError> {
    let list = threads.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let mut rest = list.as_bytes();
    while !rest.is_empty() {
        match rustix::io::write(filter, rest).map_err(|errno| RecordError::Filter(errno.into()))? {
            0 => break,
            written => rest = rest.get(written..).unwrap_or_default(),
        }
    }
    Ok(())
}

fn threads(roots: &Roots, pid: i32) -> Vec<i32> {
    let Ok(threads) = std::fs::read_dir(roots.proc.join(format!("{pid}/task"))) else { return Vec::new() };
    threads.flatten().filter_map(|thread| thread.file_name().to_str()?.parse().ok()).collect()
}

/// A file to read the first byte of, and how many pages that read has to be reported as: those of one block.
fn probe(path: &Path) -> Option<(File, u64)> {
    let file = File::open(path).ok()?;
    let block = fstatvfs(&file).ok()?.f_bsize;
    Some((file, (block / page_size()).max(1)))
}

/// The present tick of the file systems' clock, once it is over: what is made from now on has a later one, and a file
/// that was made right before is not taken for the run's own.
fn tick_before_now() -> SystemTime {
    let tick = file_system_time();
    for _ in 0..50 {
        if file_system_time() > tick {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    tick
}

/// The clock of the file systems' time stamps, which lags a little behind the system's.
fn file_system_time() -> SystemTime {
    let now = clock_gettime(ClockId::RealtimeCoarse);
    let since = Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or_default());
    SystemTime::UNIX_EPOCH + since
}
