//! The launches that go on: noticed, read ahead or held out, watched, learned from and accounted for.
//!
//! One thread waits for the kernel's start events and for requests; each launch that is watched has a thread of its own
//! until it is over. Nothing on the way from a start event to its first read touches a drive.

pub mod advance;
pub mod decide;
pub mod table;

use std::path::PathBuf;
use std::sync::Arc;

use super::config::Config;
use super::mailbox::Mailbox;
use super::messages::{Notice, SharedFigures};
use crate::roots::Roots;
use crate::store::StoreError;

/// What the launches work with.
pub struct Inputs {
    /// Where the kernel's file systems are.
    pub roots: Roots,
    /// The folder of the history.
    pub state_dir: PathBuf,
    /// The configuration to begin with.
    pub config: Arc<Config>,
    /// What they are told.
    pub mailbox: Mailbox,
    /// Takes what they tell. It never waits.
    pub notices: Box<dyn Fn(Notice) + Send>,
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
}
