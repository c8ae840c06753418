//! What recording costs: in each round of a comparison, one cold start is recorded and one is not.

use headstart_shared::comparison::{Comparison, TimedRun};
use headstart_shared::run::Condition;
use serde::Serialize;

use crate::statistics::Spread;

/// Cold starts with and without the recorder.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RecordingCost {
    /// Seconds of a cold start that is recorded.
    pub recorded: Spread,
    /// Seconds of one that is not.
    pub unrecorded: Spread,
    /// How much longer the recorded start of each round took than the other, in per cent.
    pub percent: Spread,
}

impl RecordingCost {
    /// From a comparison that timed recording too; `None` if it has no such starts.
    pub(crate) fn of(comparison: &Comparison) -> Option<Self> {
        let cold = |round: u32| {
            comparison.runs.iter().find(|run| run.round == round && run.condition == Condition::Cold)
        };
        let pairs: Vec<(&TimedRun, &TimedRun)> =
            comparison.recorded.iter().filter_map(|run| Some((run, cold(run.round)?))).collect();
        let longer = pairs
            .iter()
            .map(|(with, without)| 100.0 * (with.time.as_secs_f64() / without.time.as_secs_f64() - 1.0));
        Some(Self {
            recorded: Spread::of(pairs.iter().map(|(with, _)| with.time))?,
            unrecorded: Spread::of(pairs.iter().map(|(_, without)| without.time))?,
            percent: Spread::of_values(longer)?,
        })
    }
}
