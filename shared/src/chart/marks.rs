//! The shapes: a hollow diamond for a cold start, a filled circle for a prefetched one, an upright bar for a warm one,
//! the bar to the median and the whisker of the spread.

use plotters::prelude::DrawingBackend;

use super::Result;
use super::canvas::Canvas;
use super::theme::{Rgb, Theme};
use crate::run::Condition;

/// How far below the middle of a row its whisker is.
pub(super) const WHISKER: f64 = 17.0;

/// Half the height of the bar to the median.
const HALF_BAR: f64 = 8.0;

/// Up to here a rim in the background's colour keeps marks apart; more of them would hide each other by it.
const CROWD: usize = 30;

/// Lanes of marks above and below the middle of a row.
const LANES: [f64; 5] = [0.0, -1.0, 1.0, -2.0, 2.0];

/// The size of marks: smaller when there are many.
pub(super) fn radius(starts: usize) -> f64 {
    if starts > CROWD { 3.0 } else { 4.5 }
}

/// A mark as in a legend.
pub(super) fn mark<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    theme: &Theme,
    condition: Condition,
    at: (f64, f64),
) -> Result<(), DB> {
    start(canvas, theme, condition, at, 1)
}

/// The mark of one of `starts` starts.
pub(super) fn start<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    theme: &Theme,
    condition: Condition,
    (x, y): (f64, f64),
    starts: usize,
) -> Result<(), DB> {
    let (color, r) = (theme.condition(condition), radius(starts));
    match condition {
        Condition::Cold => {
            let r = r + 0.5;
            let corners = [(x, y - r), (x + r, y), (x, y + r), (x - r, y), (x, y - r), (x + r, y)];
            canvas.polygon(&corners[..4], theme.background)?;
            canvas.path(&corners, 2.0, color)
        }
        Condition::Prefetched => {
            if starts <= CROWD {
                canvas.disc((x, y), r + 1.0, theme.background)?;
            }
            canvas.disc((x, y), r, color)
        }
        Condition::Warm => {
            let (from, to) = ((x - 1.5, y - r - 2.5), (x + 1.5, y + r + 2.5));
            if starts <= CROWD {
                canvas.rectangle((from.0 - 1.0, from.1), (to.0 + 1.0, to.1), theme.background.opaque())?;
            }
            canvas.rectangle(from, to, color.opaque())
        }
    }
}

/// The bar from zero to the median, with a line at its end.
pub(super) fn bar<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    theme: &Theme,
    color: Rgb,
    (from, to): (f64, f64),
    y: f64,
) -> Result<(), DB> {
    canvas.rectangle((from, y - HALF_BAR), (to, y + HALF_BAR), color.alpha(theme.bar))?;
    canvas.line((to, y - HALF_BAR - 3.0), (to, y + HALF_BAR + 3.0), 2.0, color)
}

/// The whisker of a spread, with caps of 8 pixels.
pub(super) fn whisker<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    color: Rgb,
    (low, high): (f64, f64),
    y: f64,
) -> Result<(), DB> {
    canvas.line((low, y), (high, y), 1.0, color)?;
    canvas.line((low, y - 4.0), (low, y + 4.0), 1.0, color)?;
    canvas.line((high, y - 4.0), (high, y + 4.0), 1.0, color)
}

/// Where a mark goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) x: f64,
    /// Upwards from the middle of the row when negative.
    pub(super) lift: f64,
}

/// How far apart the middles of two marks in one lane must be: upright bars are narrow.
pub(super) fn distance(condition: Condition, starts: usize) -> f64 {
    if condition == Condition::Warm { 4.0 } else { 2.0 * radius(starts) + 1.0 }
}

/// Places marks side by side: each in the first lane where it is `apart` from any earlier one, so equal times stay
/// countable; lanes are `lane` high. When all lanes are taken, marks overlap in the lane whose turn it is.
pub(super) fn swarm(xs: &[f64], apart: f64, lane: f64) -> Vec<Place> {
    let mut order: Vec<usize> = (0..xs.len()).collect();
    order.sort_by(|a, b| xs[*a].total_cmp(&xs[*b]));
    let (mut ends, mut places) = ([f64::NEG_INFINITY; LANES.len()], vec![None; xs.len()]);
    for (turn, index) in order.into_iter().enumerate() {
        let x = xs[index];
        let free = ends.iter().position(|end| x - end >= apart);
        let chosen = free.unwrap_or(turn % LANES.len());
        ends[chosen] = x;
        places[index] = Some(Place { x, lift: LANES[chosen] * lane });
    }
    places.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_times_are_spread_over_lanes() {
        let lifts: Vec<f64> =
            swarm(&[10.0, 10.0, 40.0, 10.0], 9.0, 4.0).iter().map(|place| place.lift).collect();
        assert_eq!(lifts, [0.0, -4.0, 0.0, 4.0]);
        assert_eq!(swarm(&[1.0; 1000], 7.0, 3.0).len(), 1000);
    }
}
