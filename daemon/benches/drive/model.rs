//! What a drive does with a stream of reads: requests and moments in, completion moments out. No clock, no I/O.
//!
//! Moments are spans since any fixed origin. The caller hands over each read when it arrives ([`Model::submit`]),
//! asks when the next one will be answered ([`Model::due`]), and takes it at that moment ([`Model::complete`]). What
//! [`Model::due`] has named is committed to: a later arrival never overtakes it. The same stream therefore always
//! takes the same time, however late the caller is.
//!
//! Two kinds of drive are modelled:
//!
//! * **Spinning**: one head. A read that continues where the head is, or a little further on, only lets the platter
//!   pass; any other pays a seek and a rotational delay. The seek grows with the root of the distance, as in Ruemmler
//!   and Wilkes, *An introduction to disk drive modeling*, IEEE Computer 27(3), 1994. The rotational delay is spread
//!   evenly over one turn by a hash of the sector, so that it is the same in every run. The drive holds a queue and
//!   takes the nearest request next; with several to choose from it wastes half as much rotation.
//! * **Flash**: a number of channels, each occupied by a request for the time of one page read, behind one link that
//!   carries the data of all.

use std::collections::VecDeque;
use std::time::Duration;

use super::parameters::{Flash, Mechanism, Spinning};

/// A read of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The first byte.
    pub offset: u64,
    /// The number of bytes.
    pub length: u64,
}

impl Access {
    fn end(self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}

/// A read that has been served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served<T> {
    /// What was read.
    pub access: Access,
    /// When it arrived.
    pub arrived: Duration,
    /// When it was answered.
    pub at: Duration,
    /// Whether the head had to be moved for it.
    pub sought: bool,
    /// What the caller attached to the request.
    pub tag: T,
}

/// A drive at work. `T` is whatever the caller needs to answer a request.
#[derive(Debug)]
pub struct Model<T> {
    mechanism: Queue<T>,
    busy: Duration,
    last: Duration,
}

#[derive(Debug)]
enum Queue<T> {
    Spinning(SpinningQueue<T>),
    Flash(FlashQueue<T>),
}

impl<T> Model<T> {
    /// An idle drive of `capacity` bytes.
    #[must_use]
    pub fn new(mechanism: Mechanism, capacity: u64) -> Self {
        let mechanism = match mechanism {
            Mechanism::Spinning(drive) => Queue::Spinning(SpinningQueue::new(drive, capacity)),
            Mechanism::Flash(drive) => Queue::Flash(FlashQueue::new(drive)),
        };
        Self { mechanism, busy: Duration::ZERO, last: Duration::ZERO }
    }

    /// Hands over a read that arrives at `now`. Arrivals are in order of time.
    pub fn submit(&mut self, now: Duration, access: Access, tag: T) {
        match &mut self.mechanism {
            Queue::Spinning(queue) => queue.waiting.push_back(Waiting { access, arrived: now, tag }),
            Queue::Flash(queue) => queue.submit(now, access, tag),
        }
    }

    /// The read that is answered next and the moment of it; `None` if there is none to answer.
    pub fn due(&mut self) -> Option<(Duration, Access)> {
        let next = match &mut self.mechanism {
            Queue::Spinning(queue) => queue.in_service(),
            Queue::Flash(queue) => queue.in_flight.front(),
        };
        next.map(|served| (served.at, served.access))
    }

    /// Takes the read that [`Self::due`] names.
    pub fn complete(&mut self) -> Option<Served<T>> {
        let served = match &mut self.mechanism {
            Queue::Spinning(queue) => queue.complete(),
            Queue::Flash(queue) => queue.in_flight.pop_front(),
        }?;
        // Both kinds answer in order of `at`, so the union of the spans in which something was outstanding is this sum.
        self.busy += served.at.saturating_sub(self.last.max(served.arrived));
        self.last = self.last.max(served.at);
        Some(served)
    }

    /// Reads handed over and not yet taken.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        match &self.mechanism {
            Queue::Spinning(queue) => queue.waiting.len() + usize::from(queue.service.is_some()),
            Queue::Flash(queue) => queue.in_flight.len(),
        }
    }

    /// The time during which at least one of the reads taken so far was outstanding.
    #[must_use]
    pub fn busy(&self) -> Duration {
        self.busy
    }
}

