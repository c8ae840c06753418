//! Which app a program means: built once from what a session has installed, asked at every start. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use headstart_shared::run::AppId;

use super::facts::{Facts, Image};
use super::installed::{App, Installed, Program};
use super::rule::{Call, Fit};
use super::unit::{Kind, Unit};
use crate::watch::execs::FileId;

/// The installed apps of a session, by their programs.
#[derive(Clone, Debug, Default)]
pub struct Index {
    uid: u32,
    apps: Vec<App>,
    by_id: BTreeMap<AppId, usize>,
    /// The programs that a file may be: the app's and the program's place.
    by_file: HashMap<FileId, Vec<(usize, usize)>>,
    by_path: HashMap<PathBuf, Vec<(usize, usize)>>,
}

/// What a call of a program means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meant {
    /// The apps that it can mean, the likeliest first.
    pub apps: Vec<AppId>,
    /// Whether nothing tells the first from the second.
    pub ambiguous: bool,
}

impl Index {
    /// The index of what a user has installed.
    #[must_use]
    pub fn new(uid: u32, installed: Installed) -> Self {
        let mut index = Self { uid, apps: installed.apps, ..Self::default() };
        for (a, app) in index.apps.iter().enumerate() {
            index.by_id.entry(app.id.clone()).or_insert(a);
            for (p, program) in app.programs.iter().enumerate() {
                index.by_file.entry(program.file).or_default().push((a, p));
                for name in &program.names {
                    index.by_path.entry(name.clone()).or_default().push((a, p));
                }
            }
        }
        index
    }

    /// Whose it is.
    #[must_use]
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// All apps.
    pub fn apps(&self) -> impl Iterator<Item = &App> {
        self.apps.iter()
    }

    /// The app with this ID.
    #[must_use]
    pub fn app(&self, id: &AppId) -> Option<&App> {
        self.by_id.get(id).and_then(|&at| self.apps.get(at))
    }

    /// The files to be watched to see these apps start.
    #[must_use]
    pub fn files(&self, wanted: impl Fn(&AppId) -> bool) -> BTreeSet<PathBuf> {
        let apps = self.apps.iter().filter(|app| wanted(&app.id));
        apps.flat_map(|app| &app.programs).map(|program| program.real.clone()).collect()
    }

    /// The apps that a file may mean, in no order: what can be said when it is opened, before any argument is known.
    #[must_use]
    pub fn apps_of(&self, file: FileId) -> Vec<&AppId> {
        let programs = self.by_file.get(&file).into_iter().flatten();
        let ids: BTreeSet<&AppId> = programs.filter_map(|&(a, _)| Some(&self.apps.get(a)?.id)).collect();
        ids.into_iter().collect()
    }

    /// The one app that a file means whatever its arguments, if it is so.
    #[must_use]
    pub fn only_app_of(&self, file: FileId) -> Option<&AppId> {
        let places = self.by_file.get(&file)?;
        let depends = |&(a, p): &(usize, usize)| {
            self.apps.get(a).and_then(|app| app.programs.get(p)).is_none_or(Program::is_shared)
        };
        match self.apps_of(file).as_slice() {
            [one] if !places.iter().any(depends) => Some(one),
            _ => None,
        }
    }

    /// Whether a process with this image executes the file, or a program that means the same app.
    #[must_use]
    pub fn is_execution_of(&self, file: FileId, image: &Image) -> bool {
        if image.file == Some(file) {
            return true;
        }
        let programs = self.by_file.get(&file).into_iter().flatten();
        let mut names = programs
            .clone()
            .filter_map(|&(a, p)| self.apps.get(a)?.programs.get(p))
            .flat_map(|program| &program.names)
            .filter_map(|name| name.file_name());
        let interpreted = image.argv.iter().skip(1).take(2).filter_map(|arg| Path::new(arg).file_name());
        let of_image = image.file.and_then(|file| self.by_file.get(&file)).into_iter().flatten();
        let apps: BTreeSet<usize> = programs.clone().map(|&(a, _)| a).collect();
        let interpreted: Vec<_> = interpreted.collect();
        names.any(|name| interpreted.contains(&name)) || of_image.into_iter().any(|(a, _)| apps.contains(a))
    }

    /// What the call of a process means, by its program and arguments alone.
    #[must_use]
    pub fn meaning(&self, facts: &Facts) -> Meant {
        let files = [facts.image.file, facts.opened];
        self.meaning_of(&facts.image, files, facts.cwd.as_deref(), facts.foreign_root)
    }

    /// The same of an ancestor, of which less is known.
    #[must_use]
    pub fn meaning_of_image(&self, image: &Image) -> Meant {
        self.meaning_of(image, [image.file, None], None, false)
    }

