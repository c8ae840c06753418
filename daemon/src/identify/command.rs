//! Which files a command executes, seen through all that stands between a desktop entry and the program: `env`, `sh -c`,
//! wrapper scripts, sandboxes, interpreters.
//!
//! A program that many share (an interpreter, `flatpak`, `snap`, `busybox`) means an app only together with its
//! arguments or the name it is called by. A shell, and what only starts something else, is never watched.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::find::{Finder, Found};
use super::installed::Program;
use super::rule::Rule;
use super::shell;
use crate::sys::foreign_file;
use crate::watch::processes::is_interpreter_name;

/// Programs that start the one that is named after their own options, and are gone or do nothing afterwards.
const STARTERS: [&str; 18] = [
    "env",
    "nice",
    "ionice",
    "chrt",
    "taskset",
    "nohup",
    "setsid",
    "setarch",
    "stdbuf",
    "gamemoderun",
    "mangohud",
    "prime-run",
    "optirun",
    "primusrun",
    "firejail",
    "padsp",
    "dbus-launch",
    "dbus-run-session",
];
/// Programs that start the named one as another user: then it is not an app of this one.
const ELEVATORS: [&str; 7] = ["sudo", "su", "doas", "pkexec", "gksu", "gksudo", "kdesu"];
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "ash"];
/// Further programs that run what they are given, besides those of [`is_interpreter_name`].
const RUNNERS: [&str; 12] = [
    "electron",
    "wine",
    "lua",
    "php",
    "gjs-console",
    "cjs",
    "qml",
    "qmlscene",
    "guile",
    "tclsh",
    "wish",
    "pypy",
];
/// Programs that do different things by the name they are called by.
const MANY_IN_ONE: [&str; 4] = ["busybox", "toybox", "coreutils", "snap"];
/// The longest script that is looked into, in bytes. Longer ones are no mere wrappers.
const LONGEST_WRAPPER: u64 = 64 << 10;
/// Wrappers within wrappers.
const DEEPEST: u32 = 4;

/// What a command means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Meaning {
    /// The programs that it executes, each of which means the app.
    pub(super) programs: Vec<Program>,
    /// The Flatpak that it runs.
    pub(super) flatpak: Option<String>,
    /// The snap that it runs, as `NAME` or `NAME.APP`.
    pub(super) snap: Option<String>,
    /// What it asks the bus for.
    pub(super) bus_name: Option<String>,
}

/// What a command means: a program and its arguments.
pub(super) fn meaning(argv: &[OsString], finder: &Finder) -> Meaning {
    let mut meaning = Meaning::default();
    Reader { finder, meaning: &mut meaning }.command(argv, DEEPEST);
    meaning
}

struct Reader<'a> {
    finder: &'a Finder,
    meaning: &'a mut Meaning,
}

