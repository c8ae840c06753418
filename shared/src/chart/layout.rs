//! Where everything in a picture is, in logical pixels: pure, so it can be tested at any width.

use super::canvas::{Font, table_width, wrap};
use super::{Picture, ROWS, axis};
use crate::summary::Summary;
use crate::text::SpanFormat;
use crate::words;

const MARGIN: f64 = 18.0;
/// Below this the names stand above their bars instead of beside them.
const NARROW: f64 = 520.0;
const ROW: f64 = 50.0;
const NARROW_ROW: f64 = 72.0;

/// Measures a text.
pub(super) type Measure<'a> = &'a dyn Fn(&str, Font) -> f64;

/// The place of one condition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    /// Centre of bar and marks.
    pub(super) middle: f64,
    /// Centre of the name's line.
    pub(super) label: f64,
    /// Width for the name.
    pub(super) label_room: f64,
    /// Centre of the median's line; the spread is below it.
    pub(super) value: f64,
}

/// Where everything is.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) title: f64,
    pub(super) verdict: Vec<(String, f64)>,
    pub(super) milestone: f64,
    pub(super) plot_top: f64,
    pub(super) plot_bottom: f64,
    pub(super) axis: f64,
    pub(super) ticks: Vec<(f64, String)>,
    pub(super) rows: Vec<Row>,
    pub(super) notes: Vec<(String, f64)>,
    plot_left: f64,
    per_second: f64,
    height: f64,
}

impl Layout {
    /// Places a picture of a width; where the height is given, the rows take what is left over.
    pub(super) fn new(
        picture: &Picture<'_>,
        summary: &Summary,
        width: f64,
        height: Option<f64>,
        measure: Measure<'_>,
    ) -> Self {
        let narrow = width < NARROW;
        let margin = if picture.complete { MARGIN } else { 12.0 };
        let (left, right) = (margin, (width - margin).max(margin + 60.0));
        let mut y = margin;
        let (mut title, mut verdict, mut milestone) = (0.0, Vec::new(), 0.0);
        if picture.complete {
            title = y + 10.0;
            y = title + 26.0;
            let sentence = words::verdict(&summary.verdict, picture.labels);
            for line in wrap(&sentence, right - left, |text| measure(text, Font::bold(14.0))) {
                verdict.push((line, y));
                y += 20.0;
            }
            milestone = y + 2.0;
            y = milestone + 18.0;
        }
        let notes = Self::wrapped_notes(picture, summary, right - left, measure);
        #[expect(clippy::cast_precision_loss, reason = "a few lines")]
        let below = 30.0 + notes.len() as f64 * 16.0 + margin;
        let least = if narrow { NARROW_ROW } else { ROW };
        #[expect(clippy::cast_precision_loss, reason = "three rows")]
        let count = ROWS.len() as f64;
        let row = height.map_or(least, |height| ((height - y - below) / count).clamp(least, least * 1.6));
        let plot_bottom = y + row * count;
        let columns = Columns::new(picture, summary, (left, right), narrow, measure);
        let mut layout = Self {
            left,
            right,
            title,
            verdict,
            milestone,
            plot_top: y,
            plot_bottom,
            axis: plot_bottom + 13.0,
            ticks: Vec::new(),
            rows: (0..ROWS.len()).map(|n| columns.row(y, n, row, narrow)).collect(),
            notes: Vec::new(),
            plot_left: columns.plot_left,
            per_second: 1.0,
            height: plot_bottom + below,
        };
        layout.scale(summary, columns.plot_right, picture, measure);
        layout.place_notes(notes);
        layout
    }

    /// The place of a time on the axis.
    pub(super) fn x(&self, seconds: f64) -> f64 {
        self.plot_left + seconds * self.per_second
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts of floats saturate")]
    pub(super) fn height_px(&self) -> u32 {
        self.height.ceil() as u32
    }

    fn wrapped_notes(
        picture: &Picture<'_>,
        summary: &Summary,
        room: f64,
        measure: Measure<'_>,
    ) -> Vec<String> {
        let font = Font::regular(11.0);
        let texts = picture.note_texts(summary);
        texts.iter().flat_map(|note| wrap(note, room, |text| measure(text, font))).collect()
    }

    fn place_notes(&mut self, notes: Vec<String>) {
        let mut y = self.axis + 24.0;
        for note in notes {
            self.notes.push((note, y));
            y += 16.0;
        }
    }

    /// Fits the largest time of all onto the axis, with as many ticks as their labels leave room for.
    fn scale(&mut self, summary: &Summary, plot_right: f64, picture: &Picture<'_>, measure: Measure<'_>) {
        let times = summary.conditions.iter().flat_map(|one| one.times.iter().copied());
        let largest = times.fold(0.0, f64::max);
        let room = (plot_right - self.plot_left).max(20.0);
        let mut most = 10;
        loop {
            let (end, step) = axis::round_steps(largest, most);
            self.per_second = room / end;
            let format = SpanFormat::suiting_step(end, step);
            let tick = |at: f64| (self.x(at), format.with_unit(at, picture.labels));
            self.ticks = axis::ticks(end, step).map(tick).collect();
            let widest = self.ticks.iter().map(|(_, label)| measure(label, Font::regular(12.0)));
            if most == 1 || widest.fold(0.0, f64::max) + 14.0 <= step * self.per_second {
                return;
            }
            most -= 1;
        }
    }
}

/// The columns of a picture: names, bars, figures.
struct Columns {
    plot_left: f64,
    plot_right: f64,
    label_room: f64,
}

impl Columns {
    fn new(
        picture: &Picture<'_>,
        summary: &Summary,
        (left, right): (f64, f64),
        narrow: bool,
        measure: Measure<'_>,
    ) -> Self {
        let names =
            ROWS.map(|condition| measure(&words::condition(condition, picture.labels), Font::regular(13.0)));
        let widest_name = names.into_iter().fold(0.0, f64::max);
        // Marks at zero and at the end need half their width beside the axis, tick labels half of theirs.
        if narrow {
            let figures = 110.0;
            return Self {
                plot_left: left + 10.0,
                plot_right: right - 16.0,
                label_room: (right - left - 24.0 - figures).max(60.0),
            };
        }
        let spreads = summary.conditions.iter().filter_map(|one| one.median.zip(one.spread));
        let figures = spreads.map(|(median, spread)| {
            let (low, high) = spread.ends();
            let range = SpanFormat::suiting(&[median]).range(low, high, picture.labels);
            measure(&range, Font::regular(11.0)).max(table_width(&range, Font::regular(11.0)) * 0.8)
        });
        let widest_figure = figures.fold(70.0, f64::max).min((right - left) * 0.3);
        let label_room = widest_name.min((right - left) * 0.3);
        Self {
            plot_left: left + 20.0 + label_room + 18.0,
            plot_right: right - widest_figure - 26.0,
            label_room,
        }
    }

    fn row(&self, top: f64, number: usize, height: f64, narrow: bool) -> Row {
        #[expect(clippy::cast_precision_loss, reason = "three rows")]
        let top = top + height * number as f64;
        if narrow {
            let label = top + 10.0;
            return Row { middle: top + 44.0, label, label_room: self.label_room, value: label };
        }
        let middle = top + height / 2.0 - 4.0;
        Row { middle, label: middle, label_room: self.label_room, value: middle - 4.0 }
    }
}
