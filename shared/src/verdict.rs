//! Whether prefetching an app is worth it, from its launches in daily use.
//!
//! A random share of cold launches is held out. The effect is the difference of the medians of both arms, with a
//! bootstrap interval, over the latest launches ([`WINDOW`] of each arm): medians and a window, because single launches
//! scatter and machines change. The claim follows the interval and nothing else.
//!
//! A verdict is made after every launch, and whoever looks often enough sees a chance as a finding. Hence the level of
//! 99.5 % ([`LEVEL`]): with 95 %, one app in six that gains nothing would be called faster at some time.

use serde::{Deserialize, Serialize};

use crate::run::Milestone;
use crate::stats::{self, Estimate};

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

/// The fewest counted launches of each arm that can tell.
pub const NEEDED: usize = stats::BOOTSTRAP_FROM;
/// The level of the interval that a claim follows.
pub const LEVEL: f64 = 0.995;
/// A gain below this share of a held-out launch is not worth reading ahead for.
pub const RELEVANT: f64 = 0.05;
/// With so many counted launches of each arm a relevant gain would have shown.
pub const ENOUGH: usize = 24;

/// Judges by the times of an app's counted launches in seconds, the latest first, to one milestone. Times that are no
/// numbers are left out.
#[must_use]
pub fn judge(milestone: Milestone, held_out: &[f64], prefetched: &[f64]) -> Verdict {
    let window = |times: &[f64]| -> Vec<f64> {
        times.iter().copied().filter(|time| time.is_finite()).take(WINDOW).collect()
    };
    let (held_out, prefetched) = (window(held_out), window(prefetched));
    let medians = stats::median(&held_out).zip(stats::median(&prefetched));
    let gain = stats::median_difference(&held_out, &prefetched, LEVEL);
    let (Some((before, after)), Some(gain)) = (medians, gain) else {
        return Verdict::Measuring { held_out: held_out.len(), prefetched: prefetched.len(), needed: NEEDED };
    };
    let effect =
        Effect { milestone, before, after, gain, held_out: held_out.len(), prefetched: prefetched.len() };
    if gain.is_above_zero(LEVEL) {
        Verdict::Faster(effect)
    } else if gain.is_below_zero(LEVEL) {
        Verdict::Slower(effect)
    } else {
        Verdict::NoMeasurableGain(effect)
    }
}

/// Whether an app is to be given up: `Some(true)` because it is slower; `Some(false)` because there is no measurable gain
/// although one would have shown, that is if a gain of [`RELEVANT`] is outside the interval, or there were [`ENOUGH`]
/// launches of each arm and their medians are closer than that. `None` if it is to go on.
#[must_use]
pub fn give_up(verdict: &Verdict) -> Option<bool> {
    match verdict {
        Verdict::Measuring { .. } | Verdict::Faster(_) => None,
        Verdict::Slower(_) => Some(true),
        Verdict::NoMeasurableGain(effect) => {
            let relevant = effect.before * RELEVANT;
            let enough = effect.held_out.min(effect.prefetched) >= ENOUGH;
            let none = effect.gain.interval.high < relevant || enough && effect.gain.value < relevant;
            none.then_some(false)
        }
    }
}

#[cfg(test)]
mod tests;
