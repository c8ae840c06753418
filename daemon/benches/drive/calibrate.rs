//! Holds a drive against its model: the same reads, once timed on the block device and once computed.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::block::LoopDevice;
use super::clock;
use super::counters::Counters;
use super::model::{Access, Model};
use super::parameters::{Flash, Mechanism};
use super::serve::{Shared, Transport};
use super::{Drive, Error};

/// How far a drive may be from its model, as a part of the model's time.
pub const TOLERANCE: f64 = 0.10;
/// How far it may be in any case: what the wake-up of a thread takes on a machine that has gone to sleep.
pub const SLACK: Duration = Duration::from_micros(20);

const PAGE: u64 = 4096;
const PASSES: u32 = 3;
/// The service time of the drive that the transport is measured with.
const PROBE: Duration = Duration::from_micros(100);
const LARGE: u64 = 128 << 10;

/// Reads to make: how many, how large, in what order, how many at a time.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    /// In words.
    pub name: &'static str,
    reads: usize,
    length: u64,
    sequential: bool,
    depth: usize,
}

/// The patterns that are measured.
pub const PATTERNS: [Pattern; 4] = [
    Pattern { name: "4 KiB scattered, one by one", reads: 300, length: PAGE, sequential: false, depth: 1 },
    Pattern {
        name: "128 KiB in sequence, one by one",
        reads: 300,
        length: LARGE,
        sequential: true,
        depth: 1,
    },
    Pattern {
        name: "4 KiB scattered, 32 at a time",
        reads: 1200,
        length: PAGE,
        sequential: false,
        depth: 32,
    },
    Pattern {
        name: "128 KiB scattered, 8 at a time",
        reads: 400,
        length: LARGE,
        sequential: false,
        depth: 8,
    },
];

/// One pattern, measured and computed.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Check {
    /// The pattern in words.
    pub pattern: &'static str,
    /// Time for each read, by the model.
    pub expected: Duration,
    /// Time for each read, on the block device.
    pub measured: Duration,
    /// What the drive counted.
    pub counters: Counters,
}

impl Check {
    /// The difference as a part of the model's time.
    #[must_use]
    pub fn error(&self) -> f64 {
        self.measured.as_secs_f64() / self.expected.as_secs_f64() - 1.0
    }

    /// Whether the drive is as near to its model as it should be.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.error().abs() <= TOLERANCE || self.measured.abs_diff(self.expected) <= SLACK
    }
}

/// Runs a pattern on an idle drive, some times over, and returns the fastest pass: other work on the machine delays
/// reads, and nothing makes them faster than the drive is.
///
/// # Errors
/// If the device cannot be read.
pub fn check(drive: &Drive, pattern: Pattern) -> Result<Check, Error> {
    let Some(device) = &drive.device else { return Err(Error::Fuse(io::ErrorKind::NotConnected.into())) };
    let capacity = drive.server.shared.capacity();
    let mechanism = drive.kind.mechanism();
    let stream = pattern.stream(capacity);
    let reads = u32::try_from(stream.len().max(1)).unwrap_or(u32::MAX);
    let expected = compute(mechanism, capacity, &stream, pattern.depth) / reads;
    let pass = || -> Result<Check, Error> {
        // The head starts from where the model's does.
        drive.server.shared.refit(mechanism, drive.transport);
        let measured = play(device, &stream, pattern.depth)? / reads;
        Ok(Check { pattern: pattern.name, expected, measured, counters: drive.counters() })
    };
    let mut best = pass()?;
    for _ in 1..PASSES {
        let next = pass()?;
        if next.measured < best.measured {
            best = next;
        }
    }
    Ok(best)
}

impl Pattern {
    fn stream(self, capacity: u64) -> Vec<Access> {
        let places = (capacity / self.length).max(1);
        let place = |i: u64| {
            if self.sequential { i % places } else { i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % places }
        };
        (1..=self.reads as u64)
            .map(|i| Access { offset: place(i) * self.length, length: self.length })
            .collect()
    }
}

