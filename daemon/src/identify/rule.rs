//! How the arguments of a process tell which of the apps that share a program it is. Pure.

use std::cmp::Reverse;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// What a call of a program must look like to mean an app.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// The name it is to be called by, as `busybox` and `snap` do different things by different names.
    pub called: Option<OsString>,
    /// Arguments that must be there, in this order: for a program that many apps share, such as an interpreter.
    pub needed: Vec<OsString>,
    /// Arguments that the app is normally started with: `--writer`. A person may leave them out.
    pub usual: Vec<OsString>,
    /// Without any argument: an interpreter as an app of its own.
    pub alone: bool,
}

/// A call of a program.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The name it was called by, then its arguments.
    pub argv: &'a [OsString],
    /// The working directory, against which relative arguments are understood.
    pub cwd: Option<&'a Path>,
}

/// How well a call fits a rule; the greatest fits best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// Usual arguments are missing, this many.
    Partly(Reverse<usize>),
    /// All needed and all usual arguments are there: this many, and called by the app's own name or not.
    Fully(usize, bool),
}

impl Rule {
    /// How well a call fits; `None` if it does not. `name` is the file name that the app calls the program by.
    #[must_use]
    pub fn fit(&self, call: Call<'_>, name: Option<&OsStr>) -> Option<Fit> {
        let called = call.argv.first().and_then(|first| Path::new(first).file_name());
        if self.called.as_deref().is_some_and(|wanted| called != Some(wanted)) {
            return None;
        }
        let arguments = call.argv.get(1..).unwrap_or_default();
        if self.alone && !arguments.is_empty() || missing(&self.needed, arguments, call.cwd) > 0 {
            return None;
        }
        match missing(&self.usual, arguments, call.cwd) {
            0 => Some(Fit::Fully(self.needed.len() + self.usual.len(), name.is_some() && called == name)),
            missing => Some(Fit::Partly(Reverse(missing))),
        }
    }
}

/// How many of `wanted` are not among `arguments` in their order.
fn missing(wanted: &[OsString], arguments: &[OsString], cwd: Option<&Path>) -> usize {
    let mut rest = arguments.iter();
    let mut found = 0;
    for wanted in wanted {
        let before = rest.clone();
        if rest.any(|argument| is_same(wanted, argument, cwd)) {
            found += 1;
        } else {
            rest = before;
        }
    }
    wanted.len() - found
}

/// Whether an argument is the wanted one, be it as a path relative to where the process is.
fn is_same(wanted: &OsStr, argument: &OsStr, cwd: Option<&Path>) -> bool {
    if wanted == argument {
        return true;
    }
    let (wanted, argument) = (Path::new(wanted), Path::new(argument));
    wanted.is_absolute() && !argument.is_absolute() && cwd.is_some_and(|cwd| cwd.join(argument) == wanted)
}

#[cfg(test)]
#[path = "rule_tests.rs"]
mod tests;
