//! Percentiles, and medians of what varies.

/// Some values, in order.
#[derive(Clone, Debug)]
pub(crate) struct Sorted(Vec<f64>);

impl Sorted {
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    /// The least value that this share of all does not exceed (nearest rank); 0 of nothing.
    pub(crate) fn percentile(&self, share: f64) -> f64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a rank in a list of some thousands"
        )]
        let rank = ((share * self.0.len() as f64).ceil() as usize).max(1) - 1;
        self.0.get(rank).copied().unwrap_or_default()
    }

    pub(crate) fn median(&self) -> f64 {
        self.percentile(0.5)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl std::fmt::Display for Sorted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (least, greatest) = (self.percentile(0.0), self.percentile(1.0));
        let (half, most) = (self.median(), self.percentile(0.99));
        write!(f, "median {half:.3}, 99 % {most:.3} ({least:.3} to {greatest:.3}), n = {}", self.len())
    }
}
