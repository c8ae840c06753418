//! Robust statistics of a few timings: medians, spreads, outliers, and the shift between two sets of starts.
//!
//! Start times are skewed, have outliers and come in fives; nothing here assumes a distribution. What is used, and
//! where it comes from:
//!
//! - median and interval of the median by order statistics (Thompson 1936; Conover, *Practical Nonparametric
//!   Statistics*, 3rd ed., 3.2);
//! - shift between two samples by Hodges and Lehmann (1963), its interval by inverting the Wilcoxon–Mann–Whitney
//!   rank test (Lehmann 1975; the same as `wilcox.test(conf.int = TRUE)` in R);
//! - difference of two medians by the bootstrap (Efron 1979), worked out exactly;
//! - outliers by the modified z-score of Iglewicz and Hoaglin (*How to Detect and Handle Outliers*, 1993).
//!
//! Invariant: an [`Interval`] always carries the coverage it really reaches. Where the wanted level cannot be
//! reached, the widest interval there is comes with its own lower level; nothing is called 95 % that is not.
//!
//! Values must be finite; a unit is the caller's business. Every function returns `None` rather than a made-up figure.

mod bootstrap;
mod rank;

use serde::{Deserialize, Serialize};

/// The level that a claim needs: 95 %.
pub const LEVEL: f64 = 0.95;

/// Samples larger than this use the normal approximation of the rank test; its error is then below a thousandth.
const EXACT_UP_TO: usize = 40;

/// A confidence interval and the coverage it really has.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// The probability that an interval made this way covers the true value, 0 to 1. With ties it is a lower bound.
    pub level: f64,
}

/// An estimate with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The point estimate.
    pub value: f64,
    /// Its interval.
    pub interval: Interval,
}

impl Estimate {
    /// Whether the interval has at least `level` and lies wholly above zero.
    #[must_use]
    pub fn is_above_zero(&self, level: f64) -> bool {
        self.interval.level >= level && self.interval.low > 0.0
    }

    /// Whether the interval has at least `level` and lies wholly below zero.
    #[must_use]
    pub fn is_below_zero(&self, level: f64) -> bool {
        self.interval.level >= level && self.interval.high < 0.0
    }

    /// The same estimate after a rising function, which keeps order and therefore coverage.
    #[must_use]
    pub fn map_rising(self, f: impl Fn(f64) -> f64) -> Self {
        let Interval { low, high, level } = self.interval;
        Self { value: f(self.value), interval: Interval { low: f(low), high: f(high), level } }
    }
}

/// How far a set of values spreads, and what the two ends mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Spread {
    /// A distribution-free interval of the median.
    Interval(Interval),
    /// The smallest and the largest value: too few for an interval at 95 %.
    Range {
        /// Smallest value.
        low: f64,
        /// Largest value.
        high: f64,
    },
}

impl Spread {
    /// The two ends, whatever they mean.
    #[must_use]
    pub fn ends(&self) -> (f64, f64) {
        match *self {
            Self::Interval(Interval { low, high, .. }) | Self::Range { low, high } => (low, high),
        }
    }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values
}

/// The value at `p` (0 to 1) by linear interpolation between order statistics: R's type 7, the default of most tools.
#[must_use]
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub fn quantile(values: &[f64], p: f64) -> Option<f64> {
    let values = sorted(values);
    let last = values.len().checked_sub(1)?;
    let at = p.clamp(0.0, 1.0) * last as f64;
    let (below, share) = (at.floor() as usize, at.fract());
    let (low, high) = (values[below], values[(below + 1).min(last)]);
    Some(low + (high - low) * share)
}

/// The median; of an even number of values the mean of the two in the middle.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The median absolute deviation from the median, not scaled to a standard deviation.
#[must_use]
pub fn mad(values: &[f64]) -> Option<f64> {
    let middle = median(values)?;
    median(&values.iter().map(|v| (v - middle).abs()).collect::<Vec<_>>())
}

/// The modified z-score of each value: its distance from the median in units of `MAD / 0.6745`; where more than half
/// of the values are equal (MAD 0), in units of `1.2533 × mean absolute deviation`. Empty for fewer than two values.
#[must_use]
#[expect(clippy::cast_precision_loss)]
pub fn modified_z_scores(values: &[f64]) -> Vec<f64> {
    let (Some(middle), Some(mad)) = (median(values), mad(values)) else { return Vec::new() };
    if values.len() < 2 {
        return Vec::new();
    }
    let mean = values.iter().map(|v| (v - middle).abs()).sum::<f64>() / values.len() as f64;
    let unit = if mad > 0.0 { mad / 0.6745 } else { mean * 1.253_314 };
    values.iter().map(|v| if unit > 0.0 { (v - middle) / unit } else { 0.0 }).collect()
}

