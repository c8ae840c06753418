//! The picture as an SVG document: text for people and screen readers, sizes that do not depend on installed fonts.

use plotters::backend::SVGBackend;
use plotters::prelude::{DrawingBackend, IntoDrawingArea};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingErrorKind, FontStyle,
};

use super::canvas::{Font, LINE_RATIO, table_width};
use super::{EXPORT_WIDTH, Picture, Theme};
use crate::comparison::Comparison;
use crate::text::Labels;
use crate::words;

/// The picture of a comparison as an SVG document of 800 logical pixels' width. The same comparison always gives the
/// same bytes.
#[must_use]
pub fn svg(comparison: &Comparison, theme: &Theme, labels: &dyn Labels) -> String {
    let picture = Picture { comparison, theme, labels, complete: true };
    let size = (EXPORT_WIDTH, picture.height(EXPORT_WIDTH));
    let mut body = String::new();
    {
        let backend =
            Measuring { inner: SVGBackend::with_string(&mut body, size), rtl: labels.right_to_left() };
        // Writing into a string cannot fail.
        let _ = picture.draw(&backend.into_drawing_area(), 1.0);
    }
    let (open, rest) = body.split_once(">\n").unwrap_or(("<svg", "</svg>"));
    let (name, description) =
        (escape(&words::name(comparison)), escape(&words::description(comparison, labels)));
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{open} role=\"img\" aria-labelledby=\"title\" aria-describedby=\"description\">\n<title id=\"title\">{name}</title>\n<desc id=\"description\">{description}</desc>\n{rest}"
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The SVG backend with a table of widths for its text: on its own, without fonts, it takes every byte for 0.7 of the
/// size. Also marks text of right-to-left languages as such.
struct Measuring<'a> {
    inner: SVGBackend<'a>,
    rtl: bool,
}

type Outcome = Result<(), DrawingErrorKind<std::io::Error>>;

impl DrawingBackend for Measuring<'_> {
    type ErrorType = std::io::Error;

    fn get_size(&self) -> (u32, u32) {
        self.inner.get_size()
    }

    fn ensure_prepared(&mut self) -> Outcome {
        self.inner.ensure_prepared()
    }

    fn present(&mut self) -> Outcome {
        self.inner.present()
    }

    fn draw_pixel(&mut self, point: BackendCoord, color: BackendColor) -> Outcome {
        self.inner.draw_pixel(point, color)
    }

    fn draw_line<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S) -> Outcome {
        self.inner.draw_line(from, to, style)
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        a: BackendCoord,
        b: BackendCoord,
        style: &S,
        fill: bool,
    ) -> Outcome {
        self.inner.draw_rect(a, b, style, fill)
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Outcome {
        self.inner.draw_path(path, style)
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        at: BackendCoord,
        radius: u32,
        style: &S,
        fill: bool,
    ) -> Outcome {
        self.inner.draw_circle(at, radius, style, fill)
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Outcome {
        self.inner.fill_polygon(path, style)
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, at: BackendCoord) -> Outcome {
        if self.rtl {
            return self.inner.draw_text(&format!("\u{2067}{text}\u{2069}"), style, at);
        }
        self.inner.draw_text(text, style, at)
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "widths are small and positive"
    )]
    fn estimate_text_size<S: BackendTextStyle>(
        &self,
        text: &str,
        style: &S,
    ) -> Result<(u32, u32), DrawingErrorKind<Self::ErrorType>> {
        let size = style.size() / LINE_RATIO;
        let font =
            if matches!(style.style(), FontStyle::Bold) { Font::bold(size) } else { Font::regular(size) };
        Ok((table_width(text, font).ceil() as u32, style.size().ceil() as u32))
    }
}
