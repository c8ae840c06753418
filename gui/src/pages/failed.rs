//! The file of the last result cannot be shown: which one, why, and what helps.

use std::path::Path;

use adw::prelude::*;
use gettextrs::gettext;
use gtk::glib;
use headstart_shared::comparison::FormatError;
use headstart_shared::text::{self, clean, fill, shorten};
use headstart_shared::units::Bytes;

use crate::handover::LoadError;
use crate::i18n::Gettext;

/// The page.
pub(crate) fn page(path: &Path, error: &LoadError) -> adw::StatusPage {
    let (title, why) = words(error);
    let path = clean(&path.display().to_string());
    let description = fill(
        // Translators: {file} is the path of a file, {reason} one or two sentences.
        &gettext("{file}\n\n{reason}"),
        &[("file", &glib::markup_escape_text(&path)), ("reason", &glib::markup_escape_text(&why))],
    );
    let again = gtk::Button::builder()
        .label(gettext("_Try Again"))
        .use_underline(true)
        .action_name("win.reload")
        .halign(gtk::Align::Center)
        .build();
    again.add_css_class("pill");
    again.add_css_class("suggested-action");
    let below = gtk::Box::builder().orientation(gtk::Orientation::Vertical).spacing(18).build();
    below.append(&super::command("headstartctl try APP"));
    below.append(&again);
    adw::StatusPage::builder()
        .icon_name("dialog-warning-symbolic")
        .title(title)
        .description(description)
        .child(&below)
        .build()
}

/// A heading, and the reason with the cure.
fn words(error: &LoadError) -> (String, String) {
    let detail = |error: &dyn std::fmt::Display| clean(&shorten(&error.to_string(), 200));
    match error {
        LoadError::Unreadable(error) => (
            gettext("The Result Cannot Be Read"),
            fill(&gettext("{error}. Check the permissions of the file."), &[("error", &detail(error))]),
        ),
        LoadError::NotAFile => (
            gettext("The Result Cannot Be Read"),
            gettext("It is not a regular file. Remove what is in its place and measure again."),
        ),
        LoadError::TooLarge(size) => (
            gettext("The Result Is Damaged"),
            fill(
                &gettext("With {size} it is too large for a result. Measure again to replace it."),
                &[("size", &text::bytes(Bytes(*size), &Gettext))],
            ),
        ),
        LoadError::Format(FormatError::Newer { .. }) => (
            gettext("The Result Is Too New"),
            gettext("A newer Headstart wrote it. Update this program, or measure again with this version."),
        ),
        LoadError::Format(FormatError::NotJson(error) | FormatError::Damaged(error)) => (
            gettext("The Result Is Damaged"),
            fill(&gettext("Measure again to replace it. Details: {error}"), &[("error", &detail(error))]),
        ),
    }
}
