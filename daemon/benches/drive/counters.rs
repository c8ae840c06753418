//! What a drive did: counted since it was started or last reset.

use std::time::Duration;

use headstart_shared::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use super::model::Served;

/// What a drive did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Reads answered.
    pub reads: u64,
    /// Bytes in them.
    pub read_bytes: Bytes,
    /// Reads for which the head had to be moved.
    pub seeks: u64,
    /// Writes, which cost no time.
    pub writes: u64,
    /// Bytes in them.
    pub written_bytes: Bytes,
    /// Time during which at least one read was outstanding, by the model.
    pub busy: Nanos,
    /// The most reads that were outstanding at once.
    pub deepest_queue: u64,
    /// The sum of how much later than the model's moments the answers were sent: of what the machine's load spoils.
    pub late: Nanos,
    /// The latest one.
    pub latest: Nanos,
    /// Processor time of the drive's own threads.
    pub processor: Nanos,
}

impl Counters {
    pub(super) fn count_read<T>(&mut self, served: &Served<T>, late: Duration) {
        self.reads += 1;
        self.read_bytes += Bytes(served.access.length);
        self.seeks += u64::from(served.sought);
        let late = Nanos::from(late);
        self.late += late;
        self.latest = self.latest.max(late);
    }

    pub(super) fn count_write(&mut self, length: usize) {
        self.writes += 1;
        self.written_bytes += Bytes(u64::try_from(length).unwrap_or(u64::MAX));
    }

    pub(super) fn count_depth(&mut self, outstanding: usize) {
        self.deepest_queue = self.deepest_queue.max(u64::try_from(outstanding).unwrap_or(u64::MAX));
    }

    /// How much later than the model's moment an answer was sent on average.
    #[must_use]
    pub fn mean_lateness(&self) -> Nanos {
        Nanos(self.late.0.checked_div(self.reads).unwrap_or(0))
    }
}
