//! Which app a started process is. Pure.
//!
//! What is closest to the launch decides first: the unit that the desktop made for this very launch, the desktop entry
//! that this very process was started from, the sandbox it is in, and last its program and arguments. Units and
//! environments are inherited, so what is started in a terminal is in the terminal's: where the program is that of another
//! app, it is that app, however its unit is called.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use headstart_shared::run::AppId;

use super::facts::{Ancestor, Facts};
use super::index::{Index, Meant};

/// Why a process is no app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It runs as another user than the session's: a service, or with another's rights (`sudo`).
    OtherUser,
    /// It executes nothing: a thread of the kernel, or ending.
    NoProgram,
    /// Nothing that is installed means this program.
    Unknown,
    /// An app's program, with arguments that are no app's.
    OtherArguments,
    /// Several apps have this program, and nothing tells which it is.
    Ambiguous,
    /// It was only asked for its version or for help, or works without a window.
    OnlyAsked,
}

/// Which app a process is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// This one, and it starts here.
    App(AppId),
    /// A process of this one, which started before: its parent is it as well.
    Part(AppId),
    /// None.
    NotAnApp(Reason),
}

/// Decides.
#[must_use]
pub fn decide(facts: &Facts, index: &Index) -> Decision {
    if facts.uid != index.uid() {
        return Decision::NotAnApp(Reason::OtherUser);
    }
    if facts.image.exe.is_none() && facts.image.argv.is_empty() {
        return Decision::NotAnApp(Reason::NoProgram);
    }
    let meant = index.meaning(facts);
    let Some(app) = app_of(facts, index, &meant) else {
        let known = facts.image.file.is_some_and(|file| !index.apps_of(file).is_empty());
        return Decision::NotAnApp(match (meant.ambiguous, known) {
            (true, _) => Reason::Ambiguous,
            (false, true) => Reason::OtherArguments,
            (false, false) => Reason::Unknown,
        });
    };
    if is_part(facts, index, &app) {
        return Decision::Part(app);
    }
    if facts.image.argv.iter().skip(1).any(|argument| only_asks(argument)) {
        return Decision::NotAnApp(Reason::OnlyAsked);
    }
    Decision::App(app)
}

/// Whether a program that is given this argument shows no window.
fn only_asks(argument: &OsStr) -> bool {
    argument
        .to_str()
        .is_some_and(|a| matches!(a, "--help" | "--version" | "--headless") || a.starts_with("--headless="))
}

fn app_of(facts: &Facts, index: &Index, meant: &Meant) -> Option<AppId> {
    let fits = |app: &AppId| meant.apps.contains(app);
    let nothing_else = meant.apps.is_empty();
    if let Some(app) = facts.unit.as_ref().and_then(|unit| index.app_of_unit(unit)) {
        // What is not known to be another app is the unit's; and so is its first process, if nothing is known of what
        // the unit's app executes.
        let unknown = index.app(app).is_none_or(|app| app.programs.is_empty());
        let first = !facts.ancestors.iter().any(|ancestor| ancestor.unit == facts.unit);
        if fits(app) || nothing_else || (unknown && first) {
            return Some(app.clone());
        }
    }
    if let Some(app) = facts.hints.desktop_file.as_deref().and_then(|file| index.app_of_entry(file)) {
        let started = facts.hints.desktop_file_pid;
        if started == Some(facts.key.pid) || (fits(app) && is_below(facts, started)) {
            return Some(app.clone());
        }
    }
    if nothing_else {
        return from_sandbox(facts, index);
    }
    if meant.ambiguous { None } else { meant.apps.first().cloned() }
}

/// Whether a process of this number is among the ancestors.
fn is_below(facts: &Facts, pid: Option<i32>) -> bool {
    pid.is_some_and(|pid| facts.ancestors.iter().any(|ancestor| ancestor.key.pid == pid))
}

/// The app of the sandbox or image that a process with an unknown program is in.
fn from_sandbox(facts: &Facts, index: &Index) -> Option<AppId> {
    let hints = &facts.hints;
    let exe = facts.image.exe.as_deref().unwrap_or(Path::new(""));
    // Programs outside are handed the variables too.
    let flatpak = hints.flatpak.as_deref().filter(|_| facts.foreign_root || exe.starts_with("/app"));
    let snap = hints.snap.as_deref().filter(|_| exe.starts_with("/snap"));
    let image = hints.app_image.as_deref().filter(|_| exe.starts_with("/tmp"));
    flatpak
        .and_then(|id| index.app_of_flatpak(id))
        .or_else(|| snap.and_then(|name| index.app_of_snap(name)))
        .or_else(|| image.and_then(|file| index.app_of_image(file)))
        .cloned()
}

/// Whether the process belongs to an app that runs already: its parent is that app too, as with a browser's renderers.
/// Behind a shell it is a launch of its own: somebody typed it.
fn is_part(facts: &Facts, index: &Index, app: &AppId) -> bool {
    let of_parent = |parent: &Ancestor| {
        let meant = index.meaning_of_image(&parent.image);
        let by_program = meant.apps.contains(app);
        let by_unit = meant.apps.is_empty() && parent.unit.is_some() && parent.unit == facts.unit;
        by_program || by_unit
    };
    let in_sandbox =
        |argument: &OsString| argument.to_str().is_some_and(|argument| argument.starts_with("--parent-pid"));
    facts.ancestors.first().is_some_and(of_parent) || facts.image.argv.iter().any(in_sandbox)
}

/// Whether a process belongs to the launch whose first process is `first`: it is that very process, which has gone on to
/// execute another program, descends from it, or is in the unit that was made for it.
#[must_use]
pub fn same_launch(facts: &Facts, first: &Facts) -> bool {
    facts.uid == first.uid
        && (facts.key == first.key
            || facts.ancestors.iter().any(|ancestor| ancestor.key == first.key)
            || (facts.unit.is_some() && facts.unit == first.unit))
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