impl Reader<'_> {
    fn command(&mut self, argv: &[OsString], depth: u32) {
        let Some((program, arguments)) = argv.split_first() else { return };
        let Some(depth) = depth.checked_sub(1) else { return };
        let name = Path::new(program).file_name().and_then(OsStr::to_str).unwrap_or_default();
        match name {
            name if STARTERS.contains(&name) => self.started(arguments, depth),
            name if ELEVATORS.contains(&name) => {}
            name if SHELLS.contains(&name) => self.shell(program, arguments, depth),
            "flatpak" => self.flatpak(program, arguments),
            "snap" if arguments.first().is_some_and(|a| a == "run") => self.snap_run(program, arguments),
            "gapplication" => {
                let id = arguments.iter().skip_while(|a| *a != "launch").nth(1);
                self.meaning.bus_name = id.and_then(|id| id.to_str()).map(str::to_owned);
            }
            _ => self.program(program, arguments, depth),
        }
    }

    /// The command behind a starter's options: the first word that is a program. What belongs to an option is none.
    fn started(&mut self, arguments: &[OsString], depth: u32) {
        let is_program = |word: &OsString| {
            let text = word.to_str().unwrap_or_default();
            !text.starts_with('-') && !text.contains('=') && self.finder.program(word).is_some()
        };
        if let Some(start) = arguments.iter().position(is_program) {
            self.command(&arguments[start..], depth);
        }
    }

    fn shell(&mut self, program: &OsStr, arguments: &[OsString], depth: u32) {
        let Some(first) = arguments.first() else { return self.program(program, arguments, depth) };
        // `-c`, also as the last of several options in one: `-lc`.
        let is_command = |a: &OsString| {
            a.to_str().is_some_and(|a| a.starts_with('-') && !a.starts_with("--") && a.ends_with('c'))
        };
        if let Some(at) = arguments.iter().position(is_command) {
            if let Some(text) = arguments.get(at + 1).and_then(|text| text.to_str()) {
                self.script_text(text, depth);
            }
        } else {
            // `sh FILE`: the shell is not watched, what the file executes is.
            self.wrapped(self.finder.file(Path::new(first), false).as_ref(), depth);
        }
    }

    /// What a text of commands executes in the end, if that is certain.
    fn script_text(&mut self, text: &str, depth: u32) {
        if let Some(last) = shell::last_command(text).filter(|last| last.certain) {
            self.command(&last.words(), depth);
        }
    }

    fn flatpak(&mut self, program: &OsStr, arguments: &[OsString]) {
        let mut words = arguments.iter().skip_while(|a| *a != "run").skip(1);
        let Some(id) = words.find(|a| a.to_str().is_some_and(|a| !a.starts_with('-'))) else { return };
        self.meaning.flatpak = id.to_str().map(str::to_owned);
        let rule = Rule { needed: vec!["run".into(), id.clone()], ..Rule::default() };
        self.push(self.finder.program(program), rule);
    }

    fn snap_run(&mut self, program: &OsStr, arguments: &[OsString]) {
        let mut words = arguments.iter().skip(1);
        let Some(name) = words.find(|a| a.to_str().is_some_and(|a| !a.starts_with('-'))) else { return };
        self.meaning.snap = name.to_str().map(str::to_owned);
        let rule = Rule { needed: vec!["run".into(), name.clone()], ..Rule::default() };
        self.push(self.finder.program(program), rule);
    }

    fn program(&mut self, program: &OsStr, arguments: &[OsString], depth: u32) {
        let Some(found) = self.finder.program(program) else { return };
        if found
            .names
            .iter()
            .any(|name| name.starts_with("/snap/bin") || name.starts_with("/var/lib/snapd/snap/bin"))
        {
            self.meaning.snap = file_name(&found.names[0]).and_then(|name| name.to_str()).map(str::to_owned);
        }
        let is_script = self.wrapped(Some(&found), depth);
        let real = file_name(found.real());
        let runs_others = !is_script
            && [file_name(&found.names[0]), real]
                .into_iter()
                .flatten()
                .any(|name| is_runner(&name.to_string_lossy()));
        let rule = if runs_others {
            self.script(arguments);
            Rule { needed: arguments.to_vec(), alone: arguments.is_empty(), ..Rule::default() }
        } else {
            let many = real.and_then(OsStr::to_str).is_some_and(|real| MANY_IN_ONE.contains(&real));
            let called = file_name(&found.names[0]).filter(|name| many && Some(*name) != real);
            Rule { called: called.map(OsStr::to_owned), usual: arguments.to_vec(), ..Rule::default() }
        };
        self.push(Some(found), rule);
    }

    /// The script that an interpreter is given, which may also be executed by itself.
    fn script(&mut self, arguments: &[OsString]) {
        let mut paths = arguments.iter().map(Path::new).filter(|path| path.is_absolute());
        let found = paths.find_map(|path| self.finder.file(path, true));
        self.push(found, Rule::default());
    }

    /// What a wrapper script executes in the end. Gives whether it is a script at all.
    fn wrapped(&mut self, found: Option<&Found>, depth: u32) -> bool {
        let Some(found) = found.filter(|found| found.length <= LONGEST_WRAPPER) else { return false };
        let Ok(bytes) = foreign_file::read(found.real(), LONGEST_WRAPPER) else { return false };
        let Some(interpreter) = interpreter(&bytes) else { return false };
        let last = shell::last_command(&String::from_utf8_lossy(&bytes));
        if let Some(last) = last.filter(|_| SHELLS.contains(&interpreter.as_str())) {
            let before = self.meaning.programs.len();
            self.command(&last.words(), depth);
            // The last of several commands may be anything, as one that tidies up.
            if !last.certain {
                let added = self.meaning.programs.split_off(before);
                self.meaning.programs.extend(added.into_iter().filter(|program| is_related(found, program)));
            }
        }
        true
    }

    fn push(&mut self, found: Option<Found>, rule: Rule) {
        let Some(found) = found else { return };
        let real = found.real().to_path_buf();
        let program = Program { names: found.names, real, file: found.file, rule };
        if !self.meaning.programs.contains(&program) {
            self.meaning.programs.push(program);
        }
    }
}

fn file_name(path: &Path) -> Option<&OsStr> {
    path.file_name()
}

/// Whether a program runs what it is given.
fn is_runner(name: &str) -> bool {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    is_interpreter_name(name) || RUNNERS.contains(&plain)
}

/// Whether a program has the name of the script in its path: `firefox` and `/usr/lib/firefox/firefox-bin`.
fn is_related(script: &Found, program: &Program) -> bool {
    let stems = script.names.iter().filter_map(|name| name.file_stem()).filter_map(OsStr::to_str);
    let path = program.real.to_string_lossy();
    stems.filter(|stem| stem.len() > 2).any(|stem| path.contains(stem))
}

/// The file name of the interpreter that the first line of a script names, behind `env`.
fn interpreter(script: &[u8]) -> Option<String> {
    let line = script.strip_prefix(b"#!")?.split(|&b| b == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_ascii_whitespace().map(|word| word.rsplit('/').next().unwrap_or(word));
    let first = words.next()?;
    let name = if first == "env" {
        words.find(|word| !word.starts_with('-') && !word.contains('='))?
    } else {
        first
    };
    Some(name.to_owned())
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
