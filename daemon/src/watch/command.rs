//! A plain command: found in the folders of `$PATH` of whoever asked, and known by its path.
//!
//! A script keeps its own path as identity, never its interpreter's: what `python3` needs says nothing about it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use headstart_shared::run::AppId;
use rustix::fs::{Access, access};

use super::desktop::near_matches;
use crate::path_text;

/// No such command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is in none of the folders.
    #[error("no command {} in {}{}", name.display(), show_path(path), did_you_mean(near))]
    NotFound {
        /// The name asked for.
        name: OsString,
        /// The folders that were searched.
        path: Vec<PathBuf>,
        /// Commands there with a similar name.
        near: Vec<String>,
    },
    /// There is such a file, but it is no program.
    #[error("{} cannot be executed: {why}", path.display())]
    NotExecutable {
        /// The file.
        path: PathBuf,
        /// Why, with the cure.
        why: &'static str,
    },
    /// The path leads nowhere.
    #[error("{}: {source}", path.display())]
    Unreachable {
        /// The path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// No command at all.
    #[error("no command given")]
    Empty,
}

fn show_path(path: &[PathBuf]) -> String {
    match path {
        [] => "an empty $PATH".to_owned(),
        dirs => dirs.iter().map(|dir| dir.to_string_lossy()).collect::<Vec<_>>().join(":"),
    }
}

/// `; did you mean A, B?`, or nothing.
pub(crate) fn did_you_mean(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(", ")) }
}

/// The absolute path of a command: looked up in `path` if it has no slash, else relative to `cwd`. Links are kept: a
/// program may behave by the name it is called by.
///
/// # Errors
///
/// If it is not there (with near matches) or cannot be executed.
pub fn resolve(name: &OsStr, path: &[PathBuf], cwd: &Path) -> Result<PathBuf, Error> {
    if name.is_empty() {
        return Err(Error::Empty);
    }
    if name.as_bytes().contains(&b'/') {
        let found = normal(&cwd.join(name));
        check(&found)?;
        return Ok(found);
    }
    if let Some(found) = in_path(name, path) {
        return Ok(found);
    }
    let near = near_matches(&name.to_string_lossy(), commands(path).iter().map(String::as_str));
    Err(Error::NotFound { name: name.to_owned(), path: path.to_vec(), near })
}

/// The first executable file of this name in the folders.
#[must_use]
pub fn in_path(name: &OsStr, path: &[PathBuf]) -> Option<PathBuf> {
    path.iter().map(|dir| dir.join(name)).find(|file| check(file).is_ok())
}

fn check(file: &Path) -> Result<(), Error> {
    let path = file.to_path_buf();
    let meta = match std::fs::metadata(file) {
        Ok(meta) => meta,
        Err(source) => return Err(Error::Unreachable { path, source }),
    };
    if !meta.is_file() {
        return Err(Error::NotExecutable { path, why: "it is not a regular file" });
    }
    // For root access(2) asks whether anybody may execute it, which is what is meant here.
    access(file, Access::EXEC_OK)
        .map_err(|_| Error::NotExecutable { path, why: "it lacks the execute permission (chmod +x)" })
}

/// Without `.` and doubled slashes. `..` stays: behind a link it is not what it looks like.
fn normal(path: &Path) -> PathBuf {
    path.components().collect()
}

fn commands(path: &[PathBuf]) -> Vec<String> {
    let mut names: Vec<String> = path
        .iter()
        .filter_map(|dir| std::fs::read_dir(dir).ok())
        .flat_map(|entries| entries.flatten().filter_map(|e| e.file_name().into_string().ok()))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The identity of a command: its path as text that can be shown and typed ([`path_text`]).
#[must_use]
pub fn app_id(path: &Path) -> AppId {
    AppId(path_text::to_text(path))
}

/// The path that [`app_id`] made an identity of. What is no such identity is taken for a path as it is.
#[must_use]
pub fn path_of(id: &AppId) -> PathBuf {
    path_text::from_text(&id.0).unwrap_or_else(|| PathBuf::from(&id.0))
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
