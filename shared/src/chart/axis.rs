//! An axis from zero with round steps.

/// The end of the axis and the distance of its ticks, both round: 1, 2 or 5 times a power of ten; at most `most` steps
/// of ticks. The end is at or beyond `largest`.
pub(super) fn round_steps(largest: f64, most: usize) -> (f64, f64) {
    let largest = if largest.is_finite() && largest > 0.0 { largest } else { 1.0 };
    #[expect(clippy::cast_precision_loss, reason = "a handful of ticks")]
    let rough = largest / most.max(1) as f64;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|s| s * power).into_iter().find(|s| *s >= rough * (1.0 - 1e-9));
    let step = step.unwrap_or(10.0 * power);
    ((largest / step - 1e-9).ceil() * step, step)
}

/// The ticks from zero to `end`.
pub(super) fn ticks(end: f64, step: f64) -> impl Iterator<Item = f64> {
    (0_u32..100).map(move |n| f64::from(n) * step).take_while(move |at| *at <= end + step / 2.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn steps_are_round() {
        assert_eq!(round_steps(6.6, 8), (7.0, 1.0));
        assert_eq!(round_steps(0.81, 5), (1.0, 0.2));
        assert_eq!(round_steps(7.0, 7), (7.0, 1.0));
        assert_eq!(round_steps(0.0, 5), (1.0, 0.2));
        assert_eq!(ticks(1.0, 0.2).count(), 6);
    }

    proptest! {
        #[test]
        fn the_axis_holds_the_largest_value_in_few_steps(largest in 1e-9_f64..1e11, most in 1_usize..12) {
            let (end, step) = round_steps(largest, most);
            prop_assert!(end >= largest * (1.0 - 1e-6) && end <= largest + step * 1.001);
            prop_assert!(ticks(end, step).count() <= most + 2);
        }
    }
}