/// The time that `depth` readers take who each begin the next read when the last is answered.
fn compute(mechanism: Mechanism, capacity: u64, stream: &[Access], depth: usize) -> Duration {
    let mut model = Model::new(mechanism, capacity);
    let mut next = stream.iter();
    for &access in next.by_ref().take(depth) {
        model.submit(Duration::ZERO, access, ());
    }
    let mut end = Duration::ZERO;
    while let Some(served) = model.complete() {
        end = served.at;
        if let Some(&access) = next.next() {
            model.submit(end, access, ());
        }
    }
    end
}

fn play(device: &LoopDevice, stream: &[Access], depth: usize) -> Result<Duration, Error> {
    let file = device.open_direct()?;
    let next = AtomicUsize::new(0);
    let ready = Barrier::new(depth + 1);
    let (took, outcome) = thread::scope(|scope| {
        let reader = || {
            // The drive is on trial here, not how long a busy machine keeps a reader waiting for a processor.
            clock::make_prompt();
            let mut buffer = Aligned::new(stream.iter().map(|a| a.length).max().unwrap_or(PAGE));
            ready.wait();
            while let Some(&access) = stream.get(next.fetch_add(1, Ordering::Relaxed)) {
                buffer.read(&file, access)?;
            }
            Ok(Instant::now())
        };
        let readers: Vec<_> = (0..depth).map(|_| scope.spawn(reader)).collect();
        ready.wait();
        let began = Instant::now();
        let joined =
            readers.into_iter().map(|r| r.join().unwrap_or_else(|_| Err(io::Error::other("panicked"))));
        let ends: io::Result<Vec<Instant>> = joined.collect();
        (began, ends)
    });
    let ends = outcome.map_err(|source| Error::Io { path: device.path().to_owned(), source })?;
    Ok(ends.into_iter().max().map_or(Duration::ZERO, |end| end.saturating_duration_since(took)))
}

/// Measures how long a request takes to reach the drive's clock and to come back, the wake-up of the threads included.
pub(super) fn transport(shared: &Shared, device: &LoopDevice) -> Result<Transport, Error> {
    let probe = Flash { channels: 1, latency: PROBE, bytes_per_second: u64::MAX };
    shared.refit(Mechanism::Flash(probe), Transport::default());
    let file = device.open_direct()?;
    let measured = thread::scope(|scope| {
        let probing = scope.spawn(|| {
            clock::make_prompt();
            let small = beyond_probe(&file, shared.capacity(), PAGE)?;
            let large = beyond_probe(&file, shared.capacity(), LARGE)?;
            Ok(Transport { request: small, page: large.saturating_sub(small) * 4096 / (128 << 10) })
        });
        probing.join().unwrap_or_else(|_| Err(io::Error::other("the probe panicked")))
    });
    measured.map_err(|source| Error::Io { path: device.path().to_owned(), source })
}

/// The time of a read beyond [`PROBE`]: the lowest tenth of many, which a machine with other work to do spoils least.
fn beyond_probe(file: &File, capacity: u64, length: u64) -> io::Result<Duration> {
    let mut buffer = Aligned::new(length);
    let places = (capacity / length).max(1);
    let mut beyond = Vec::new();
    for i in 0..300 {
        let began = Instant::now();
        buffer.read(file, Access { offset: i % places * length, length })?;
        beyond.push(began.elapsed().saturating_sub(PROBE));
    }
    beyond.sort_unstable();
    Ok(beyond[beyond.len() / 10])
}

/// A buffer that starts on a page, as direct I/O wants it.
struct Aligned {
    bytes: Vec<u8>,
    start: usize,
}

impl Aligned {
    fn new(length: u64) -> Self {
        let bytes = vec![0; usize::try_from(length + PAGE).unwrap_or(0)];
        let start = bytes.as_ptr().align_offset(4096);
        Self { bytes, start }
    }

    fn read(&mut self, file: &File, access: Access) -> io::Result<()> {
        let length = usize::try_from(access.length).map_err(io::Error::other)?;
        file.read_exact_at(&mut self.bytes[self.start..self.start + length], access.offset)
    }
}
