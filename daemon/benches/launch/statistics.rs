//! Medians and spread.

use headstart_shared::comparison::Comparison;
use headstart_shared::run::Condition;
use headstart_shared::units::Nanos;
use serde::Serialize;

/// The middle, the least and the greatest of some times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    /// The median, in seconds.
    pub median: f64,
    /// The least, in seconds.
    pub least: f64,
    /// The greatest, in seconds.
    pub greatest: f64,
}

impl Spread {
    /// `None` of nothing.
    pub(crate) fn of(times: impl IntoIterator<Item = Nanos>) -> Option<Self> {
        Self::of_values(times.into_iter().map(Nanos::as_secs_f64))
    }

    /// `None` of nothing.
    pub(crate) fn of_values(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (least, greatest) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[middle]
        } else {
            f64::midpoint(values[middle - 1], values[middle])
        };
        Some(Self { median, least, greatest })
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("{:.2} ({:.2}–{:.2})", self.median, self.least, self.greatest))
    }
}

/// What a comparison comes to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Gain {
    /// Seconds of a cold start.
    pub cold: Spread,
    /// Seconds of a prefetched one.
    pub prefetched: Spread,
    /// Seconds of a warm one.
    pub warm: Spread,
    /// Prefetched over cold, by medians.
    pub ratio: f64,
    /// The part of the gap between cold and warm that is closed, by medians; negative if prefetching harms, `None` if
    /// there is no gap.
    pub gap_closed: Option<f64>,
}

impl Gain {
    /// `None` if a condition has no start that counts.
    pub(crate) fn of(comparison: &Comparison) -> Option<Self> {
        let spread = |condition| {
            Spread::of(comparison.runs.iter().filter(|run| run.condition == condition).map(|run| run.time))
        };
        let (cold, prefetched, warm) =
            (spread(Condition::Cold)?, spread(Condition::Prefetched)?, spread(Condition::Warm)?);
        let gap = cold.median - warm.median;
        let gap_closed = (gap > 0.0).then(|| (cold.median - prefetched.median) / gap);
        Some(Self { cold, prefetched, warm, ratio: prefetched.median / cold.median, gap_closed })
    }
}
