//! The picture of a comparison, drawn the same way for the window, SVG and PNG.
//!
//! A row for each condition: every start as a mark of its own shape, a bar to the median, and under it a whisker for
//! the spread; one axis from zero. Nothing is told by colour alone. The parts, each one job:
//!
//! - `layout` places everything in logical pixels, without drawing;
//! - `canvas` turns logical pixels into the backend's, mirrors for right-to-left languages, and shortens text to fit;
//! - `marks` are the shapes; `axis` the round numbers; `theme` the colours; `svg` the file.

mod axis;
mod canvas;
mod layout;
mod marks;
mod svg;
mod theme;

use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind};
use plotters::prelude::DrawingBackend;

pub use canvas::{FONT_FAMILY, LINE_RATIO};
pub use svg::svg;
pub use theme::{Rgb, Theme};

use crate::comparison::Comparison;
use crate::run::Condition;
use crate::stats::Spread;
use crate::summary::{ConditionSummary, Summary, Verdict};
use crate::text::{Labels, SpanFormat, fill, shorten};
use crate::words;
use canvas::{Anchor, Canvas, Font};
use layout::{Layout, Row};

/// Width of an exported picture in logical pixels.
pub const EXPORT_WIDTH: u32 = 800;

/// More remarks than this are cut off in a picture, visibly.
const MOST_REMARKS: usize = 20;

/// More marks than this in a row are thinned out.
const MOST_MARKS: usize = 1500;

/// What drawing on the backend `DB` can fail with.
pub type Result<T, DB> = std::result::Result<T, DrawingAreaErrorKind<<DB as DrawingBackend>::ErrorType>>;

/// A picture to draw.
#[derive(Clone, Copy)]
pub struct Picture<'a> {
    /// What it shows.
    pub comparison: &'a Comparison,
    /// Its colours.
    pub theme: &'a Theme,
    /// Its language.
    pub labels: &'a dyn Labels,
    /// With title, verdict and notes, as a file needs them; without where the surroundings say these already.
    pub complete: bool,
}

impl std::fmt::Debug for Picture<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Picture")
            .field("app", &self.comparison.app)
            .field("complete", &self.complete)
            .finish()
    }
}

/// Draws the complete picture of a comparison; `scale` is backend pixels per logical pixel.
///
/// # Errors
/// What the backend fails with.
pub fn draw<DB: DrawingBackend>(
    area: &DrawingArea<DB, Shift>,
    comparison: &Comparison,
    theme: &Theme,
    labels: &dyn Labels,
    scale: f64,
) -> Result<(), DB> {
    Picture { comparison, theme, labels, complete: true }.draw(area, scale)
}

