//! The window: holds what was loaded, decides which page shows it, and reacts to the file, the menu and the user.

use std::path::PathBuf;
use std::rc::Rc;

use adw::prelude::*;
use gettextrs::gettext;
use gtk::{gdk, gio, glib};
use headstart_shared::comparison::Comparison;
use headstart_shared::text::fill;
use headstart_shared::words;
use relm4::{Component, ComponentParts, ComponentSender};

use crate::export::{self, ExportError, Format};
use crate::handover::{self, Loaded};
use crate::i18n::Gettext;
use crate::{APP_ID, a11y, actions, pages};

/// Narrower, nothing is cut off down to here.
const SMALLEST: (i32, i32) = (360, 294);

/// What happens to the window.
#[derive(Debug)]
pub(crate) enum Msg {
    /// Read the file again.
    Reload,
    /// Ask where to write the result.
    Export(Format),
    /// Write it there.
    ExportTo(PathBuf, Format),
    /// Put the result on the clipboard as text.
    CopyResult,
    /// Put a text on the clipboard.
    CopyText(String),
}

/// What was done off the main thread.
#[derive(Debug)]
pub(crate) enum Done {
    /// The file was read.
    Loaded(Loaded),
    /// The result was written, or not.
    Exported(PathBuf, Result<(), ExportError>),
}

/// The state of the window.
#[derive(Debug)]
pub(crate) struct App {
    file: PathBuf,
    result: Option<Rc<Comparison>>,
    /// Kept for as long as the window: dropping it ends the watch.
    _monitor: Option<gio::FileMonitor>,
    /// A file dialog lives only as long as someone holds it.
    dialog: Option<gtk::FileChooserNative>,
}

/// The parts of the window that change.
#[derive(Debug)]
pub(crate) struct Widgets {
    page: adw::Bin,
    title: adw::WindowTitle,
    export: gtk::MenuButton,
    toasts: adw::ToastOverlay,
}

impl Component for App {
    type Init = PathBuf;
    type Input = Msg;
    type Output = ();
    type CommandOutput = Done;
    type Root = adw::ApplicationWindow;
    type Widgets = Widgets;

    fn init_root() -> Self::Root {
        let window =
            adw::ApplicationWindow::builder().title("Headstart").default_width(820).default_height(760);
        let window = window.width_request(SMALLEST.0).height_request(SMALLEST.1).icon_name(APP_ID);
        window.build()
    }

    fn init(file: PathBuf, root: Self::Root, sender: ComponentSender<Self>) -> ComponentParts<Self> {
        relm4::set_global_css(include_str!("style.css"));
        actions::install(&root, sender.input_sender());
        actions::set_has_result(&root, false);
        follow_style(&root);
        let monitor = watch(&file, &sender);
        let widgets = Widgets::new(&root);
        sender.input(Msg::Reload);
        ComponentParts { model: Self { file, result: None, _monitor: monitor, dialog: None }, widgets }
    }

    fn update_with_view(
        &mut self,
        widgets: &mut Widgets,
        message: Msg,
        sender: ComponentSender<Self>,
        root: &Self::Root,
    ) {
        match message {
            Msg::Reload => {
                let file = self.file.clone();
                sender.spawn_oneshot_command(move || Done::Loaded(handover::load(&file)));
            }
            Msg::Export(format) => self.ask_where(format, root, &sender),
            Msg::ExportTo(path, format) => {
                let Some(result) = self.result.as_deref().cloned() else { return };
                sender.spawn_oneshot_command(move || {
                    let outcome = export::write(&path, &result, format, &Gettext);
                    Done::Exported(path, outcome)
                });
            }
            Msg::CopyResult => {
                if let Some(result) = &self.result {
                    copy(&result.to_table(80));
                    widgets.toast(&gettext("Result copied"));
                }
            }
            Msg::CopyText(text) => {
                copy(&text);
                widgets.toast(&gettext("Command copied"));
            }
        }
    }

    fn update_cmd_with_view(
        &mut self,
        widgets: &mut Widgets,
        done: Done,
        _: ComponentSender<Self>,
        root: &Self::Root,
    ) {
        match done {
            Done::Loaded(loaded) => self.show(widgets, loaded, root),
            Done::Exported(path, Ok(())) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                widgets.toast(&fill(&gettext("Saved as {file}"), &[("file", &name)]));
            }
            Done::Exported(_, Err(error)) => {
                widgets.toast(&fill(&gettext("Not saved: {error}"), &[("error", &error.to_string())]));
            }
        }
    }
}

