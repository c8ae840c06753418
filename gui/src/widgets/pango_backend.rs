//! A plotters backend on cairo that sets text with Pango, so that every script is shaped, runs in its own direction and
//! finds a font; cairo's own text calls do none of the three.

use gtk::{cairo, pango};
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind, FontStyle,
};

use headstart_shared::chart::LINE_RATIO;

type Outcome = Result<(), DrawingErrorKind<cairo::Error>>;

/// Draws on a context whose unit is a logical pixel.
pub(crate) struct PangoBackend<'a> {
    context: &'a cairo::Context,
    size: (u32, u32),
    layout: pango::Layout,
    family: Option<String>,
}

impl<'a> PangoBackend<'a> {
    /// On `context`, of `size` logical pixels; text in `family`, or in the family that the picture asks for.
    pub(crate) fn new(context: &'a cairo::Context, size: (u32, u32), family: Option<String>) -> Self {
        Self { context, size, layout: pangocairo::functions::create_layout(context), family }
    }

    fn set_style<S: BackendStyle>(&self, style: &S) {
        let BackendColor { alpha, rgb: (r, g, b) } = style.color();
        self.context.set_source_rgba(f64::from(r) / 255.0, f64::from(g) / 255.0, f64::from(b) / 255.0, alpha);
        self.context.set_line_width(f64::from(style.stroke_width()));
    }

    fn set_text<S: BackendTextStyle>(&self, text: &str, style: &S) {
        let mut font = pango::FontDescription::new();
        // CSS quotes family names; Pango takes them as they are.
        let wanted = style.family().as_str().replace('\'', "");
        font.set_family(self.family.as_deref().unwrap_or(&wanted));
        font.set_absolute_size(style.size() / LINE_RATIO * f64::from(pango::SCALE));
        if matches!(style.style(), FontStyle::Bold) {
            font.set_weight(pango::Weight::Bold);
        }
        self.layout.set_font_description(Some(&font));
        self.layout.set_text(text);
    }

    fn trace(&self, path: impl IntoIterator<Item = BackendCoord>, offset: f64) {
        for (x, y) in path {
            self.context.line_to(f64::from(x) + offset, f64::from(y) + offset);
        }
    }
}

/// Lines of odd width are sharp between pixels, others on them.
fn sharp<S: BackendStyle>(style: &S) -> f64 {
    if style.stroke_width() % 2 == 1 { 0.5 } else { 0.0 }
}

impl DrawingBackend for PangoBackend<'_> {
    type ErrorType = cairo::Error;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }

    fn ensure_prepared(&mut self) -> Outcome {
        Ok(())
    }

    fn present(&mut self) -> Outcome {
        Ok(())
    }

    fn draw_pixel(&mut self, (x, y): BackendCoord, color: BackendColor) -> Outcome {
        self.draw_rect((x, y), (x + 1, y + 1), &color, true)
    }

    fn draw_line<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S) -> Outcome {
        self.draw_path([from, to], style)
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        a: BackendCoord,
        b: BackendCoord,
        style: &S,
        fill: bool,
    ) -> Outcome {
        self.set_style(style);
        let (width, height) = (f64::from(b.0 - a.0), f64::from(b.1 - a.1));
        self.context.rectangle(f64::from(a.0), f64::from(a.1), width, height);
        if fill { self.context.fill() } else { self.context.stroke() }.map_err(DrawingErrorKind::DrawingError)
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Outcome {
        self.set_style(style);
        self.trace(path, sharp(style));
        self.context.stroke().map_err(DrawingErrorKind::DrawingError)
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        (x, y): BackendCoord,
        radius: u32,
        style: &S,
        fill: bool,
    ) -> Outcome {
        self.set_style(style);
        self.context.new_sub_path();
        self.context.arc(f64::from(x), f64::from(y), f64::from(radius), 0.0, std::f64::consts::TAU);
        if fill { self.context.fill() } else { self.context.stroke() }.map_err(DrawingErrorKind::DrawingError)
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Outcome {
        self.set_style(style);
        self.trace(path, 0.0);
        self.context.close_path();
        self.context.fill().map_err(DrawingErrorKind::DrawingError)
    }

    fn estimate_text_size<S: BackendTextStyle>(
        &self,
        text: &str,
        style: &S,
    ) -> Result<(u32, u32), DrawingErrorKind<Self::ErrorType>> {
        self.set_text(text, style);
        let (width, height) = self.layout.pixel_size();
        Ok((width.max(0).cast_unsigned(), height.max(0).cast_unsigned()))
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, (x, y): BackendCoord) -> Outcome {
        self.set_text(text, style);
        self.set_style(&style.color());
        let (width, height) = self.layout.pixel_size();
        let left = match style.anchor().h_pos {
            HPos::Left => 0.0,
            HPos::Center => f64::from(width) / 2.0,
            HPos::Right => f64::from(width),
        };
        let top = match style.anchor().v_pos {
            VPos::Top => 0.0,
            VPos::Center => f64::from(height) / 2.0,
            VPos::Bottom => f64::from(height),
        };
        self.context.move_to(f64::from(x) - left, f64::from(y) - top);
        pangocairo::functions::show_layout(self.context, &self.layout);
        self.context.new_path();
        Ok(())
    }
}