#[derive(Debug)]
struct Waiting<T> {
    access: Access,
    arrived: Duration,
    tag: T,
}

#[derive(Debug)]
struct SpinningQueue<T> {
    drive: Spinning,
    capacity: u64,
    head: u64,
    free: Duration,
    waiting: VecDeque<Waiting<T>>,
    service: Option<Served<T>>,
}

impl<T> SpinningQueue<T> {
    fn new(drive: Spinning, capacity: u64) -> Self {
        let waiting = VecDeque::new();
        Self { drive, capacity: capacity.max(1), head: 0, free: Duration::ZERO, waiting, service: None }
    }

    fn in_service(&mut self) -> Option<&Served<T>> {
        if self.service.is_none() {
            self.service = self.choose();
        }
        self.service.as_ref()
    }

    fn complete(&mut self) -> Option<Served<T>> {
        self.in_service()?;
        let served = self.service.take()?;
        self.free = served.at;
        self.head = served.access.end();
        Some(served)
    }

    /// Takes the nearest of the requests that were in the drive's queue when the head came free.
    fn choose(&mut self) -> Option<Served<T>> {
        let start = self.free.max(self.waiting.front()?.arrived);
        let seen =
            self.waiting.iter().take(self.drive.queue_depth).take_while(|w| w.arrived <= start).count();
        let head = self.head;
        let nearest = (0..seen).min_by_key(|&i| self.waiting[i].access.offset.abs_diff(head))?;
        let Waiting { access, arrived, tag } = self.waiting.remove(nearest)?;
        let approach = self.approach(access.offset, seen - 1);
        let at = start + approach.time + transfer(access.length, self.drive.bytes_per_second);
        Some(Served { access, arrived, at, sought: approach.sought, tag })
    }

    fn approach(&self, offset: u64, others: usize) -> Approach {
        let distance = offset.abs_diff(self.head);
        if offset >= self.head && distance < self.drive.pass_over {
            return Approach { time: transfer(distance, self.drive.bytes_per_second), sought: false };
        }
        let choice = if others >= self.drive.rotation_choice { 0.5 } else { 1.0 };
        let time = self.seek(distance) + self.drive.turn().mul_f64(choice * sector_angle(offset));
        Approach { time, sought: true }
    }

    #[expect(clippy::cast_precision_loss, reason = "a millionth of the stroke does not matter")]
    fn seek(&self, distance: u64) -> Duration {
        let share = (distance as f64 / self.capacity as f64).min(1.0).sqrt();
        self.drive.shortest_seek
            + (self.drive.longest_seek.saturating_sub(self.drive.shortest_seek)).mul_f64(share)
    }
}

struct Approach {
    time: Duration,
    sought: bool,
}

/// The part of a turn until a 4 KiB sector passes, evenly spread and fixed for each sector.
#[expect(clippy::cast_precision_loss, reason = "24 bits are exact")]
fn sector_angle(offset: u64) -> f64 {
    // The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): neighbouring sectors become unrelated.
    let mut bits = (offset >> 12).wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((bits ^ (bits >> 31)) >> 40) as f64 / f64::from(1_u32 << 24)
}

#[derive(Debug)]
struct FlashQueue<T> {
    drive: Flash,
    /// When each channel comes free.
    channels: Vec<Duration>,
    /// When the link comes free.
    link: Duration,
    /// In order of arrival, which is also the order in which the link carries them.
    in_flight: VecDeque<Served<T>>,
}

impl<T> FlashQueue<T> {
    fn new(drive: Flash) -> Self {
        let channels = vec![Duration::ZERO; drive.channels.max(1)];
        Self { drive, channels, link: Duration::ZERO, in_flight: VecDeque::new() }
    }

    fn submit(&mut self, now: Duration, access: Access, tag: T) {
        let Some(channel) = self.channels.iter_mut().min() else { return };
        let read = now.max(*channel) + self.drive.latency;
        *channel = read;
        let at = read.max(self.link) + transfer(access.length, self.drive.bytes_per_second);
        self.link = at;
        self.in_flight.push_back(Served { access, arrived: now, at, sought: false, tag });
    }
}

fn transfer(bytes: u64, per_second: u64) -> Duration {
    let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(per_second.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
