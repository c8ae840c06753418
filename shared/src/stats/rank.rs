//! The rank test behind the shift between two samples: which ordered pairwise difference bounds the interval, and
//! finding that difference without listing all of them.

/// How many of the smallest (and largest) pairwise differences of samples of `m` and `n` lie outside the interval
/// with at least `level`, and the level it reaches: with the Mann–Whitney statistic `U`, the `c`-th and the
/// `(mn − 1 − c)`-th difference (from 0) cover the shift with `1 − 2 P(U ≤ c)`.
pub(super) fn exact_cut(m: usize, n: usize, level: f64) -> (u64, f64) {
    let distribution = u_distribution(m, n);
    let widest = (0, (1.0 - 2.0 * distribution[0]).max(0.0));
    let mut tail = 0.0;
    let mut best = widest;
    for (cut, probability) in (0..).zip(&distribution[..distribution.len().div_ceil(2)]) {
        tail += probability;
        let reached = 1.0 - 2.0 * tail;
        if reached < level {
            break;
        }
        best = (cut, reached);
    }
    best
}

/// The probabilities of `U = 0, 1, …, mn` when both samples come from one distribution. The largest of all values
/// belongs to the first sample with probability `m / (m + n)` and then beats all `n` of the other one.
#[expect(clippy::cast_precision_loss, reason = "sample sizes are small")]
fn u_distribution(m: usize, n: usize) -> Vec<f64> {
    // `row[j]` holds the distribution for the current number of values in the first sample and `j` in the second.
    let mut row: Vec<Vec<f64>> = vec![vec![1.0]; n + 1];
    for i in 1..=m {
        let mut next = vec![vec![1.0]];
        for j in 1..=n {
            let largest_is_first = i as f64 / (i + j) as f64;
            let mut counts = vec![0.0; i * j + 1];
            for (u, p) in row[j].iter().enumerate() {
                counts[u + j] += p * largest_is_first;
            }
            for (u, p) in next[j - 1].iter().enumerate() {
                counts[u] += p * (1.0 - largest_is_first);
            }
            next.push(counts);
        }
        row = next;
    }
    row.swap_remove(n)
}

/// The same as [`exact_cut`] by the normal approximation of `U` with continuity correction, for large samples.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub(super) fn normal_cut(m: usize, n: usize, level: f64) -> (u64, f64) {
    let (m, n) = (m as f64, n as f64);
    let deviation = (m * n * (m + n + 1.0) / 12.0).sqrt();
    let cut = (m * n / 2.0 - two_sided_normal(level) * deviation - 0.5).floor();
    (cut.max(0.0) as u64, level)
}

/// The half-width, in standard deviations, of the interval of a normal variable that covers `level`. Solved by
/// halving on the error function of Abramowitz and Stegun 7.1.26 (error below 1.5e-7).
pub(super) fn two_sided_normal(level: f64) -> f64 {
    let (mut low, mut high) = (0.0, 8.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if erf(middle / std::f64::consts::SQRT_2) < level { low = middle } else { high = middle }
    }
    high
}

fn erf(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 5] =
        [1.061_405_429, -1.453_152_027, 1.421_413_741, -0.284_496_736, 0.254_829_592];
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let sum = COEFFICIENTS.iter().fold(0.0, |sum, c| sum * t + c);
    1.0 - sum * t * (-x * x).exp()
}

/// The `n`-th smallest (from 0) of all `a[i] − b[j]`; both slices sorted and not empty, `n < a.len() × b.len()`.
///
/// There can be millions of pairs, so they are not listed: the bits of the answer are found by halving, counting at
/// each step the pairs at or below a value with one walk along both slices.
pub(super) fn nth_difference(a: &[f64], b: &[f64], n: u64) -> f64 {
    let (mut low, mut high) = (order(a[0] - b[b.len() - 1]), order(a[a.len() - 1] - b[0]));
    while low < high {
        let middle = (low + high).div_euclid(2);
        if pairs_up_to(a, b, value(middle)) > n { high = middle } else { low = middle + 1 }
    }
    value(low)
}

/// How many pairs have `a[i] − b[j] ≤ limit`. As `i` rises, the first `j` that satisfies it can only rise.
fn pairs_up_to(a: &[f64], b: &[f64], limit: f64) -> u64 {
    let (mut first, mut count) = (0, 0);
    for a in a {
        while first < b.len() && a - b[first] > limit {
            first += 1;
        }
        count += (b.len() - first) as u64;
    }
    count
}

/// An integer that orders as the number does.
fn order(value: f64) -> i128 {
    let bits = value.to_bits();
    let magnitude = i128::from(bits & !(1 << 63));
    if bits >> 63 == 1 { -magnitude } else { magnitude }
}

/// The number that [`order`] maps to `order`.
#[expect(clippy::cast_possible_truncation, reason = "orders come from 63 bits")]
fn value(order: i128) -> f64 {
    let magnitude = f64::from_bits(order.unsigned_abs() as u64);
    if order < 0 { -magnitude } else { magnitude }
}
