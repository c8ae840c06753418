//! Menus, keyboard shortcuts, and the windows they open.

use adw::prelude::*;
use gettextrs::gettext;
use gtk::{gio, glib};
use relm4::Sender;

use crate::APP_ID;
use crate::app::Msg;
use crate::export::Format;

/// Actions of the window with their keys.
const KEYS: [(&str, &[&str]); 8] = [
    ("window.close", &["<Control>w"]),
    ("win.quit", &["<Control>q"]),
    ("win.reload", &["<Control>r", "F5"]),
    ("win.export::svg", &["<Control>s"]),
    ("win.export::png", &["<Control><Shift>s"]),
    ("win.copy-result", &["<Control><Shift>c"]),
    ("win.shortcuts", &["<Control>question"]),
    ("win.about", &["F1"]),
];

/// Gives the window its actions; what changes the application's state becomes a message.
pub(crate) fn install(window: &adw::ApplicationWindow, sender: &Sender<Msg>) {
    let message = |name: &str, make: fn() -> Msg| {
        let action = gio::SimpleAction::new(name, None);
        let sender = sender.clone();
        action.connect_activate(move |_, _| sender.emit(make()));
        window.add_action(&action);
    };
    message("reload", || Msg::Reload);
    message("copy-result", || Msg::CopyResult);
    with_text(window, "export", sender, |name| {
        let formats = [Format::Svg, Format::Png, Format::Csv, Format::Json];
        formats.into_iter().find(|format| format.extension() == name).map(Msg::Export)
    });
    with_text(window, "copy-text", sender, |text| Some(Msg::CopyText(text.to_owned())));
    for (name, show) in [("shortcuts", show_shortcuts as fn(&adw::ApplicationWindow)), ("about", show_about)]
    {
        let action = gio::SimpleAction::new(name, None);
        let parent = window.downgrade();
        action.connect_activate(move |_, _| {
            if let Some(parent) = parent.upgrade() {
                show(&parent);
            }
        });
        window.add_action(&action);
    }
    let quit = gio::SimpleAction::new("quit", None);
    quit.connect_activate(|_, _| relm4::main_adw_application().quit());
    window.add_action(&quit);
    for (action, keys) in KEYS {
        relm4::main_adw_application().set_accels_for_action(action, keys);
    }
}

fn with_text(
    window: &adw::ApplicationWindow,
    name: &str,
    sender: &Sender<Msg>,
    message: fn(&str) -> Option<Msg>,
) {
    let action = gio::SimpleAction::new(name, Some(glib::VariantTy::STRING));
    let sender = sender.clone();
    action.connect_activate(move |_, text| {
        if let Some(message) = text.and_then(glib::Variant::str).and_then(message) {
            sender.emit(message);
        }
    });
    window.add_action(&action);
}

/// Exporting and copying need a result.
pub(crate) fn set_has_result(window: &adw::ApplicationWindow, has_result: bool) {
    for name in ["export", "copy-result"] {
        if let Some(action) = window.lookup_action(name).and_downcast::<gio::SimpleAction>() {
            action.set_enabled(has_result);
        }
    }
}

/// The menu of the export button.
pub(crate) fn export_menu() -> gio::Menu {
    let menu = gio::Menu::new();
    let files = gio::Menu::new();
    files.append(Some(&gettext("Picture as _SVG…")), Some("win.export::svg"));
    files.append(Some(&gettext("Picture as _PNG…")), Some("win.export::png"));
    files.append(Some(&gettext("Every Start as _CSV…")), Some("win.export::csv"));
    files.append(Some(&gettext("Everything as _JSON…")), Some("win.export::json"));
    menu.append_section(None, &files);
    let copy = gio::Menu::new();
    copy.append(Some(&gettext("_Copy as Text")), Some("win.copy-result"));
    menu.append_section(None, &copy);
    menu
}

/// The main menu.
pub(crate) fn main_menu() -> gio::Menu {
    let menu = gio::Menu::new();
    let window = gio::Menu::new();
    window.append(Some(&gettext("_Reload")), Some("win.reload"));
    menu.append_section(None, &window);
    let about = gio::Menu::new();
    about.append(Some(&gettext("_Keyboard Shortcuts")), Some("win.shortcuts"));
    about.append(Some(&gettext("_About Headstart")), Some("win.about"));
    menu.append_section(None, &about);
    menu
}

/// The shortcuts window. GTK 4.8 can only build one from XML.
fn show_shortcuts(parent: &adw::ApplicationWindow) {
    let shortcut = |keys: &str, title: &str| {
        format!(
            "<child><object class='GtkShortcutsShortcut'><property name='accelerator'>{}</property><property name='title'>{}</property></object></child>",
            glib::markup_escape_text(keys),
            glib::markup_escape_text(title)
        )
    };
    let group = |title: &str, shortcuts: &[String]| {
        format!(
            "<child><object class='GtkShortcutsGroup'><property name='title'>{}</property>{}</object></child>",
            glib::markup_escape_text(title),
            shortcuts.concat()
        )
    };
    let result = [
        shortcut("<Control>s", &gettext("Save the picture as SVG")),
        shortcut("<Control><Shift>s", &gettext("Save the picture as PNG")),
        shortcut("<Control><Shift>c", &gettext("Copy as text")),
        shortcut("<Control>r F5", &gettext("Reload")),
    ];
    let general = [
        shortcut("F10", &gettext("Open the menu")),
        shortcut("<Control>question", &gettext("Keyboard shortcuts")),
        shortcut("F1", &gettext("About Headstart")),
        shortcut("<Control>w", &gettext("Close the window")),
        shortcut("<Control>q", &gettext("Quit")),
    ];
    let groups = group(&gettext("Result"), &result) + &group(&gettext("General"), &general);
    let xml = format!(
        "<interface><object class='GtkShortcutsWindow' id='shortcuts'><property name='modal'>1</property><child><object class='GtkShortcutsSection'><property name='section-name'>shortcuts</property><property name='max-height'>12</property>{groups}</object></child></object></interface>"
    );
    if let Some(window) = gtk::Builder::from_string(&xml).object::<gtk::ShortcutsWindow>("shortcuts") {
        window.set_transient_for(Some(parent));
        window.present();
    }
}

fn show_about(parent: &adw::ApplicationWindow) {
    let about = adw::AboutWindow::builder()
        .transient_for(parent)
        .modal(true)
        .application_name("Headstart")
        .application_icon(APP_ID)
        .version(env!("CARGO_PKG_VERSION"))
        .developer_name(gettext("The Headstart developers"))
        .comments(gettext("Reads ahead what an application’s start needs, and measures what that gains."))
        .license_type(gtk::License::Gpl30)
        .website("https://github.com/headstart-desktop/headstart")
        .issue_url("https://github.com/headstart-desktop/headstart/issues")
        // Translators: your names, one a line.
        .translator_credits(gettext("translator-credits"))
        .build();
    about.present();
}
