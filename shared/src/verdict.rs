//! Whether prefetching an app is worth it, from its launches in daily use.
//!
//! A random share of cold launches is held out. The effect is the difference of the medians of both arms, with a
//! bootstrap interval, over the latest launches ([`WINDOW`] of each arm): medians and a window, because single launches
//! scatter and machines change. The claim follows the interval and nothing else.

use serde::{Deserialize, Serialize};

use crate::run::Milestone;
use crate::stats::Estimate;

/// The latest counted launches of each arm that a verdict is made from.
pub const WINDOW: usize = 40;

/// What prefetching gained: positive is faster.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// What the times are the times to.
    pub milestone: Milestone,
    /// Median of held-out launches, seconds.
    pub before: f64,
    /// Median of prefetched launches, seconds.
    pub after: f64,
    /// Their difference with its interval, seconds.
    pub gain: Estimate,
    /// Held-out launches that it is made from.
    pub held_out: usize,
    /// Prefetched launches that it is made from.
    pub prefetched: usize,
}

/// The claim about an app.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Verdict {
    /// Too few launches to tell.
    Measuring {
        /// Counted held-out launches.
        held_out: usize,
        /// Counted prefetched launches.
        prefetched: usize,
        /// The fewest of each that can tell.
        needed: usize,
    },
    /// The interval of the gain is above zero.
    Faster(Effect),
    /// The interval of the gain holds zero.
    NoMeasurableGain(Effect),
    /// The interval of the gain is below zero.
    Slower(Effect),
}
