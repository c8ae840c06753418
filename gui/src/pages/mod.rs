//! The pages of the window: one for each thing that can be found in place of a result.

pub(crate) mod empty;
pub(crate) mod failed;
pub(crate) mod result;

use adw::prelude::*;
use gettextrs::gettext;

/// A command to type, with a button that copies it.
fn command(text: &str) -> gtk::Box {
    let label = gtk::Label::builder().label(text).selectable(true).build();
    label.add_css_class("monospace");
    let copy = gtk::Button::builder()
        .icon_name("edit-copy-symbolic")
        .tooltip_text(gettext("Copy Command"))
        .action_name("win.copy-text")
        .action_target(&text.to_variant())
        .valign(gtk::Align::Center)
        .build();
    copy.add_css_class("flat");
    crate::a11y::set_label(&copy, &gettext("Copy Command"));
    let row = gtk::Box::builder().spacing(6).halign(gtk::Align::Center).build();
    row.add_css_class("card");
    row.add_css_class("command");
    row.append(&label);
    row.append(&copy);
    row
}
