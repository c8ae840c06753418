//! The bootstrap of a difference of medians, worked out exactly instead of by drawing.
//!
//! A resample's median is one of the sample's own values, and the chance of each is a sum of binomial terms (Efron, *The
//! Jackknife, the Bootstrap and Other Resampling Plans*, 1982, 10.2). Nothing is drawn, so the same values always give the
//! same interval. Resamples have an odd size, one less than an even sample, so that their median is a single value: that
//! makes the interval a little wider, never narrower.

/// A possible value and its probability.
type Weighted = (f64, f64);

/// The interval of `median(a) − median(b)` that leaves out `(1 − level) / 2` at each end; both sorted and not empty.
pub(super) fn interval(a: &[f64], b: &[f64], level: f64) -> (f64, f64) {
    let (first, second) = (medians(a), medians(b));
    let mut differences: Vec<Weighted> = Vec::with_capacity(first.len() * second.len());
    for &(x, p) in &first {
        differences.extend(second.iter().map(|&(y, q)| (x - y, p * q)));
    }
    differences.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
    let tail = (1.0 - level) / 2.0;
    (quantile(differences.iter(), tail), quantile(differences.iter().rev(), tail))
}

/// The value at which the probability of all before it, with its own, passes `tail`.
fn quantile<'a>(values: impl Iterator<Item = &'a Weighted>, tail: f64) -> f64 {
    let (mut sum, mut at) = (0.0, f64::NAN);
    for &(value, probability) in values {
        at = value;
        sum += probability;
        if sum > tail {
            break;
        }
    }
    at
}

/// The medians that resamples can have, with their probabilities: a resample's median is at most the `i`-th value of `n`
/// if more than half of its draws are among the first `i`.
#[expect(clippy::cast_precision_loss, reason = "sample sizes are small")]
fn medians(sorted: &[f64]) -> Vec<Weighted> {
    let n = sorted.len();
    let draws = if n.is_multiple_of(2) { n - 1 } else { n };
    let mut below = 0.0;
    let mut all = Vec::with_capacity(n);
    for (i, &value) in (1..).zip(sorted) {
        let up_to = more_than_half(draws, f64::from(i) / n as f64);
        all.push((value, up_to - below));
        below = up_to;
    }
    all
}

/// The probability that more than half of `draws` (odd) hit, of which each hits with probability `p`.
#[expect(clippy::cast_precision_loss, reason = "sample sizes are small")]
fn more_than_half(draws: usize, p: f64) -> f64 {
    if p >= 1.0 {
        return 1.0;
    }
    let mut term = (1.0 - p).powi(i32::try_from(draws).unwrap_or(i32::MAX));
    let mut fewer = 0.0;
    for hits in 0..=draws / 2 {
        fewer += term;
        term *= (draws - hits) as f64 / (hits + 1) as f64 * p / (1.0 - p);
    }
    1.0 - fewer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chances_of_a_median_are_those_of_counting_all_resamples() {
        // Of three values there are 27 resamples; 7 have the lowest as median, 13 the middle one, 7 the highest.
        let counted = [7.0 / 27.0, 13.0 / 27.0, 7.0 / 27.0];
        for (&(_, chance), expected) in medians(&[1.0, 2.0, 3.0]).iter().zip(counted) {
            assert!((chance - expected).abs() < 1e-12);
        }
        for n in [1, 2, 5, 40, 41] {
            let values: Vec<f64> = (0..n).map(f64::from).collect();
            let sum: f64 = medians(&values).iter().map(|(_, chance)| chance).sum();
            assert!((sum - 1.0).abs() < 1e-9, "{n}: {sum}");
        }
    }

    #[test]
    fn the_interval_leaves_out_what_is_rarer_than_the_tail() {
        // Differences of {1,2,3} and {0}: −1 is left out only if its 7/27 fit into the tail.
        assert_eq!(interval(&[1.0, 2.0, 3.0], &[0.0], 0.9), (1.0, 3.0));
        assert_eq!(interval(&[1.0, 2.0, 3.0], &[0.0], 0.4), (2.0, 2.0));
    }
}