impl App {
    fn show(&mut self, widgets: &Widgets, loaded: Loaded, root: &adw::ApplicationWindow) {
        self.result = None;
        let mut subtitle = String::new();
        let page: gtk::Widget = match loaded {
            Loaded::Nothing => pages::empty::page(&status_icon(root)).upcast(),
            Loaded::Failed(error) => pages::failed::page(&self.file, &error).upcast(),
            Loaded::Result(result) => {
                let result = Rc::new(*result);
                subtitle = words::name(&result);
                let page = pages::result::page(&result);
                self.result = Some(result);
                page.upcast()
            }
        };
        widgets.page.set_child(Some(&page));
        widgets.title.set_subtitle(&subtitle);
        widgets.export.set_visible(self.result.is_some());
        actions::set_has_result(root, self.result.is_some());
    }

    fn ask_where(&mut self, format: Format, root: &adw::ApplicationWindow, sender: &ComponentSender<Self>) {
        let Some(result) = &self.result else { return };
        let dialog = gtk::FileChooserNative::builder()
            .title(gettext("Save Result"))
            .action(gtk::FileChooserAction::Save)
            .accept_label(gettext("_Save"))
            .cancel_label(gettext("_Cancel"))
            .transient_for(root)
            .modal(true)
            .build();
        dialog.set_current_name(&export::file_name(result, format));
        let sender = sender.input_sender().clone();
        dialog.connect_response(move |dialog, response| {
            let path = dialog.file().and_then(|file| file.path());
            if let (gtk::ResponseType::Accept, Some(path)) = (response, path) {
                sender.emit(Msg::ExportTo(path, format));
            }
        });
        dialog.show();
        self.dialog = Some(dialog);
    }
}

impl Widgets {
    fn new(root: &adw::ApplicationWindow) -> Self {
        let title = adw::WindowTitle::new("Headstart", "");
        let export = menu_button("document-save-symbolic", &gettext("Export"), &actions::export_menu());
        export.set_visible(false);
        let menu = menu_button("open-menu-symbolic", &gettext("Main Menu"), &actions::main_menu());
        menu.set_primary(true);
        let header = adw::HeaderBar::builder().title_widget(&title).build();
        header.add_css_class("flat");
        header.pack_end(&menu);
        header.pack_end(&export);
        let page = adw::Bin::builder().vexpand(true).build();
        let toasts = adw::ToastOverlay::new();
        toasts.set_child(Some(&page));
        let content = gtk::Box::new(gtk::Orientation::Vertical, 0);
        content.append(&header);
        content.append(&toasts);
        root.set_content(Some(&content));
        Self { page, title, export, toasts }
    }

    fn toast(&self, text: &str) {
        self.toasts.add_toast(adw::Toast::new(&glib::markup_escape_text(text)));
    }
}

fn menu_button(icon: &str, name: &str, menu: &gio::Menu) -> gtk::MenuButton {
    let button = gtk::MenuButton::builder().icon_name(icon).tooltip_text(name).menu_model(menu).build();
    a11y::set_label(&button, name);
    button
}

/// Asks for the file to be read again whenever it changed. `headstartctl` replaces it by renaming, and its folder may
/// not be there yet; GIO watches both.
fn watch(file: &std::path::Path, sender: &ComponentSender<App>) -> Option<gio::FileMonitor> {
    let file = gio::File::for_path(file);
    let monitor = file.monitor_file(gio::FileMonitorFlags::WATCH_MOVES, gio::Cancellable::NONE).ok()?;
    monitor.set_rate_limit(200);
    let sender = sender.input_sender().clone();
    monitor.connect_changed(move |_, _, _, event| {
        // While it is being written it would only be found incomplete.
        if event != gio::FileMonitorEvent::Changed {
            sender.emit(Msg::Reload);
        }
    });
    Some(monitor)
}

/// Marks the window as dark while the style is: the colours of figures are the picture's, which know only these two.
fn follow_style(root: &adw::ApplicationWindow) {
    let style = adw::StyleManager::default();
    let window = root.downgrade();
    let mark = move |style: &adw::StyleManager| {
        let Some(window) = window.upgrade() else { return };
        if style.is_dark() {
            window.add_css_class("dark-style");
        } else {
            window.remove_css_class("dark-style");
        }
    };
    mark(&style);
    style.connect_dark_notify(mark);
}

fn copy(text: &str) {
    if let Some(display) = gdk::Display::default() {
        display.clipboard().set_text(text);
    }
}

/// The own icon where it is installed.
fn status_icon(root: &adw::ApplicationWindow) -> String {
    let own = format!("{APP_ID}-symbolic");
    let there = gtk::IconTheme::for_display(&gtk::prelude::RootExt::display(root)).has_icon(&own);
    if there { own } else { "document-open-recent-symbolic".to_owned() }
}
