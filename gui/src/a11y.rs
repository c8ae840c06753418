//! Names and descriptions for assistive technology on widgets that draw themselves.
//!
//! `gtk4` offers `Accessible::update_property` only to those who require GTK 4.10, though the C function has been there
//! since 4.0. This file, the only one of the window with `unsafe`, calls it directly.

use std::ffi::{c_int, c_void};

use gtk::glib;
use gtk::glib::translate::ToGlibPtr;
use gtk::prelude::*;

/// `GTK_ACCESSIBLE_PROPERTY_DESCRIPTION` and `GTK_ACCESSIBLE_PROPERTY_LABEL` of `gtkenums.h`; part of the stable ABI.
const DESCRIPTION: c_int = 1;
const LABEL: c_int = 4;

unsafe extern "C" {
    fn gtk_accessible_update_property_value(
        accessible: *mut c_void,
        count: c_int,
        properties: *mut c_int,
        values: *const glib::gobject_ffi::GValue,
    );
}

/// Gives a widget the name that assistive technology says for it.
pub(crate) fn set_label(widget: &impl IsA<gtk::Widget>, label: &str) {
    update(widget.upcast_ref(), LABEL, label);
}

/// Gives a widget the longer text that assistive technology can say about it.
pub(crate) fn set_description(widget: &impl IsA<gtk::Widget>, description: &str) {
    update(widget.upcast_ref(), DESCRIPTION, description);
}

fn update(widget: &gtk::Widget, mut property: c_int, text: &str) {
    // GTK takes no text with NUL, and `to_value` would cut it there.
    let value = text.replace('\0', "\u{fffd}").to_value();
    let pointer: *mut gtk::ffi::GtkWidget = widget.to_glib_none().0;
    // SAFETY: every GtkWidget implements GtkAccessible, so the pointer is one; it lives as long as `widget` is
    // borrowed. GTK reads one property number and one initialised GValue holding a string, as these two
    // properties demand, and keeps neither pointer. We are on the main thread, since `gtk::Widget` is not `Send`.
    unsafe {
        gtk_accessible_update_property_value(pointer.cast(), 1, &raw mut property, value.to_glib_none().0);
    }
}
