//! The catalogue of installed applications: desktop entries by ID, as the Desktop Entry Specification has it.
//!
//! Invariants: an ID is listed once, from the first folder that has it; an entry with `Hidden=true` is listed nowhere
//! and still masks those behind it; `NoDisplay=true` keeps an entry out of menus, not out of the catalogue.
//! Everything is given, the folders, the language and `$PATH`; the environment is read in [`dirs::application_dirs`] and
//! [`locale::Locale::from_env`] only.

pub mod dirs;
mod entry;
pub mod exec;
mod find;
pub mod locale;
mod parse;
mod suggest;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub use entry::{CommandError, Entry};
pub use find::FindError;
pub(crate) use find::near_matches;
use locale::Locale;

/// The installed applications.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    entries: BTreeMap<String, Entry>,
    problems: Vec<Problem>,
    path: Vec<PathBuf>,
}

/// A file or folder that could not be used.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct Problem {
    /// The file or folder.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

impl Catalogue {
    /// Reads the `applications` folders, the one that wins first. What is missing is skipped; what cannot be read or
    /// understood is listed in [`Catalogue::problems`]: one bad file never hides the others.
    #[must_use]
    pub fn load(dirs: &[PathBuf], locale: &Locale, path: &[PathBuf]) -> Self {
        let mut catalogue = Self { path: path.to_vec(), ..Self::default() };
        let mut taken = BTreeSet::new();
        for dir in dirs {
            catalogue.load_dir(dir, locale, &mut taken);
        }
        catalogue
    }

    fn load_dir(&mut self, dir: &Path, locale: &Locale, taken: &mut BTreeSet<String>) {
        let mut files = Vec::new();
        if let Err(source) = collect(dir, 0, &mut files)
            && source.kind() != io::ErrorKind::NotFound
        {
            self.problems.push(Problem { path: dir.to_path_buf(), reason: source.to_string() });
        }
        // Sorted, so that of `a-b.desktop` and `a/b.desktop`, which the specification leaves open, always the same wins.
        files.sort_unstable();
        for file in files {
            let id = id_of(dir, &file);
            if !taken.insert(id.clone()) {
                continue;
            }
            match Entry::read(id, &file, locale, &self.path) {
                Ok(Some(entry)) => {
                    self.entries.insert(entry.id.clone(), entry);
                }
                Ok(None) => {}
                Err(reason) => self.problems.push(Problem { path: file, reason }),
            }
        }
    }

    /// All entries, by ID.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// The entry with this exact ID, without `.desktop`.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&Entry> {
        self.entries.get(id)
    }

    /// What could not be used.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

/// `*.desktop` below `dir`. Depth is bounded: a link to a folder above would lead in circles.
fn collect(dir: &Path, depth: u32, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new("desktop")) {
            files.push(path);
        } else if depth < 4 && path.is_dir() {
            // A folder below that cannot be read hides its own entries only.
            let _ = collect(&path, depth + 1, files);
        }
    }
    Ok(())
}

/// The path below the folder with `/` as `-`, without `.desktop`.
fn id_of(dir: &Path, file: &Path) -> String {
    let below = file.strip_prefix(dir).unwrap_or(file).as_os_str().as_bytes();
    let stem = below.strip_suffix(b".desktop").unwrap_or(below);
    let dashed: Vec<u8> = stem.iter().map(|&b| if b == b'/' { b'-' } else { b }).collect();
    super::command::app_id(Path::new(OsStr::from_bytes(&dashed))).0
}

#[cfg(test)]
mod tests;