impl Picture<'_> {
    /// The height in logical pixels that suits a width.
    #[must_use]
    pub fn height(&self, width: u32) -> u32 {
        let summary = self.comparison.summary();
        Layout::new(self, &summary, f64::from(width), None, &canvas::table_width).height_px()
    }

    /// Draws the picture; `scale` is backend pixels per logical pixel.
    ///
    /// # Errors
    /// What the backend fails with.
    pub fn draw<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>, scale: f64) -> Result<(), DB> {
        let canvas = Canvas::new(area, scale, self.labels.right_to_left());
        let summary = self.comparison.summary();
        let measure = |text: &str, font: Font| canvas.width_of(text, font);
        let layout = Layout::new(self, &summary, canvas.width(), Some(canvas.height()), &measure);
        if self.complete {
            area.fill(&self.theme.background.opaque())?;
            self.heading(&canvas, &layout, &summary)?;
        }
        self.grid(&canvas, &layout)?;
        for (row, one) in layout.rows.iter().zip(&summary.conditions) {
            self.row(&canvas, &layout, row, one)?;
        }
        self.notes(&canvas, &layout)?;
        area.present()
    }

    fn heading<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<'_, DB>,
        layout: &Layout,
        summary: &Summary,
    ) -> Result<(), DB> {
        let theme = self.theme;
        let color = match summary.verdict {
            Verdict::Faster(_) => theme.gain,
            Verdict::Slower(_) => theme.loss,
            _ => theme.foreground,
        };
        let (x, room) = (layout.left, layout.right - layout.left);
        let name = shorten(&words::name(self.comparison), 120);
        canvas.text_within(
            &name,
            x,
            layout.title,
            room,
            Font::bold(17.0),
            theme.foreground,
            Anchor::Start,
        )?;
        for (line, y) in &layout.verdict {
            canvas.text_within(line, x, *y, room, Font::bold(14.0), color, Anchor::Start)?;
        }
        let mut milestone = words::milestone(self.comparison.milestone, self.labels);
        if summary.gap_closed.is_ok() {
            milestone = fill(
                &self.labels.text("{milestone}. Gap between cold and warm closed: {gap}."),
                &[("milestone", &milestone), ("gap", &words::gap_closed(summary.gap_closed, self.labels))],
            );
        }
        canvas.text_within(
            &milestone,
            x,
            layout.milestone,
            room,
            Font::regular(12.0),
            theme.dim,
            Anchor::Start,
        )
    }

    fn grid<DB: DrawingBackend>(&self, canvas: &Canvas<'_, DB>, layout: &Layout) -> Result<(), DB> {
        let font = Font::regular(12.0);
        for (at, label) in &layout.ticks {
            canvas.line((*at, layout.plot_top), (*at, layout.plot_bottom), 1.0, self.theme.grid)?;
            canvas.text(label, *at, layout.axis, font, self.theme.dim, Anchor::Middle)?;
        }
        Ok(())
    }

    fn row<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<'_, DB>,
        layout: &Layout,
        row: &Row,
        one: &ConditionSummary,
    ) -> Result<(), DB> {
        let theme = self.theme;
        let color = theme.condition(one.condition);
        let name = words::condition(one.condition, self.labels);
        marks::mark(canvas, theme, one.condition, (layout.left + 6.0, row.label))?;
        let (x, room) = (layout.left + 20.0, row.label_room);
        canvas.text_within(
            &name,
            x,
            row.label,
            room,
            Font::regular(13.0),
            theme.foreground,
            Anchor::Start,
        )?;
        let (Some(median), Some(spread)) = (one.median, one.spread) else {
            let none = self.labels.text("no starts");
            let (font, at) = (Font::regular(12.0), layout.x(0.0) + 8.0);
            return canvas.text(&none, at, row.middle, font, theme.dim, Anchor::Start);
        };
        marks::bar(canvas, theme, color, (layout.x(0.0), layout.x(median)), row.middle)?;
        let (low, high) = spread.ends();
        marks::whisker(canvas, color, (layout.x(low), layout.x(high)), row.middle + marks::WHISKER)?;
        // Thousands of starts are thinned: their marks cover each other, and the window must stay quick.
        let thinned = one.times.iter().step_by(one.times.len().div_ceil(MOST_MARKS));
        let places: Vec<f64> = thinned.map(|time| layout.x(*time)).collect();
        for place in
            marks::swarm(&places, marks::distance(one.condition, places.len()), marks::radius(places.len()))
        {
            let at = (place.x, row.middle + place.lift);
            marks::start(canvas, theme, one.condition, at, places.len())?;
        }
        let format = SpanFormat::suiting(&[median]);
        let (value, strong) = (format.with_unit(median, self.labels), Font::bold(14.0));
        canvas.text(&value, layout.right, row.value, strong, theme.text_of(one.condition), Anchor::End)?;
        if one.times.len() < 2 {
            return Ok(());
        }
        let ends = SpanFormat::suiting(&[median]).range(low, high, self.labels);
        canvas.text(&ends, layout.right, row.value + 16.0, Font::regular(11.0), theme.dim, Anchor::End)
    }

    fn notes<DB: DrawingBackend>(&self, canvas: &Canvas<'_, DB>, layout: &Layout) -> Result<(), DB> {
        let font = Font::regular(11.0);
        for (line, y) in &layout.notes {
            canvas.text(line, layout.left, *y, font, self.theme.dim, Anchor::Start)?;
        }
        Ok(())
    }

    /// What marks, bars and whiskers mean, then how cold was made and what else a reader must know.
    fn note_texts(&self, summary: &Summary) -> Vec<String> {
        let mut notes = vec![self.legend(summary)];
        if self.complete {
            notes.push(words::cold_method(self.comparison.cold, self.labels));
            let mut remarks = words::remarks(self.comparison, summary, self.labels);
            if remarks.len() > MOST_REMARKS {
                remarks.truncate(MOST_REMARKS);
                remarks.push("…".to_owned());
            }
            notes.extend(remarks.iter().map(|remark| shorten(remark, 300)));
        }
        notes
    }

    fn legend(&self, summary: &Summary) -> String {
        let spreads = || summary.conditions.iter().filter_map(|one| one.spread);
        let interval = spreads().any(|spread| matches!(spread, Spread::Interval(_)));
        let range = spreads().any(|spread| matches!(spread, Spread::Range { .. }));
        match (interval, range) {
            (true, true) => self.labels.text(
                "Each mark is one start. Bar: median. Whisker: interval of the median at 95 % or more, below six starts the range.",
            ),
            (true, false) => self.labels.text(
                "Each mark is one start. Bar: median. Whisker: interval of the median at 95 % or more.",
            ),
            _ => self.labels.text("Each mark is one start. Bar: median. Whisker: range."),
        }
    }
}

/// The picture in words, for those who cannot see it.
#[must_use]
pub fn description(comparison: &Comparison, labels: &dyn Labels) -> String {
    words::description(comparison, labels)
}

/// The rows of a picture, in order.
const ROWS: [Condition; 3] = Condition::ALL;

#[cfg(test)]
mod tests;
