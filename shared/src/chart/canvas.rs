//! Logical pixels on a backend: scaling, mirroring, and text that fits.

use plotters::coord::Shift;
use plotters::drawing::DrawingArea;
use plotters::element::{Circle, PathElement, Polygon, Rectangle};
use plotters::prelude::DrawingBackend;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontDesc, FontFamily, FontStyle, RGBAColor, ShapeStyle, TextStyle};

use super::Result;
use super::theme::Rgb;

/// The fonts of a picture, in order of preference.
pub const FONT_FAMILY: &str = "Cantarell, 'Noto Sans', 'DejaVu Sans', sans-serif";

/// A plotters font size is the height of a line, this many times the size of the letters. A backend divides by it.
pub const LINE_RATIO: f64 = 1.24;

/// Size in logical pixels and weight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Font {
    size: f64,
    bold: bool,
}

impl Font {
    pub(super) const fn regular(size: f64) -> Self {
        Self { size, bold: false }
    }

    pub(super) const fn bold(size: f64) -> Self {
        Self { size, bold: true }
    }
}

/// Where the given position is in a text. Start is left, unless the picture is mirrored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// Widths of ASCII from the space on, in thousandths of the size, in `DejaVu Sans`: the widest of the common fonts, so
/// text that fits by this table fits.
const WIDTHS: [u16; 95] = [
    317, 400, 459, 837, 636, 950, 779, 274, 390, 390, 500, 837, 317, 360, 317, 336, 636, 636, 636, 636, 636,
    636, 636, 636, 636, 636, 336, 336, 837, 837, 837, 530, 1000, 684, 686, 698, 770, 631, 575, 774, 751, 294,
    294, 655, 557, 862, 748, 787, 603, 787, 694, 634, 610, 731, 684, 988, 685, 610, 685, 390, 336, 390, 837,
    500, 500, 612, 634, 549, 634, 615, 352, 634, 633, 277, 277, 579, 277, 974, 633, 611, 634, 634, 411, 520,
    392, 633, 591, 817, 591, 591, 524, 636, 336, 636, 837,
];

/// The width of a text by the table.
pub(super) fn table_width(text: &str, font: Font) -> f64 {
    let thousandths: u32 = text.chars().map(|c| u32::from(width_of_char(c))).sum();
    f64::from(thousandths) / 1000.0 * font.size * if font.bold { 1.15 } else { 1.0 }
}

fn width_of_char(c: char) -> u16 {
    match u32::from(c) {
        code @ 0x20..0x7f => WIDTHS[code as usize - 0x20],
        0x300..0x370 | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfe00..0xfe10 => 0,
        0..0x590 => 660,
        0x590..0x700 => 620,
        0x2010..=0x2013 | 0x2018..=0x201e => 500,
        0x2212 => 837,
        _ => 1000,
    }
}

pub(super) struct Canvas<'a, DB: DrawingBackend> {
    area: &'a DrawingArea<DB, Shift>,
    scale: f64,
    mirrored: bool,
}

impl<'a, DB: DrawingBackend> Canvas<'a, DB> {
    pub(super) fn new(area: &'a DrawingArea<DB, Shift>, scale: f64, mirrored: bool) -> Self {
        Self { area, scale: if scale > 0.0 { scale } else { 1.0 }, mirrored }
    }

    pub(super) fn width(&self) -> f64 {
        f64::from(self.area.dim_in_pixel().0) / self.scale
    }

    pub(super) fn height(&self) -> f64 {
        f64::from(self.area.dim_in_pixel().1) / self.scale
    }

