//! What is started, and when its start is over.

use clap::ValueEnum;
use serde::Serialize;

/// A command inside a root.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// Its name in tables.
    pub name: String,
    /// The command, looked up in the root's `PATH`.
    pub command: Vec<String>,
    /// When its start is over.
    pub until: Until,
}

/// When a start is over.
#[derive(Clone, Debug)]
pub(crate) enum Until {
    /// The first window whose `WM_CLASS` contains this, in lower case, is mapped.
    Window(String),
    /// The command has ended.
    Exit,
}

/// An application in the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum App {
    /// LibreOffice Writer.
    Writer,
    /// GIMP.
    Gimp,
    /// gedit.
    Gedit,
    /// GNOME Calculator.
    Calculator,
}

impl App {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::Writer, Self::Gimp, Self::Gedit, Self::Calculator];

    /// How it is started.
    pub(crate) fn target(self) -> Target {
        let (name, class, command): (_, _, &[&str]) = match self {
            Self::Writer => ("writer", "libreoffice", &["soffice", "--writer", "--norestore", "--nologo"]),
            Self::Gimp => ("gimp", "gimp", &["gimp"]),
            Self::Gedit => ("gedit", "gedit", &["gedit"]),
            Self::Calculator => ("calculator", "gnome-calculator", &["gnome-calculator"]),
        };
        Target {
            name: name.to_owned(),
            command: command.iter().map(ToString::to_string).collect(),
            until: Until::Window(class.to_owned()),
        }
    }
}

/// The packages that bring the applications, and what a desktop would have installed with them.
pub(crate) const PACKAGES: [&str; 10] = [
    "libreoffice-writer",
    "libreoffice-gtk3",
    "gimp",
    "gedit",
    "gnome-calculator",
    "fonts-dejavu-core",
    "adwaita-icon-theme",
    "librsvg2-common",
    "python3",
    "dbus",
];
