//! Translations by gettext, for this crate's sentences and for those of `headstart_shared`.

use std::path::PathBuf;

use gettextrs::{bind_textdomain_codeset, bindtextdomain, gettext, ngettext, pgettext, textdomain};
use headstart_shared::text::Labels;

const DOMAIN: &str = "headstart";

/// Chooses the translations. The locale itself was set by GTK.
pub(crate) fn init() {
    // Without translations the window is in English; that is no reason not to open it.
    let _ = bindtextdomain(DOMAIN, locale_dir());
    let _ = bind_textdomain_codeset(DOMAIN, "UTF-8");
    let _ = textdomain(DOMAIN);
    if Gettext.right_to_left() {
        gtk::Widget::set_default_direction(gtk::TextDirection::Rtl);
    }
}

/// `HEADSTART_LOCALEDIR`, at run time or at build time; else `share/locale` beside the folder of the program.
fn locale_dir() -> PathBuf {
    let set = std::env::var_os("HEADSTART_LOCALEDIR").map(PathBuf::from);
    let built = || option_env!("HEADSTART_LOCALEDIR").map(PathBuf::from);
    let beside = || Some(std::env::current_exe().ok()?.parent()?.parent()?.join("share/locale"));
    set.or_else(built).or_else(beside).unwrap_or_else(|| PathBuf::from("/usr/share/locale"))
}

/// The reader's language, as `headstart_shared` asks for it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gettext;

impl Labels for Gettext {
    fn text(&self, english: &'static str) -> String {
        gettext(english)
    }

    fn plural(&self, one: &'static str, many: &'static str, n: u64) -> String {
        ngettext(one, many, u32::try_from(n).unwrap_or(u32::MAX))
    }

    fn decimal_point(&self) -> String {
        // Translators: what separates whole numbers from decimals: 1.5 or 1,5.
        pgettext("decimal separator in numbers", ".")
    }

    fn right_to_left(&self) -> bool {
        // Translators: "rtl" if your language is written from right to left, else "ltr".
        pgettext("direction of the language", "ltr") == "rtl"
    }
}
