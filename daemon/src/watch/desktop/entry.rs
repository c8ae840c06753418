//! One desktop entry: what is known of an installed application.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use headstart_shared::run::AppId;

use super::exec::{self, ExecError, Fields};
use super::locale::Locale;
use super::parse::Group;
use crate::sys::foreign_file;
use crate::watch::command::in_path;

/// The largest file read, in bytes. With all their languages, entries have some hundred thousand.
const MAX_LENGTH: u64 = 4 << 20;

/// An installed application.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "these are the flags of the file format")]
pub struct Entry {
    /// The ID, without `.desktop`.
    pub id: String,
    /// The file.
    pub path: PathBuf,
    /// The name in the person's language.
    pub name: String,
    /// The name without a language.
    pub plain_name: String,
    /// `Exec`, unescaped.
    pub exec: Option<String>,
    /// Not for menus. Still an application, and still learned.
    pub no_display: bool,
    /// Runs in a terminal.
    pub terminal: bool,
    /// Can be started by a message over the bus; `Exec` is then a fallback.
    pub dbus_activatable: bool,
    /// Whether what `TryExec` names is there.
    pub installed: bool,
    /// What `TryExec` names.
    pub try_exec: Option<String>,
    /// The class that its windows have.
    pub startup_wm_class: Option<String>,
    /// Name or path of the icon.
    pub icon: Option<String>,
    /// The menu categories.
    pub categories: Vec<String>,
    /// The desktops whose menus it is in; all but those of `not_show_in` if empty.
    pub only_show_in: Vec<String>,
    /// The desktops whose menus it is not in.
    pub not_show_in: Vec<String>,
    /// The working directory it is to be started in.
    pub working_dir: Option<PathBuf>,
}

/// An entry that cannot be started as it stands.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// Started over the bus only.
    #[error(
        "{} has no Exec line, it is started over D-Bus only; give its program as a command instead",
        path.display()
    )]
    BusOnly {
        /// The entry.
        path: PathBuf,
    },
    /// No `Exec` at all.
    #[error("{} has no usable Exec line; reinstall the package it belongs to", path.display())]
    NoExec {
        /// The entry.
        path: PathBuf,
    },
    /// `Exec` breaks the rules.
    #[error("{}: {source}; correct a copy of it in ~/.local/share/applications", path.display())]
    Invalid {
        /// The entry.
        path: PathBuf,
        /// How.
        source: ExecError,
    },
}

impl Entry {
    /// Reads a file. `Ok(None)`: it says to take the application as not there, or is no application (a link, say).
    pub(super) fn read(
        id: String,
        file: &Path,
        locale: &Locale,
        path: &[PathBuf],
    ) -> Result<Option<Self>, String> {
        let bytes = foreign_file::read(file, MAX_LENGTH).map_err(|e| e.to_string())?;
        let group = Group::parse(&bytes).ok_or("no [Desktop Entry] group")?;
        if group.flag("Hidden") || group.raw("Type").is_some_and(|kind| kind != "Application") {
            return Ok(None);
        }
        let plain_name = group.string("Name").ok_or("no Name")?;
        let try_exec = group.string("TryExec");
        Ok(Some(Self {
            name: group.localised("Name", locale.tags()).unwrap_or_else(|| plain_name.clone()),
            plain_name,
            exec: group.string("Exec"),
            no_display: group.flag("NoDisplay"),
            terminal: group.flag("Terminal"),
            dbus_activatable: group.flag("DBusActivatable"),
            installed: try_exec.as_deref().is_none_or(|program| can_execute(program, path)),
            try_exec,
            startup_wm_class: group.string("StartupWMClass"),
            icon: group.localised("Icon", locale.tags()),
            categories: group.list("Categories"),
            only_show_in: group.list("OnlyShowIn"),
            not_show_in: group.list("NotShowIn"),
            working_dir: group.string("Path").map(PathBuf::from),
            path: file.to_path_buf(),
            id,
        }))
    }

    /// The identity of the application.
    #[must_use]
    pub fn app_id(&self) -> AppId {
        AppId(self.id.clone())
    }

    /// The program and its arguments, with no file to open. The program is as in the file: a path, or a name for
    /// [`crate::watch::command::resolve`].
    ///
    /// # Errors
    ///
    /// If the entry has no `Exec` or one that breaks the rules.
    pub fn command(&self) -> Result<Vec<OsString>, CommandError> {
        let path = || self.path.clone();
        let Some(exec) = &self.exec else {
            let bus = self.dbus_activatable;
            return Err(if bus {
                CommandError::BusOnly { path: path() }
            } else {
                CommandError::NoExec { path: path() }
            });
        };
        let fields = Fields { icon: self.icon.as_deref(), name: &self.name, location: self.path.as_os_str() };
        exec::arguments(exec, fields).map_err(|source| CommandError::Invalid { path: path(), source })
    }

    /// The file name of the program, behind `env` and its variables, and within Flatpak or Snap.
    #[must_use]
    pub fn program(&self) -> Option<String> {
        let args = self.command().ok()?;
        let words: Vec<&str> = args.iter().filter_map(|arg| arg.to_str()).collect();
        let base = |word: &str| word.rsplit('/').next().map(str::to_owned);
        let mut words = words.into_iter();
        let first = base(words.next()?)?;
        match first.as_str() {
            "env" => words.find(|word| !word.contains('=') && !word.starts_with('-')).and_then(base),
            "flatpak" => words.find_map(|word| word.strip_prefix("--command=")).and_then(base),
            "snap" => words.filter(|word| !word.starts_with('-')).nth(1).and_then(base),
            _ => Some(first),
        }
    }

    /// Whether a menu of this desktop (`$XDG_CURRENT_DESKTOP`, a list with colons) shows it.
    #[must_use]
    pub fn shown_in(&self, current_desktop: Option<&OsStr>) -> bool {
        if self.no_display {
            return false;
        }
        let desktops = current_desktop.and_then(OsStr::to_str).unwrap_or_default();
        for desktop in desktops.split(':').filter(|name| !name.is_empty()) {
            if self.only_show_in.iter().any(|name| name == desktop) {
                return true;
            }
            if self.not_show_in.iter().any(|name| name == desktop) {
                return false;
            }
        }
        self.only_show_in.is_empty()
    }
}

fn can_execute(program: &str, path: &[PathBuf]) -> bool {
    let file = Path::new(program);
    if file.is_absolute() {
        return in_path(file.as_os_str(), &[PathBuf::from("/")]).is_some();
    }
    in_path(file.as_os_str(), path).is_some()
}
