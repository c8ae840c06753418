//! Finding an application by what a person types.

use strsim::{damerau_levenshtein, jaro_winkler};

use super::{Catalogue, Entry};
use crate::watch::command::did_you_mean;

/// No application, or more than one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    /// None.
    #[error("no installed application is called {name:?}{}", did_you_mean(near))]
    NotFound {
        /// What was asked for.
        name: String,
        /// IDs and names like it.
        near: Vec<String>,
    },
    /// There is one, but its program is missing.
    #[error(
        "{id} is not installed: its desktop entry is there, but {try_exec} is not; install its package again"
    )]
    NotInstalled {
        /// The application.
        id: String,
        /// The program that is missing.
        try_exec: String,
    },
    /// More than one.
    #[error("{name:?} can be any of {}; give one of these", candidates.join(", "))]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// The IDs that fit.
        candidates: Vec<String>,
    },
}

/// A way in which an entry can be meant.
type Rule = fn(&Entry, &str) -> bool;

/// The ways, the most exact first: the first in which any entry fits decides.
const RULES: [Rule; 5] = [
    |entry, name| entry.id == name,
    |entry, name| same(&entry.id, name),
    |entry, name| entry.id.rsplit('.').next().is_some_and(|last| same(last, name)),
    |entry, name| same(&entry.name, name) || same(&entry.plain_name, name),
    |entry, name| entry.program().is_some_and(|program| same(&program, name)),
];

fn same(a: &str, b: &str) -> bool {
    a.to_lowercase() == b.to_lowercase()
}

impl Catalogue {
    /// The application that `name` means: its ID with or without `.desktop`, the last part of the ID, its name in the
    /// person's language or without, or the file name of its program; all but the exact ID in any case.
    ///
    /// # Errors
    ///
    /// If none fits (with near matches), its program is missing, or several fit equally well.
    pub fn find(&self, name: &str) -> Result<&Entry, FindError> {
        let wanted = name.strip_suffix(".desktop").unwrap_or(name);
        for rule in RULES {
            let all: Vec<&Entry> = self.entries().filter(|entry| rule(entry, wanted)).collect();
            if all.is_empty() {
                continue;
            }
            let installed: Vec<&Entry> = all.iter().copied().filter(|e| e.installed).collect();
            return match installed.as_slice() {
                [] => Err(not_installed(all[0])),
                [one] => Ok(one),
                several => one_in_menus(several).ok_or_else(|| ambiguous(name, several)),
            };
        }
        let known = self.entries().flat_map(|e| [e.id.as_str(), e.name.as_str(), e.plain_name.as_str()]);
        Err(FindError::NotFound { name: name.to_owned(), near: near_matches(wanted, known) })
    }
}

fn not_installed(entry: &Entry) -> FindError {
    let try_exec = entry.try_exec.clone().unwrap_or_default();
    FindError::NotInstalled { id: entry.id.clone(), try_exec }
}

fn ambiguous(name: &str, several: &[&Entry]) -> FindError {
    let candidates = several.iter().map(|entry| entry.id.clone()).collect();
    FindError::Ambiguous { name: name.to_owned(), candidates }
}

/// Of several, the only one that menus show: helpers of the same program are not what is meant.
fn one_in_menus<'a>(several: &[&'a Entry]) -> Option<&'a Entry> {
    let mut shown = several.iter().filter(|entry| !entry.no_display);
    match (shown.next(), shown.next()) {
        (Some(one), None) => Some(one),
        _ => None,
    }
}

/// At most five of `known` that are like `name`, the most alike first.
pub(crate) fn near_matches<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    let wanted = name.to_lowercase();
    let mut scored: Vec<(f64, &str)> = known
        .filter_map(|candidate| likeness(&wanted, &candidate.to_lowercase()).map(|s| (s, candidate)))
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    scored.dedup_by(|a, b| a.1 == b.1);
    scored.into_iter().take(5).map(|(_, candidate)| candidate.to_owned()).collect()
}

/// How alike two names are, from 0 to 2; `None` if not enough to be worth a mention.
fn likeness(wanted: &str, candidate: &str) -> Option<f64> {
    let last = candidate.rsplit('.').next().unwrap_or(candidate);
    if wanted.len() >= 3 && candidate.contains(wanted) {
        return Some(1.0 + jaro_winkler(wanted, candidate));
    }
    let near = |other: &str| {
        let edits = damerau_levenshtein(wanted, other);
        (edits <= 1.max(wanted.chars().count() / 3)).then(|| jaro_winkler(wanted, other))
    };
    near(candidate).into_iter().chain(near(last)).reduce(f64::max)
}
