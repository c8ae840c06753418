//! Nothing was measured yet: says what to do.

use adw::prelude::*;
use gettextrs::gettext;

/// The page.
pub(crate) fn page(icon: &str) -> adw::StatusPage {
    let description = gettext(
        "Measure an app to see what reading ahead gains. It is started several times cold, cold with reading ahead, and warm. The result appears here by itself.",
    );
    let below = gtk::Box::builder().orientation(gtk::Orientation::Vertical).spacing(12).build();
    below.append(&super::command("headstartctl try APP"));
    let hint =
        gettext("APP is the name of an application, as it is in the menu. A command is measured with:");
    let hint = gtk::Label::builder().label(hint).wrap(true).justify(gtk::Justification::Center).build();
    hint.add_css_class("dim-label");
    below.append(&hint);
    below.append(&super::command("headstartctl try -- COMMAND"));
    adw::StatusPage::builder()
        .icon_name(icon)
        .title(gettext("No Result Yet"))
        .description(description)
        .child(&below)
        .build()
}