    fn meaning_of(
        &self,
        image: &Image,
        files: [Option<FileId>; 2],
        cwd: Option<&Path>,
        foreign_root: bool,
    ) -> Meant {
        let mut places: BTreeSet<(usize, usize)> = BTreeSet::new();
        for file in files.into_iter().flatten() {
            places.extend(self.by_file.get(&file).into_iter().flatten());
        }
        if !foreign_root {
            // By the path too: the file may have been replaced since the index was made.
            let at = |path: &Path| self.by_path.get(path).into_iter().flatten();
            places.extend(image.exe.iter().flat_map(|exe| at(exe)));
            // The kernel puts the path of a script behind its interpreter, and one argument of the interpreter.
            for argument in image.argv.iter().skip(1).take(2) {
                let path = Path::new(argument);
                let path = cwd.map_or_else(|| path.to_path_buf(), |cwd| cwd.join(path));
                places.extend(at(&path));
            }
        }
        self.rank(places, Call { argv: &image.argv, cwd })
    }

    /// The apps of these programs that a call fits, best first: by the arguments, then what menus show, then the order of
    /// precedence.
    fn rank(&self, places: BTreeSet<(usize, usize)>, call: Call<'_>) -> Meant {
        let mut best: BTreeMap<usize, Fit> = BTreeMap::new();
        for (a, p) in places {
            let Some(program) = self.apps.get(a).and_then(|app| app.programs.get(p)) else { continue };
            let Some(fit) = program.rule.fit(call, program.called()) else { continue };
            best.entry(a).and_modify(|known| *known = fit.max(*known)).or_insert(fit);
        }
        let mut ranked: Vec<(Fit, bool, usize)> =
            best.into_iter().map(|(a, fit)| (fit, self.apps[a].visible, a)).collect();
        // The apps are in order of precedence.
        ranked.sort_by(|x, y| (y.0, y.1).cmp(&(x.0, x.1)).then(x.2.cmp(&y.2)));
        // Arguments that are left out tell nothing: `soffice FILE` is none of Writer and Calc.
        let ambiguous = match ranked.as_slice() {
            [(first @ Fit::Partly(_), shown, _), (second, also, _), ..] => first == second && shown == also,
            _ => false,
        };
        Meant { apps: ranked.into_iter().map(|(.., a)| self.apps[a].id.clone()).collect(), ambiguous }
    }

    /// The installed app that a unit is of.
    #[must_use]
    pub fn app_of_unit(&self, unit: &Unit) -> Option<&AppId> {
        let known = |id: &str| self.by_id.get_key_value(&AppId(id.to_owned())).map(|(id, _)| id);
        match unit.kind {
            Kind::Desktop => unit.ids.iter().find_map(|id| known(id)),
            Kind::Bus => unit.ids.iter().find_map(|id| {
                self.apps.iter().find(|app| app.bus_name.as_deref() == Some(id)).map(|app| &app.id)
            }),
            Kind::Flatpak => unit
                .ids
                .iter()
                .find_map(|id| self.app_of_flatpak(id))
                .or_else(|| unit.ids.iter().find_map(|id| known(id))),
            Kind::Snap => unit.ids.iter().find_map(|id| self.app_of_snap(id)),
        }
    }

    /// The installed app of a Flatpak; of several, the one of the same name or the first.
    #[must_use]
    pub fn app_of_flatpak(&self, id: &str) -> Option<&AppId> {
        let all = || self.apps.iter().filter(|app| app.flatpak.as_deref() == Some(id));
        all().find(|app| app.id.0 == id).or_else(|| all().next()).map(|app| &app.id)
    }

    /// The installed app of a snap, as `NAME` or `NAME.APP`; `NAME.NAME` is `NAME`.
    #[must_use]
    pub fn app_of_snap(&self, name: &str) -> Option<&AppId> {
        let short = match name.split_once('.') {
            Some((snap, app)) if snap == app => snap,
            _ => name,
        };
        self.apps.iter().find(|app| app.snap.as_deref() == Some(short)).map(|app| &app.id)
    }

    /// The installed app of a desktop entry.
    #[must_use]
    pub fn app_of_entry(&self, file: &Path) -> Option<&AppId> {
        self.apps.iter().find(|app| app.entry == file).map(|app| &app.id)
    }

    /// The installed app that is this `AppImage`.
    #[must_use]
    pub fn app_of_image(&self, file: &Path) -> Option<&AppId> {
        let places = self.by_path.get(file)?;
        places.first().and_then(|&(a, _)| self.apps.get(a)).map(|app| &app.id)
    }
}
