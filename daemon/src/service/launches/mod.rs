//! The launches that go on: noticed, read ahead or held out, watched, learned from and accounted for.
//!
//! ```text
//! kernel: exec ──> work ──> begin ──> going (a thread each) ──> archive (one thread) ──> history
//! bus: requests ──┘  ^        who, how cold, what to do             store, learn, judge      │
//!                    └───────────────────── what has changed <────────────────────────────────┘
//! ```
//!
//! One thread waits for the kernel's start events and for requests. Nothing on the way from a start event to its first read
//! waits for a drive, a database or a thread that does.

pub mod advance;
pub mod apps;
pub mod archive;
mod begin;
pub mod decide;
pub mod going;
pub mod layout;
pub mod notes;
pub mod pausing;
mod sessions;
pub mod table;
mod work;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc;

use self::archive::{Archive, Settings};
use self::notes::Notes;
use self::work::{Inside, Work};
use super::config::Config;
use super::log::{Level, log};
use super::mailbox::{Mailbox, mailbox};
use super::messages::{Notice, SharedFigures};
use crate::mounts::MountsError;
use crate::roots::Roots;
use crate::store::{Store, StoreError};
use crate::watch::changes::ChangesError;
use crate::watch::execs::ExecsError;

/// What the launches work with.
pub struct Inputs {
    /// Where the kernel's file systems are.
    pub roots: Roots,
    /// The folder of the history.
    pub state_dir: PathBuf,
    /// A folder that a boot empties, for what a killed daemon leaves to the next one.
    pub runtime_dir: PathBuf,
    /// The configuration to begin with.
    pub config: Arc<Config>,
    /// What they are told.
    pub mailbox: Mailbox,
    /// Takes what they tell. It never waits.
    pub notices: Box<dyn Fn(Notice) + Send + Sync>,
    /// Told now and then that the loop goes on, at least every 10 s: for the watchdog.
    pub alive: Box<dyn Fn() + Send>,
    /// What they count.
    pub figures: SharedFigures,
}

impl std::fmt::Debug for Inputs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inputs").field("state_dir", &self.state_dir).finish_non_exhaustive()
    }
}

/// Why the launches cannot be watched at all. What goes wrong later is told as activity.
#[derive(Debug, thiserror::Error)]
pub enum LaunchesError {
    /// The history cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Programs cannot be watched.
    #[error(transparent)]
    Execs(#[from] ExecsError),
    /// Changes of files and mounts cannot be watched.
    #[error(transparent)]
    Changes(#[from] ChangesError),
    /// The table of mounts cannot be read.
    #[error(transparent)]
    Mounts(#[from] MountsError),
    /// No descriptor or thread is to be had.
    #[error("cannot begin to watch for starts: {0}; are processes or open files limited here?")]
    Resources(#[source] std::io::Error),
}

/// Watches for launches until it is told to stop.
///
/// # Errors
/// When it cannot begin. Afterwards whatever goes wrong concerns one launch, and is told.
pub fn run(inputs: Inputs) -> Result<(), LaunchesError> {
    let Inputs { roots, state_dir, runtime_dir, config, mailbox: requests, notices, alive, figures } = inputs;
    let notes = Notes::open(&runtime_dir.join("launches"));
    let notes = notes.inspect_err(|error| log(Level::Warning, error)).ok();
    let store = Store::open(&state_dir)?.store;
    let archive_store = Store::open(&state_dir)?.store;
    let (inside, messages) = mailbox::<Inside>().map_err(|e| LaunchesError::Resources(e.into()))?;
    let (jobs, queue) = mpsc::channel();
    let changed = {
        let inside = inside.clone();
        move |uid, app| {
            inside.send(Inside::Changed(uid, app));
        }
    };
    std::thread::scope(|scope| {
        let (notices, roots, changed, notes) = (&*notices, &roots, &changed, notes.as_ref());
        let settings = Settings::from(&*config);
        std::thread::Builder::new()
            .name("archive".into())
            .spawn_scoped(scope, move || {
                let backlog = VecDeque::new();
                let mut archive = Archive {
                    roots,
                    store: archive_store,
                    settings,
                    notices,
                    changed,
                    backlog,
                    failing: false,
                };
                archive.take_over(notes);
                archive.run(&queue);
            })
            .map_err(LaunchesError::Resources)?;
        Work::new(scope, roots, store, notes, config, jobs, inside, notices, figures)?
            .run(&requests, &messages, &*alive);
        Ok(())
    })
}

impl From<&Config> for Settings {
    fn from(config: &Config) -> Self {
        Self { learn: config.learn, retention: config.retention }
    }
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
