//! What a comparison shows: medians, spreads, the gain with its interval, the verdict, and what to be careful about.
//!
//! Everything here is computed from a [`Comparison`] and holds no words; `words.rs` says it in sentences. Rules:
//!
//! - The gain is the Hodges–Lehmann shift from prefetched to cold starts; a claim needs its interval at 95 % to leave
//!   out zero. With fewer starts than can reach 95 % (4 and 4 are the fewest balanced) there is no verdict.
//! - The gain in per cent is the same shift of the logarithms, so both intervals leave out zero together.
//! - The share of the gap closed is gain over gap (cold against warm), both as shifts. It is only given when the gap
//!   itself is beyond noise: a share of nothing is not a figure.

use std::collections::{BTreeMap, BTreeSet};

use crate::comparison::{Comparison, TimedRun};
use crate::run::{ColdMethod, Condition};
use crate::stats::{self, Estimate, LEVEL, Spread};
use crate::units::Bytes;

/// What a comparison shows. Times are in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// One for each of [`Condition::ALL`], in that order, also where there are no starts.
    pub conditions: [ConditionSummary; 3],
    /// What reading ahead gained; `None` if one of the two cold conditions has no starts.
    pub gain: Option<Gain>,
    /// The share of the gap between cold and warm that reading ahead closed, 1 for all of it; or why there is none.
    pub gap_closed: Result<f64, NoGap>,
    /// The claim.
    pub verdict: Verdict,
    /// Bytes of file content that a prefetched start read ahead.
    pub read_ahead: Bytes,
    /// The share of them that the start then used, 0 to 1, where recorded.
    pub used_share: Option<f64>,
    /// What a reader must know to judge the figures, the gravest first.
    pub warnings: Vec<Warning>,
}

/// The starts of one condition.
#[derive(Clone, Debug, PartialEq)]
pub struct ConditionSummary {
    /// Which one.
    pub condition: Condition,
    /// Seconds of each start, in the order in which they ran.
    pub times: Vec<f64>,
    /// Their median.
    pub median: Option<f64>,
    /// Their spread, labelled.
    pub spread: Option<Spread>,
    /// Positions in `times` of starts far from the others. They stay in every figure.
    pub outliers: Vec<usize>,
}

/// What reading ahead gained: positive is faster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    /// Seconds.
    pub seconds: Estimate,
    /// Share of the cold start's time, 0.5 for half; `None` where a time of zero makes it meaningless.
    pub share: Option<Estimate>,
}

/// Why there is no share of the gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoGap {
    /// A condition has no starts.
    NotMeasured,
    /// Too few starts for the gap to be beyond noise.
    TooFew,
    /// Cold starts are not measurably slower than warm ones.
    WithinNoise,
}

/// The claim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// The interval of the gain is above zero.
    Faster(Gain),
    /// The interval of the gain holds zero.
    NoMeasurableGain(Gain),
    /// The interval of the gain is below zero.
    Slower(Gain),
    /// Too few starts to tell.
    TooFew {
        /// Cold starts.
        cold: usize,
        /// Prefetched starts.
        prefetched: usize,
        /// The fewest of each that can tell.
        needed: usize,
    },
}

/// What a reader must know to judge the figures.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// Cold starts read much less from the drive than the profile holds: caches were not empty.
    NotReallyCold {
        /// Median that a cold start read.
        read: Bytes,
        /// What the plan holds.
        planned: Bytes,
    },
    /// Warm starts are not faster than cold ones: there is nothing for reading ahead to gain.
    WarmNotFaster,
    /// The recorder lost events, so the profile may lack pages.
    LostEvents(u64),
    /// The comparison was stopped early.
    StoppedEarly {
        /// Rounds with a start of every condition.
        complete: u32,
        /// Rounds asked for.
        asked: u32,
    },
    /// A condition has too few starts for a verdict.
    TooFewRuns {
        /// Which one.
        condition: Condition,
        /// Its starts.
        runs: usize,
        /// The fewest that can tell.
        needed: usize,
    },
    /// Starts far from the others of their condition.
    Outliers {
        /// Which one.
        condition: Condition,
        /// How many.
        count: usize,
    },
    /// Starts that do not count.
    LeftOut(usize),
    /// Less than half of what was read ahead was used.
    LittleUsed(f64),
}

/// Cold starts that read less than this share of the plan were not cold.
const COLD_READS_AT_LEAST: f64 = 0.5;

/// A profile of which less than this is used reads too much.
const USED_AT_LEAST: f64 = 0.5;

