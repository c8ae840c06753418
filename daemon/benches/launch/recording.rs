//! What recording costs: cold starts with the recorder on and off, one after the other, the order changing each time.

use anyhow::Result;
use headstart_shared::run::Condition;
use serde::Serialize;

use crate::apps::Target;
use crate::compare::{Request, compare};
use crate::process::Interrupt;
use crate::setup::Setup;
use crate::statistics::Spread;

/// The cost on one application on one drive.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RecordingCost {
    /// Seconds of a cold start that is recorded.
    pub recorded: Spread,
    /// Seconds of one that is not.
    pub unrecorded: Spread,
    /// How much longer the recorded start of each pair took than the other, in per cent.
    pub percent: Spread,
}

const RECORDED: &str = "--record=always";
const UNRECORDED: &str = "--record=never";

/// Times `request.rounds` pairs.
pub(crate) fn measure(
    setup: &Setup,
    target: &Target,
    request: Request<'_>,
    interrupt: &Interrupt,
) -> Result<Option<RecordingCost>> {
    let (mut recorded, mut unrecorded) = (Vec::new(), Vec::new());
    for round in 0..request.rounds {
        let order = if round % 2 == 0 { [RECORDED, UNRECORDED] } else { [UNRECORDED, RECORDED] };
        let mut pair = [None, None];
        for option in order {
            let options = [option];
            let comparison =
                compare(setup, target, Request { rounds: 1, options: &options, ..request }, interrupt)?;
            let cold = comparison.runs.iter().find(|run| run.condition == Condition::Cold);
            pair[usize::from(option == UNRECORDED)] = cold.map(|run| run.time);
        }
        if let [Some(with), Some(without)] = pair {
            recorded.push(with);
            unrecorded.push(without);
        }
    }
    let pairs = recorded.iter().zip(&unrecorded);
    let percent = Spread::of_values(pairs.map(|(a, b)| 100.0 * (a.as_secs_f64() / b.as_secs_f64() - 1.0)));
    let spreads = (Spread::of(recorded), Spread::of(unrecorded), percent);
    let (Some(recorded), Some(unrecorded), Some(percent)) = spreads else { return Ok(None) };
    Ok(Some(RecordingCost { recorded, unrecorded, percent }))
}
