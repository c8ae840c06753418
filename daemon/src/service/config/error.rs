//! What can be wrong with a configuration, in words that name the place and the cure.

use std::io;
use std::path::PathBuf;

use super::place::Place;
use crate::profile::atomic::WriteError;

/// Why a configuration is not used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {}: {source}; correct that, or move the file away for the defaults", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The kernel's word.
        source: io::Error,
    },
    /// Something in it is wrong.
    #[error("{}:{flaw}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What and where.
        flaw: Flaw,
    },
    /// It cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// It was written, and is not as readable as before.
    #[error(
        "{} was written, but its owner and mode could not be kept: {source}; set them with chown and chmod",
        path.display()
    )]
    Keep {
        /// The file.
        path: PathBuf,
        /// The kernel's word.
        source: io::Error,
    },
}

/// What is wrong and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct Flaw {
    /// The line and column.
    pub place: Place,
    /// What.
    pub problem: Problem,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The text is no TOML.
    #[error("{0}; correct this line, 'headstartctl config --default' prints a file that is right")]
    Syntax(String),
    /// No such group.
    #[error("there is no group [{name}]{}; remove it", mean(suggestion.as_deref()))]
    UnknownGroup {
        /// Its name.
        name: String,
        /// One like it.
        suggestion: Option<String>,
    },
    /// No such key.
    #[error("there is no key {name}{}; remove it", mean(suggestion.as_deref()))]
    UnknownKey {
        /// Its name, with the group's.
        name: String,
        /// One like it.
        suggestion: Option<String>,
    },
    /// A value that the key cannot have.
    #[error("{key} is {found}, but must be {wanted}")]
    Value {
        /// The key, with its group.
        key: &'static str,
        /// What is there.
        found: String,
        /// What may be there.
        wanted: &'static str,
    },
}

fn mean(suggestion: Option<&str>) -> String {
    suggestion.map(|name| format!(", did you mean {name}?")).unwrap_or_default()
}