impl Comparison {
    /// The figures of this comparison.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let conditions = Condition::ALL.map(|condition| ConditionSummary::of(condition, &self.runs));
        let [cold, prefetched, warm] = &conditions;
        let gain = Gain::between(&cold.times, &prefetched.times);
        let gap = stats::shift(&cold.times, &warm.times, LEVEL);
        let used_share = self.used_share();
        Summary {
            gap_closed: gap_closed(gap, [cold, prefetched, warm].map(|one| one.median)),
            verdict: Verdict::of(gain, cold.times.len(), prefetched.times.len()),
            read_ahead: self.prefetch.read,
            used_share,
            warnings: self.warnings(&conditions, gap, used_share),
            gain,
            conditions,
        }
    }

    /// Rounds in which every condition has a start that counts.
    #[must_use]
    pub fn complete_rounds(&self) -> u32 {
        let mut seen = BTreeMap::<u32, BTreeSet<Condition>>::new();
        for run in &self.runs {
            seen.entry(run.round).or_default().insert(run.condition);
        }
        let complete = seen.values().filter(|conditions| conditions.len() == Condition::ALL.len()).count();
        u32::try_from(complete).unwrap_or(u32::MAX)
    }

    #[expect(clippy::cast_precision_loss, reason = "a share needs no more than 52 bits")]
    fn used_share(&self) -> Option<f64> {
        let used = self.prefetch.used.filter(|_| self.prefetch.read > Bytes(0))?;
        Some((used.0 as f64 / self.prefetch.read.0 as f64).min(1.0))
    }

    fn warnings(
        &self,
        conditions: &[ConditionSummary; 3],
        gap: Option<Estimate>,
        used: Option<f64>,
    ) -> Vec<Warning> {
        let mut warnings = Vec::new();
        warnings.extend(self.not_really_cold());
        warnings.extend(gap.filter(|gap| gap.value <= 0.0).map(|_| Warning::WarmNotFaster));
        let lost = self.prefetch.lost_events;
        warnings.extend((lost > 0).then_some(Warning::LostEvents(lost)));
        let (complete, asked) = (self.complete_rounds(), self.rounds);
        warnings.extend((complete < asked).then_some(Warning::StoppedEarly { complete, asked }));
        let needed = stats::balanced_minimum(LEVEL);
        let [cold, prefetched, _] = conditions;
        for one in conditions {
            let (condition, runs) = (one.condition, one.times.len());
            // Few of one condition can do with many of the other: 3 against 10 reach 95 %.
            let other = if condition == Condition::Cold { prefetched } else { cold }.times.len();
            let few = runs < needed && stats::best_level(runs, other) < LEVEL;
            warnings.extend(few.then_some(Warning::TooFewRuns { condition, runs, needed }));
        }
        for one in conditions.iter().filter(|one| !one.outliers.is_empty()) {
            warnings.push(Warning::Outliers { condition: one.condition, count: one.outliers.len() });
        }
        warnings.extend((!self.left_out.is_empty()).then_some(Warning::LeftOut(self.left_out.len())));
        warnings.extend(used.filter(|share| *share < USED_AT_LEAST).map(Warning::LittleUsed));
        warnings
    }

    /// A start that reads through `mmap` counts its reads like any other, so the account of a cold start is about the
    /// size of the profile; far below that, someone else had the files in memory. Exempt is a first start after
    /// boot: what the session itself has read counts as part of it.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    fn not_really_cold(&self) -> Option<Warning> {
        let cold = self.runs.iter().filter(|run| run.condition == Condition::Cold);
        let read: Vec<f64> = cold.filter_map(|run| run.read).map(|bytes| bytes.0 as f64).collect();
        let (read, planned) = (stats::median(&read)?, self.prefetch.planned);
        let cached = self.cold != ColdMethod::Boot && read < planned.0 as f64 * COLD_READS_AT_LEAST;
        cached.then_some(Warning::NotReallyCold { read: Bytes(read as u64), planned })
    }
}

impl ConditionSummary {
    fn of(condition: Condition, runs: &[TimedRun]) -> Self {
        let own = runs.iter().filter(|run| run.condition == condition);
        let times: Vec<f64> = own.map(|run| run.time.as_secs_f64()).collect();
        Self {
            condition,
            median: stats::median(&times),
            spread: stats::spread(&times),
            outliers: stats::outliers(&times),
            times,
        }
    }
}

impl Summary {
    /// The starts of one condition.
    #[must_use]
    pub fn condition(&self, condition: Condition) -> &ConditionSummary {
        let [cold, prefetched, warm] = &self.conditions;
        match condition {
            Condition::Cold => cold,
            Condition::Prefetched => prefetched,
            Condition::Warm => warm,
        }
    }
}

impl Gain {
    fn between(cold: &[f64], prefetched: &[f64]) -> Option<Self> {
        let seconds = stats::shift(cold, prefetched, LEVEL)?;
        let logarithms = |times: &[f64]| times.iter().map(|t| t.ln()).collect::<Vec<_>>();
        let positive = cold.iter().chain(prefetched).all(|t| *t > 0.0);
        let ratio =
            positive.then(|| stats::shift(&logarithms(cold), &logarithms(prefetched), LEVEL)).flatten();
        Some(Self { seconds, share: ratio.map(|ratio| ratio.map_rising(|log| -(-log).exp_m1())) })
    }
}

impl Verdict {
    fn of(gain: Option<Gain>, cold: usize, prefetched: usize) -> Self {
        match gain {
            Some(gain) if gain.seconds.interval.level >= LEVEL => {
                if gain.seconds.is_above_zero(LEVEL) {
                    Self::Faster(gain)
                } else if gain.seconds.is_below_zero(LEVEL) {
                    Self::Slower(gain)
                } else {
                    Self::NoMeasurableGain(gain)
                }
            }
            _ => Self::TooFew { cold, prefetched, needed: stats::balanced_minimum(LEVEL) },
        }
    }
}

/// By the medians, so that a reader can work it out from what is shown; whether there is a gap at all is judged by `gap`.
fn gap_closed(gap: Option<Estimate>, medians: [Option<f64>; 3]) -> Result<f64, NoGap> {
    let gap = gap.ok_or(NoGap::NotMeasured)?;
    let [Some(cold), Some(prefetched), Some(warm)] = medians else { return Err(NoGap::NotMeasured) };
    if gap.interval.level < LEVEL {
        return Err(NoGap::TooFew);
    }
    if !gap.is_above_zero(LEVEL) || cold <= warm {
        return Err(NoGap::WithinNoise);
    }
    Ok((cold - prefetched) / (cold - warm))
}

#[cfg(test)]
#[path = "summary/tests.rs"]
mod tests;