/// The positions of values that are outliers, in order.
///
/// The cut-off of 3.5 in the literature is for samples that are not small: of five normal values it calls one an
/// outlier in one set of five. 10 below ten values and 5 from ten on keep false alarms near 3 % of sets (simulated).
/// Below four values nothing is called an outlier.
#[must_use]
pub fn outliers(values: &[f64]) -> Vec<usize> {
    let cut_off = match values.len() {
        0..4 => return Vec::new(),
        4..10 => 10.0,
        _ => 5.0,
    };
    let scores = modified_z_scores(values);
    scores.iter().enumerate().filter(|(_, z)| z.abs() > cut_off).map(|(i, _)| i).collect()
}

/// The interval of the median at `level` or above from order statistics, with the coverage it reaches; `None` when
/// even the whole range covers less (95 % needs six values).
#[must_use]
#[expect(clippy::cast_precision_loss)]
pub fn median_interval(values: &[f64], level: f64) -> Option<Interval> {
    let values = sorted(values);
    let n = values.len();
    // Of 2^n equally likely patterns of above and below, `term` is the share with exactly `cut` values below.
    let mut term = 0.5_f64.powi(i32::try_from(n).ok()?);
    if term == 0.0 {
        return median_interval_large(&values, level);
    }
    let (mut tail, mut best) = (0.0, None);
    for cut in 0..n / 2 {
        tail += term;
        let coverage = 1.0 - 2.0 * tail;
        if coverage < level {
            break;
        }
        best = Some(Interval { low: values[cut], high: values[n - 1 - cut], level: coverage });
        term *= (n - cut) as f64 / (cut + 1) as f64;
    }
    best
}

/// The same for samples whose binomial terms are below the smallest `f64`: the normal approximation, rounded outwards.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn median_interval_large(values: &[f64], level: f64) -> Option<Interval> {
    let n = values.len();
    let half = rank::two_sided_normal(level) * (n as f64).sqrt() / 2.0 + 0.5;
    let cut = (n as f64 / 2.0 - half).floor().max(0.0) as usize;
    Some(Interval { low: *values.get(cut)?, high: values[n - 1 - cut], level })
}

/// The spread of a sample as it is to be shown: the interval of its median at 95 % where there are enough values,
/// else the plain range.
#[must_use]
pub fn spread(values: &[f64]) -> Option<Spread> {
    if let Some(interval) = median_interval(values, LEVEL) {
        return Some(Spread::Interval(interval));
    }
    let values = sorted(values);
    Some(Spread::Range { low: *values.first()?, high: *values.last()? })
}

/// How much larger the values of `a` are than those of `b`: the median of all pairwise differences, with the exact
/// interval of the rank test. The interval is the narrowest one with at least `level`; where none reaches `level`,
/// the widest one with the level that it has. `None` if either sample is empty.
#[must_use]
pub fn shift(a: &[f64], b: &[f64], level: f64) -> Option<Estimate> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let (a, b) = (sorted(a), sorted(b));
    let pairs = a.len() as u64 * b.len() as u64;
    let nth = |n: u64| rank::nth_difference(&a, &b, n);
    let value = f64::midpoint(nth((pairs - 1) / 2), nth(pairs / 2));
    let (cut, level) = if a.len().max(b.len()) <= EXACT_UP_TO {
        rank::exact_cut(a.len(), b.len(), level)
    } else {
        rank::normal_cut(a.len(), b.len(), level)
    };
    Some(Estimate { value, interval: Interval { low: nth(cut), high: nth(pairs - 1 - cut), level } })
}

/// The fewest values of each sample for which [`median_difference`] covers what it says; simulated.
pub const BOOTSTRAP_FROM: usize = 6;

/// The median of `a` less that of `b`, with the percentile interval of its bootstrap. Unlike a [`shift`] it does not
/// suppose that both samples scatter alike; single outliers among nine or more values leave it as it is. `None` if a sample has fewer than
/// [`BOOTSTRAP_FROM`] values, from which on the interval covers at least `level` where that is 0.98 to 0.995 (simulated;
/// see [`crate::verdict`]).
#[must_use]
pub fn median_difference(a: &[f64], b: &[f64], level: f64) -> Option<Estimate> {
    if a.len().min(b.len()) < BOOTSTRAP_FROM {
        return None;
    }
    let value = median(a)? - median(b)?;
    let (low, high) = bootstrap::interval(&sorted(a), &sorted(b), level);
    Some(Estimate { value, interval: Interval { low, high, level } })
}

/// The highest level that a shift between samples of these sizes can reach: `1 − 2 / C(m + n, n)`. 3 + 3 reach 90 %,
/// 4 + 4 97 %; 0 if either is empty.
#[must_use]
pub fn best_level(m: usize, n: usize) -> f64 {
    if m == 0 || n == 0 {
        return 0.0;
    }
    rank::exact_cut(m.min(EXACT_UP_TO), n.min(EXACT_UP_TO), 1.0).1
}

/// The smallest equal number of values in two samples for which a shift can be claimed at `level`.
#[must_use]
pub fn balanced_minimum(level: f64) -> usize {
    (1..EXACT_UP_TO).find(|&n| best_level(n, n) >= level).unwrap_or(EXACT_UP_TO)
}

#[cfg(test)]
mod tests;
