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
    /// It is a command.
    #[error("{0} is a command, not an application: headstartctl try -- {0}")]
    IsCommand(String),
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
            Request::App(name) => match catalogue(session).find(name) {
                Err(FindError::NotFound { .. }) if is_command(name, session) => {
                    Err(SubjectError::IsCommand(name.clone()))
                }
                found => Self::of_entry(found?, session),
            },
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

fn is_command(name: &str, session: &Session) -> bool {
    let here = std::env::current_dir().unwrap_or_else(|_| session.home.clone());
    command::resolve(name.as_ref(), &session.search_path(), &here).is_ok()
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::watch::testing::session;

    /// A person with nothing installed but what is put into this folder: programs in `bin`, entries in `applications`.
    struct Installed {
        folder: tempfile::TempDir,
        session: Session,
    }

    impl Installed {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let at = |name: &str| folder.path().join(name);
            for name in ["bin", "applications"] {
                fs::create_dir(at(name)).unwrap();
            }
            let mut session = session();
            session.home = at("home");
            let unset = [
                "DISPLAY",
                "WAYLAND_DISPLAY",
                "XDG_CURRENT_DESKTOP",
                "LANG",
                "LC_ALL",
                "LC_MESSAGES",
                "LANGUAGE",
            ];
            for name in unset {
                session.env.remove(&OsString::from(name));
            }
            session.env.insert("PATH".into(), at("bin").into());
            session.env.insert("XDG_DATA_HOME".into(), folder.path().into());
            session.env.insert("XDG_DATA_DIRS".into(), at("nothing").into());
            Self { folder, session }
        }

        fn program(&self, name: &str) -> PathBuf {
            let path = self.folder.path().join("bin").join(name);
            fs::write(&path, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path
        }

        fn entry(&self, name: &str, lines: &str) {
            let text = format!("[Desktop Entry]\nType=Application\n{lines}\n");
            fs::write(self.folder.path().join("applications").join(name), text).unwrap();
        }

        fn find(&self, request: &Request) -> Result<Subject, SubjectError> {
            Subject::find(request, &self.session)
        }
    }

    fn command(words: &[&str]) -> Request {
        Request::Command(words.iter().map(OsString::from).collect())
    }

    #[test]
    fn an_application_is_found_by_id_and_started_as_its_entry_says() {
        let installed = Installed::new();
        let program = installed.program("painter");
        installed.entry("org.example.Painter.desktop", "Name=Painter\nExec=painter --new %U\nPath=/tmp");
        let subject = installed.find(&Request::App("org.example.Painter".into())).unwrap();
        assert_eq!((subject.name.as_str(), &subject.program), ("Painter", &program));
        assert_eq!(subject.args, ["painter", "--new"]);
        assert!(subject.desktop && subject.cwd == Some("/tmp".into()));
        assert_eq!(subject.app, app_id("Painter", &installed.session));
        assert_eq!(subject.command(&installed.session).cwd, Some("/tmp".into()));
    }

    #[test]
    fn a_program_for_a_terminal_has_no_window_to_wait_for() {
        let installed = Installed::new();
        installed.program("top");
        installed.entry("top.desktop", "Name=Top\nExec=top\nTerminal=true");
        assert!(!installed.find(&Request::App("top".into())).unwrap().desktop);
    }

    #[test]
    fn a_command_is_known_by_its_path_and_named_as_it_was_given() {
        let installed = Installed::new();
        let program = installed.program("tool");
        let subject = installed.find(&command(&["tool", "-x", "a b"])).unwrap();
        assert_eq!((subject.name.as_str(), &subject.program), ("tool -x a b", &program));
        assert_eq!(subject.args, ["tool", "-x", "a b"]);
        assert!(!subject.desktop);
        assert_eq!(subject.app, app_id("tool", &installed.session));
    }

    #[test]
    fn without_a_display_a_command_line_program_is_tried() {
        let installed = Installed::new();
        installed.entry("painter.desktop", "Name=Painter\nExec=painter");
        installed.program("painter");
        assert!(matches!(installed.find(&Request::Any), Err(SubjectError::Nothing)));
        installed.program("ls");
        assert_eq!(installed.find(&Request::Any).unwrap().name, "ls /");
        installed.program("git");
        assert_eq!(installed.find(&Request::Any).unwrap().name, "git --version", "the one that reads more");
    }

    #[test]
    fn what_cannot_be_found_is_told_with_the_cure() {
        let installed = Installed::new();
        let error = installed.find(&Request::App("tool".into())).unwrap_err();
        assert!(error.to_string().contains("headstartctl try -- COMMAND"), "{error}");
        assert!(matches!(installed.find(&command(&["tool"])), Err(SubjectError::Command(_))));
        installed.program("tool");
        let error = installed.find(&Request::App("tool".into())).unwrap_err();
        assert_eq!(error.to_string(), "tool is a command, not an application: headstartctl try -- tool");
        assert!(matches!(installed.find(&command(&[])), Err(SubjectError::Command(_))));
    }

    #[test]
    fn an_app_that_is_not_installed_any_more_keeps_its_id() {
        let installed = Installed::new();
        let gone = |name| app_id(name, &installed.session).0;
        assert_eq!(gone("org.example.Gone"), "org.example.Gone");
        assert_eq!(gone("org.example.Gone.desktop"), "org.example.Gone");
    }
}
