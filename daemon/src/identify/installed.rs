//! What a session has installed: the programs that mean each of its apps, from the desktop entries in its folders.
//!
//! A few short reads for each app; none leads to a file system that can hang. What a person's own files say is only
//! taken for names of programs: it can make an app of theirs be mistaken for another of theirs, nothing else.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use headstart_shared::run::AppId;

use super::command::{Meaning, meaning};
use super::find::Finder;
use super::rule::Rule;
use crate::mounts::Mounts;
use crate::sys::foreign_file;
use crate::watch::desktop::dirs::SYSTEM_EXPORTS;
use crate::watch::desktop::locale::Locale;
use crate::watch::desktop::{Catalogue, Entry, Problem, exec};
use crate::watch::execs::FileId;

/// The longest service file of the bus that is read, in bytes.
const LONGEST_SERVICE: u64 = 64 << 10;

/// Where a session looks for what is installed.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    /// Folders with an `applications` folder, in order of precedence.
    pub data_dirs: &'a [PathBuf],
    /// Where programs are found.
    pub path: &'a [PathBuf],
}

/// A program that means an app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Every path that it has on the way through its links, the one in the entry first, the real one last.
    pub names: Vec<PathBuf>,
    /// The path without links: what is to be watched.
    pub real: PathBuf,
    /// Which file.
    pub file: FileId,
    /// What a call of it must look like.
    pub rule: Rule,
}

/// An installed app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct App {
    /// Its ID.
    pub id: AppId,
    /// Its name, without a language.
    pub name: String,
    /// Its desktop entry.
    pub entry: PathBuf,
    /// Whether menus show it.
    pub visible: bool,
    /// The programs that mean it; none if that cannot be told.
    pub programs: Vec<Program>,
    /// The name by which the bus starts it.
    pub bus_name: Option<String>,
    /// The Flatpak it is.
    pub flatpak: Option<String>,
    /// The snap it is, as `NAME` or `NAME.APP`.
    pub snap: Option<String>,
}

/// What is installed.
#[derive(Clone, Debug, Default)]
pub struct Installed {
    /// The apps, in order of precedence.
    pub apps: Vec<App>,
    /// Entries that could not be used.
    pub problems: Vec<Problem>,
}

impl Program {
    /// The file name that the app calls it by.
    #[must_use]
    pub fn called(&self) -> Option<&OsStr> {
        self.names.first().and_then(|name| name.file_name())
    }

    /// Whether it means the app only together with its arguments or the name it is called by.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.rule.alone || self.rule.called.is_some() || !self.rule.needed.is_empty()
    }
}

impl Installed {
    /// Reads what is installed for a session.
    #[must_use]
    pub fn read(places: Places<'_>, mounts: &Mounts) -> Self {
        let finder = Finder::new(places.path, mounts);
        let exports = SYSTEM_EXPORTS.map(PathBuf::from);
        let mut data_dirs: Vec<PathBuf> = Vec::new();
        for dir in places.data_dirs.iter().chain(&exports) {
            let dir: PathBuf = dir.components().collect();
            if !data_dirs.contains(&dir) && finder.reaches(&dir) {
                data_dirs.push(dir);
            }
        }
        let folders: Vec<PathBuf> = data_dirs.iter().map(|dir| dir.join("applications")).collect();
        let folders: Vec<PathBuf> = folders.into_iter().filter(|dir| finder.reaches(dir)).collect();
        let catalogue = Catalogue::load(&folders, &Locale::default(), finder.path());
        let place = |entry: &Entry| folders.iter().position(|dir| entry.path.starts_with(dir));
        let mut entries: Vec<&Entry> = catalogue.entries().filter(|entry| entry.installed).collect();
        entries.sort_by_key(|entry| place(entry));
        let reader = Reader { finder: &finder, data_dirs: &data_dirs };
        let mut apps: Vec<App> = entries.into_iter().map(|entry| reader.app(entry)).collect();
        reader.launchers(&mut apps);
        Self { apps, problems: catalogue.problems().to_vec() }
    }
}

struct Reader<'a> {
    finder: &'a Finder,
    data_dirs: &'a [PathBuf],
}

impl Reader<'_> {
    fn app(&self, entry: &Entry) -> App {
        let argv = entry.command().unwrap_or_default();
        let mut found = meaning(&argv, self.finder);
        let bus_name = found.bus_name.take().or_else(|| entry.dbus_activatable.then(|| entry.id.clone()));
        if let Some(service) = bus_name.as_deref().and_then(|name| self.service(name)) {
            add(&mut found, meaning(&service, self.finder));
        }
        // A command that cannot be seen through still says what it needs.
        if found.programs.is_empty()
            && let Some(program) = entry.try_exec.as_deref()
        {
            add(&mut found, meaning(&[OsString::from(program)], self.finder));
        }
        App {
            id: entry.app_id(),
            name: entry.plain_name.clone(),
            entry: entry.path.clone(),
            visible: !entry.no_display,
            programs: found.programs,
            bus_name,
            flatpak: found.flatpak,
            snap: found.snap,
        }
    }

    /// The command by which the bus starts this name.
    fn service(&self, name: &str) -> Option<Vec<OsString>> {
        // A name from a file of a person's: it must not lead out of the folder.
        if name.contains('/') {
            return None;
        }
        let files =
            self.data_dirs.iter().map(|dir| dir.join("dbus-1/services").join(format!("{name}.service")));
        let file = files.into_iter().find(|file| self.finder.reaches(file))?;
        let bytes = foreign_file::read(&file, LONGEST_SERVICE).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let mut lines = text.lines().map(str::trim).skip_while(|line| *line != "[D-BUS Service]").skip(1);
        let exec = lines
            .by_ref()
            .take_while(|line| !line.starts_with('['))
            .filter_map(|line| line.split_once('='))
            .find(|(key, _)| key.trim() == "Exec")?;
        // Quoted as in a shell, without field codes.
        let fields = exec::Fields { icon: None, name: "", location: OsStr::new("") };
        exec::arguments(&exec.1.trim().replace('%', "%%"), fields).ok()
    }

    /// Flatpak makes a command of each app, beside the entries that it exports.
    fn launchers(&self, apps: &mut [App]) {
        let ids: BTreeMap<String, usize> =
            apps.iter().enumerate().filter_map(|(a, app)| Some((app.flatpak.clone()?, a))).collect();
        for (id, a) in ids {
            let of_dir = |dir: &PathBuf| Some(dir.parent()?.join("bin").join(&id));
            let paths = self.data_dirs.iter().filter(|dir| dir.ends_with("exports/share")).filter_map(of_dir);
            for path in paths {
                let found = meaning(&[path.into_os_string()], self.finder);
                if let Some(app) = apps.get_mut(a) {
                    app.programs.extend(found.programs.into_iter().filter(|program| !program.is_shared()));
                }
            }
        }
    }
}

fn add(found: &mut Meaning, more: Meaning) {
    let new: Vec<Program> = more.programs.into_iter().filter(|p| !found.programs.contains(p)).collect();
    found.programs.extend(new);
    found.flatpak = found.flatpak.take().or(more.flatpak);
    found.snap = found.snap.take().or(more.snap);
}

#[cfg(test)]
#[path = "installed_tests.rs"]
mod tests;
