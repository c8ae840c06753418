//! What is compared: an installed application, or a command.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use headstart_shared::run::AppId;

use crate::watch::command;
use crate::watch::desktop::dirs::application_dirs;
use crate::watch::desktop::locale::Locale;
use crate::watch::desktop::{Catalogue, CommandError, Entry, FindError};
use crate::watch::launch::Command;
use crate::watch::milestone::{Hints, has_display};
use crate::watch::session::Session;

/// What a person asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// An application by a name or ID.
    App(String),
    /// A command with its arguments.
    Command(Vec<OsString>),
    /// Whatever suits: an installed application if there is a display to see it on, else a command-line program.
    Any,
}

/// Nothing that can be started.
#[derive(Debug, thiserror::Error)]
pub enum SubjectError {
    /// No such application.
    #[error("{0}\nfor a command put -- before it: headstartctl try -- COMMAND")]
    Find(#[from] FindError),
    /// Its desktop entry is no good.
    #[error(transparent)]
    Entry(#[from] CommandError),
    /// No such command.
    #[error(transparent)]
    Command(#[from] command::Error),
    /// The entry has no command line.
    #[error("{} gives no command to run", .0.display())]
    Empty(PathBuf),
    /// Nothing is installed that could be tried.
    #[error(
        "found neither a desktop application nor a program to try; name one: headstartctl try -- COMMAND"
    )]
    Nothing,
}

/// What is started, ready to be started.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The app.
    pub app: AppId,
    /// Its name for people.
    pub name: String,
    /// The program, absolute.
    pub program: PathBuf,
    /// All arguments, the name of the program first.
    pub args: Vec<OsString>,
    /// Whether it is a desktop application, of which a window can be expected.
    pub desktop: bool,
    /// Where it is to be started, if that is said.
    pub cwd: Option<PathBuf>,
    /// What its windows and instances are known by.
    pub hints: Hints,
}

/// Command-line programs that read enough at their start to show something, for a machine without a desktop.
const WITHOUT_DESKTOP: [&[&str]; 5] = [
    &["python3", "-c", "import json, email, http.client, xml.dom.minidom, asyncio, sqlite3"],
    &["perl", "-MPOSIX", "-MIO::Socket", "-MData::Dumper", "-e", "1"],
    &["git", "--version"],
    &["bash", "-c", "true"],
    &["ls", "/"],
];

impl Subject {
    /// Finds what was asked for, among what the person of `session` has installed.
    ///
    /// # Errors
    /// When there is no such thing, with near matches, or it cannot be started as it stands.
    pub fn find(request: &Request, session: &Session) -> Result<Self, SubjectError> {
        match request {
            Request::App(name) => Self::of_entry(catalogue(session).find(name)?, session),
            Request::Command(words) => Self::of_command(words, session),
            Request::Any => Self::any(session),
        }
    }

    fn any(session: &Session) -> Result<Self, SubjectError> {
        if has_display(session)
            && let Some(entry) = catalogue(session).suggest()
        {
            return Self::of_entry(entry, session);
        }
        let path = session.search_path();
        let words = WITHOUT_DESKTOP
            .iter()
            .find(|words| words.first().is_some_and(|word| command::in_path(word.as_ref(), &path).is_some()))
            .ok_or(SubjectError::Nothing)?;
        Self::of_command(&words.iter().map(OsString::from).collect::<Vec<_>>(), session)
    }

    fn of_entry(entry: &Entry, session: &Session) -> Result<Self, SubjectError> {
        let args = entry.command()?;
        let first = args.first().ok_or_else(|| SubjectError::Empty(entry.path.clone()))?;
        let program = command::resolve(first, &session.search_path(), &session.home)?;
        Ok(Self {
            app: entry.app_id(),
            name: entry.name.clone(),
            desktop: !entry.terminal,
            cwd: entry.working_dir.clone(),
            hints: Hints::of(Some(entry), &program),
            program,
            args,
        })
    }

    fn of_command(words: &[OsString], session: &Session) -> Result<Self, SubjectError> {
        let first = words.first().ok_or(command::Error::Empty)?;
        let here = std::env::current_dir().unwrap_or_else(|_| session.home.clone());
        let program = command::resolve(first, &session.search_path(), &here)?;
        let name: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        Ok(Self {
            app: command::app_id(&program),
            name: name.join(" "),
            desktop: false,
            cwd: None,
            hints: Hints::of(None, &program),
            program,
            args: words.to_vec(),
        })
    }

    /// The command that starts it as the person of `session` would.
    #[must_use]
    pub fn command(&self, session: &Session) -> Command {
        let mut command = Command::new(session, self.program.clone(), self.args.clone());
        command.cwd.clone_from(&self.cwd);
        command
    }
}

/// All applications that the person has installed.
#[must_use]
pub fn catalogue(session: &Session) -> Catalogue {
    let dirs = application_dirs(&session.env, &session.home);
    Catalogue::load(&dirs, &Locale::from_env(&session.env), &session.search_path())
}

/// The ID of an app that may not be installed any more but has a profile: an application, or a command's path.
#[must_use]
pub fn app_id(name: &str, session: &Session) -> AppId {
    if let Ok(entry) = catalogue(session).find(name) {
        return entry.app_id();
    }
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    match command::resolve(Path::new(name).as_os_str(), &session.search_path(), &here) {
        Ok(program) => command::app_id(&program),
        Err(_) => AppId(name.strip_suffix(".desktop").unwrap_or(name).to_owned()),
    }
}
