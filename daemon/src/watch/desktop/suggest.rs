//! Which application a comparison picks when none was named.

use super::{Catalogue, Entry};

/// Known to read much at a start and to come up without questions, the heaviest first. Matched against the ID, without
/// regard to case.
const HEAVY: [&str; 18] = [
    "libreoffice-writer",
    "org.libreoffice.LibreOffice.writer",
    "libreoffice-calc",
    "gimp",
    "org.gimp.GIMP",
    "org.inkscape.Inkscape",
    "org.kde.krita",
    "blender",
    "org.gnome.gedit",
    "org.gnome.TextEditor",
    "org.kde.kate",
    "org.kde.kwrite",
    "mousepad",
    "org.xfce.mousepad",
    "org.gnome.Evince",
    "org.kde.okular",
    "org.gnome.Calculator",
    "org.kde.kcalc",
];

/// Then by category, in this order. Browsers come late: they hand over to a running instance.
const CATEGORIES: [&str; 6] =
    ["WordProcessor", "Graphics", "TextEditor", "WebBrowser", "Calculator", "Office"];

impl Catalogue {
    /// The application to pick by default: in menus, installed, with a window of its own, and rather a heavy one.
    /// Always the same for the same catalogue. `None` if there is none.
    #[must_use]
    pub fn suggest(&self) -> Option<&Entry> {
        self.entries()
            .filter(|entry| self.is_candidate(entry))
            .min_by_key(|entry| (rank(entry), entry.id.as_str()))
    }

    fn is_candidate(&self, entry: &Entry) -> bool {
        let starts = || {
            let program = entry.command().ok().and_then(|args| args.into_iter().next());
            program.is_some_and(|program| {
                super::super::command::resolve(&program, &self.path, std::path::Path::new("/")).is_ok()
            })
        };
        // Settings panels and the like are for one desktop, and show nothing elsewhere.
        let general = entry.only_show_in.is_empty() && !has(entry, "Settings") && !has(entry, "Screensaver");
        entry.installed && !entry.no_display && !entry.terminal && general && starts()
    }
}

fn has(entry: &Entry, category: &str) -> bool {
    entry.categories.iter().any(|c| c == category)
}

fn rank(entry: &Entry) -> usize {
    let heavy = HEAVY.iter().position(|id| id.eq_ignore_ascii_case(&entry.id));
    let category = || CATEGORIES.iter().position(|c| has(entry, c)).map(|at| HEAVY.len() + at);
    heavy.or_else(category).unwrap_or(HEAVY.len() + CATEGORIES.len())
}
