//! Every start as a table: the same data as the picture, for the keyboard and for screen readers.

use gtk::gio;
use gtk::glib::BoxedAnyObject;
use gtk::prelude::*;

use gettextrs::gettext;
use headstart_shared::comparison::{Comparison, TimedRun};
use headstart_shared::{text, words};

use crate::a11y;
use crate::i18n::Gettext;

/// Rows shown without scrolling inside the table.
const ROWS: i32 = 8;
const ROW_HEIGHT: i32 = 36;

/// The table of a comparison. Rows are made as they come into view, so thousands cost nothing.
pub(crate) fn table(comparison: &Comparison) -> gtk::ScrolledWindow {
    let store = gio::ListStore::new::<BoxedAnyObject>();
    let rows: Vec<BoxedAnyObject> = comparison.runs.iter().cloned().map(BoxedAnyObject::new).collect();
    store.extend_from_slice(&rows);
    let view = gtk::ColumnView::new(Some(gtk::NoSelection::new(Some(store))));
    view.add_css_class("data-table");
    a11y::set_label(&view, &gettext("Every start"));
    view.append_column(&column(&gettext("Round"), true, |run| run.round.to_string()));
    view.append_column(&column(&gettext("Condition"), false, |run| {
        words::condition(run.condition, &Gettext)
    }));
    view.append_column(&column(&gettext("Time"), true, |run| text::span(run.time, &Gettext)));
    view.append_column(&column(&gettext("Read from drive"), true, |run| {
        run.read.map_or_else(|| "–".to_owned(), |bytes| text::bytes(bytes, &Gettext))
    }));
    let shown = i32::try_from(rows.len()).unwrap_or(i32::MAX).min(ROWS) + 1;
    let window = gtk::ScrolledWindow::builder().child(&view).height_request(shown * ROW_HEIGHT).build();
    window.add_css_class("card");
    window.set_overflow(gtk::Overflow::Hidden);
    window
}

fn column(title: &str, number: bool, text: fn(&TimedRun) -> String) -> gtk::ColumnViewColumn {
    let factory = gtk::SignalListItemFactory::new();
    factory.connect_setup(move |_, item| {
        let label = gtk::Label::builder().xalign(if number { 1.0 } else { 0.0 }).build();
        if number {
            label.add_css_class("numeric");
        }
        if let Some(item) = item.downcast_ref::<gtk::ListItem>() {
            item.set_child(Some(&label));
        }
    });
    factory.connect_bind(move |_, item| {
        let Some(item) = item.downcast_ref::<gtk::ListItem>() else { return };
        let run = item.item().and_downcast::<BoxedAnyObject>();
        let label = item.child().and_downcast::<gtk::Label>();
        if let (Some(run), Some(label)) = (run, label) {
            label.set_label(&text(&run.borrow::<TimedRun>()));
        }
    });
    let column = gtk::ColumnViewColumn::new(Some(title), Some(factory.upcast::<gtk::ListItemFactory>()));
    column.set_expand(true);
    column
}