    #[expect(clippy::cast_possible_truncation, reason = "casts of floats saturate")]
    fn point(&self, (x, y): (f64, f64)) -> (i32, i32) {
        let x = if self.mirrored { self.width() - x } else { x };
        ((x * self.scale).round() as i32, (y * self.scale).round() as i32)
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts of floats saturate")]
    fn pixels(&self, length: f64) -> u32 {
        ((length * self.scale).round() as u32).max(1)
    }

    pub(super) fn line(&self, from: (f64, f64), to: (f64, f64), width: f64, color: Rgb) -> Result<(), DB> {
        self.path(&[from, to], width, color)
    }

    pub(super) fn path(&self, points: &[(f64, f64)], width: f64, color: Rgb) -> Result<(), DB> {
        let points: Vec<_> = points.iter().map(|point| self.point(*point)).collect();
        let style = ShapeStyle { color: color.opaque(), filled: false, stroke_width: self.pixels(width) };
        self.area.draw(&PathElement::new(points, style))
    }

    pub(super) fn rectangle(&self, from: (f64, f64), to: (f64, f64), color: RGBAColor) -> Result<(), DB> {
        let (a, b) = (self.point(from), self.point(to));
        let corners = [(a.0.min(b.0), a.1.min(b.1)), (a.0.max(b.0), a.1.max(b.1))];
        self.area.draw(&Rectangle::new(corners, color.filled()))
    }

    pub(super) fn polygon(&self, points: &[(f64, f64)], color: Rgb) -> Result<(), DB> {
        let points: Vec<_> = points.iter().map(|point| self.point(*point)).collect();
        self.area.draw(&Polygon::new(points, color.opaque().filled()))
    }

    pub(super) fn disc(&self, center: (f64, f64), radius: f64, color: Rgb) -> Result<(), DB> {
        self.area.draw(&Circle::new(self.point(center), self.pixels(radius), color.opaque().filled()))
    }

    fn style(&self, font: Font, color: Rgb, h_pos: HPos) -> TextStyle<'static> {
        let style = if font.bold { FontStyle::Bold } else { FontStyle::Normal };
        let size = font.size * self.scale * LINE_RATIO;
        let family = FontFamily::Name(FONT_FAMILY);
        let mut text = TextStyle::from(FontDesc::new(family, size, style));
        text.color = color.opaque().to_backend_color();
        text.pos = Pos::new(h_pos, VPos::Center);
        text
    }

    /// The width of a text as the backend measures it.
    pub(super) fn width_of(&self, text: &str, font: Font) -> f64 {
        let measured = self.area.estimate_text_size(text, &self.style(font, Rgb(0, 0, 0), HPos::Left));
        measured.map_or_else(|_| table_width(text, font), |(width, _)| f64::from(width) / self.scale)
    }

    /// Text on a line centred at `y`.
    pub(super) fn text(
        &self,
        text: &str,
        x: f64,
        y: f64,
        font: Font,
        color: Rgb,
        anchor: Anchor,
    ) -> Result<(), DB> {
        let h_pos = match (anchor, self.mirrored) {
            (Anchor::Middle, _) => HPos::Center,
            (Anchor::Start, false) | (Anchor::End, true) => HPos::Left,
            (Anchor::Start, true) | (Anchor::End, false) => HPos::Right,
        };
        self.area.draw_text(text, &self.style(font, color, h_pos), self.point((x, y)))
    }

    /// Text of at most `room` logical pixels, shortened with an ellipsis where it is longer.
    #[expect(clippy::too_many_arguments, reason = "the same as `text`, and the room")]
    pub(super) fn text_within(
        &self,
        text: &str,
        x: f64,
        y: f64,
        room: f64,
        font: Font,
        color: Rgb,
        anchor: Anchor,
    ) -> Result<(), DB> {
        let fitted = fit(text, room, |text| self.width_of(text, font));
        self.text(&fitted, x, y, font, color, anchor)
    }
}

/// The longest beginning of a text that fits with an ellipsis, or all of it.
fn fit(text: &str, room: f64, width: impl Fn(&str) -> f64) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let cut = |end: usize| format!("{}…", text[..end].trim_end());
    let fitting = ends.partition_point(|end| width(&cut(*end)) <= room);
    cut(ends.get(fitting.saturating_sub(1)).copied().unwrap_or(0))
}

/// Breaks text at spaces into lines of at most `room` logical pixels.
pub(super) fn wrap(text: &str, room: f64, width: impl Fn(&str) -> f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let longer = lines.last().map(|line| format!("{line} {word}")).filter(|line| width(line) <= room);
        match longer {
            Some(line) => {
                lines.pop();
                lines.push(line);
            }
            None => lines.push(fit(word, room, &width)),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_fitted_and_wrapped() {
        let width = |text: &str| text.chars().map(|_| 1.0).sum();
        assert_eq!(fit("LibreOffice", 5.0, width), "Libr…");
        assert_eq!(fit("Libre", 5.0, width), "Libre");
        assert_eq!(fit("Libre", 0.0, width), "…");
        assert_eq!(wrap("a bc def longword", 5.0, width), ["a bc", "def", "long…"]);
    }
}
