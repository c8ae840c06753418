//! Rows of boxed lists. Text from outside is never taken for markup.

use adw::prelude::*;

/// A group of rows with a heading.
pub(crate) fn group(title: &str) -> adw::PreferencesGroup {
    adw::PreferencesGroup::builder().title(title).build()
}

/// Values of more characters stand under their name: beside it they would squeeze it on a narrow screen.
const SHORT: usize = 18;

/// A name and its value.
pub(crate) fn fact(name: &str, value: &str) -> adw::ActionRow {
    if value.chars().count() > SHORT {
        return stacked(name, value);
    }
    let row = stacked(name, "");
    let label = gtk::Label::builder().label(value).valign(gtk::Align::Center).selectable(true).build();
    label.set_can_focus(false);
    label.add_css_class("dim-label");
    label.add_css_class("numeric");
    row.add_suffix(&label);
    row
}

/// A name with its value under it.
fn stacked(name: &str, value: &str) -> adw::ActionRow {
    let row = adw::ActionRow::builder().use_markup(false).subtitle_lines(0).title_lines(0).build();
    row.set_title(name);
    row.set_subtitle(value);
    row.set_activatable(false);
    row
}

/// A name, details under it, and a figure at the end of the row.
pub(crate) fn figure(name: &str, details: &str, value: &str, class: Option<&str>) -> adw::ActionRow {
    let row = stacked(name, details);
    let label = gtk::Label::builder().label(value).valign(gtk::Align::Center).build();
    label.add_css_class("heading");
    label.add_css_class("numeric");
    label.add_css_class("figure");
    if let Some(class) = class {
        label.add_css_class(class);
    }
    row.add_suffix(&label);
    row
}

/// A remark with an icon.
pub(crate) fn remark(icon: &str, text: &str) -> adw::ActionRow {
    let row = adw::ActionRow::builder().use_markup(false).title_lines(0).activatable(false).build();
    row.set_title(text);
    let role = gtk::AccessibleRole::Presentation;
    let icon = gtk::Image::builder().icon_name(icon).accessible_role(role).build();
    row.add_prefix(&icon);
    row
}
