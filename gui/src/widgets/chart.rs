//! The picture of a comparison as a widget: follows the style, the text size and the width it gets.

use std::rc::Rc;

use adw::prelude::*;
use gtk::cairo;
use headstart_shared::chart::{Picture, Theme};
use headstart_shared::comparison::Comparison;
use headstart_shared::words;
use plotters::prelude::IntoDrawingArea;

use super::pango_backend::PangoBackend;
use crate::a11y;
use crate::i18n::Gettext;

/// A drawing of `comparison`, with its equivalent in words for assistive technology.
pub(crate) fn chart(comparison: &Rc<Comparison>) -> gtk::DrawingArea {
    let area = gtk::DrawingArea::builder().hexpand(true).accessible_role(gtk::AccessibleRole::Img).build();
    a11y::set_label(&area, &words::milestone(comparison.milestone, &Gettext));
    a11y::set_description(&area, &words::description(comparison, &Gettext));
    area.set_content_height(height(&area, comparison, 360));

    let shown = Rc::clone(comparison);
    area.connect_resize(move |area, width, _| {
        let height = height(area, &shown, width);
        // A new height asks for a new layout; asking only when it changes lets that end.
        if height != area.content_height() {
            let area = area.clone();
            gtk::glib::idle_add_local_once(move || area.set_content_height(height));
        }
    });
    let shown = Rc::clone(comparison);
    area.set_draw_func(move |area, context, width, height| {
        if let Err(error) = draw(area, &shown, context, (width, height)) {
            eprintln!("headstart: the picture could not be drawn: {error}");
        }
    });
    redraw_with_style(&area);
    area
}

fn picture(comparison: &Comparison) -> Picture<'_> {
    let style = adw::StyleManager::default();
    let theme = Theme::of(style.is_dark(), style.is_high_contrast());
    Picture { comparison, theme, labels: &Gettext, complete: false }
}

fn draw(
    area: &gtk::DrawingArea,
    comparison: &Comparison,
    context: &cairo::Context,
    (width, height): (i32, i32),
) -> Result<(), Box<dyn std::error::Error>> {
    let family = area.pango_context().font_description().and_then(|font| font.family());
    let size = (width.max(1).cast_unsigned(), height.max(1).cast_unsigned());
    let backend = PangoBackend::new(context, size, family.map(Into::into));
    Ok(picture(comparison).draw(&backend.into_drawing_area(), text_scale(area))?)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes of widgets are small")]
fn height(area: &gtk::DrawingArea, comparison: &Comparison, width: i32) -> i32 {
    let scale = text_scale(area);
    let width = (f64::from(width.max(1)) / scale) as u32;
    (f64::from(picture(comparison).height(width)) * scale) as i32
}

/// How much larger than usual the user wants text: the picture grows with it.
fn text_scale(area: &gtk::DrawingArea) -> f64 {
    let resolution = pangocairo::functions::context_get_resolution(&area.pango_context());
    if resolution > 0.0 { (resolution / 96.0).clamp(0.5, 4.0) } else { 1.0 }
}

/// Draws again when the style turns dark, light or high-contrast, for as long as the widget is there.
fn redraw_with_style(area: &gtk::DrawingArea) {
    let style = adw::StyleManager::default();
    let redraw = |area: &gtk::DrawingArea| {
        let area = area.downgrade();
        move |_: &adw::StyleManager| {
            if let Some(area) = area.upgrade() {
                area.queue_draw();
            }
        }
    };
    let handlers =
        [style.connect_dark_notify(redraw(area)), style.connect_high_contrast_notify(redraw(area))];
    let handlers = std::cell::Cell::new(Some(handlers));
    area.connect_destroy(move |_| {
        for handler in handlers.take().into_iter().flatten() {
            adw::StyleManager::default().disconnect(handler);
        }
    });
}
