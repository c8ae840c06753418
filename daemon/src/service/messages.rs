//! What the two halves of the service tell each other.
//!
//! ```text
//! bus (one thread, asynchronous) ── Request ──> launches (one thread, waits for starts)
//!                                <── Notice ──
//! ```
//!
//! Each has a connection of its own to the history. Whoever changes something there tells the other, which reads it again.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use chrono::{DateTime, Utc};
use headstart_shared::bus::PauseCode;
use headstart_shared::launch::Launch;
use headstart_shared::run::AppId;

use super::config::Config;
use super::launches::table::Counts;
pub use crate::observe::observer::Window;
use crate::store::Activity;

/// What the launches are told.
#[derive(Clone, Debug)]
pub enum Request {
    /// A session begins, or has changed.
    Session(Session),
    /// A session is over: its agent has left the bus.
    SessionOver {
        /// [`Session::client`].
        client: String,
    },
    /// A window became visible.
    Window(Window),
    /// A user's app, or all of them, was forgotten: the history has nothing of it any more.
    Forgotten {
        /// Whose.
        uid: u32,
        /// Which; all of the user's if `None`.
        app: Option<AppId>,
    },
    /// A policy was chosen for a user's app, or for all of them, and is in the history.
    AppChanged {
        /// Whose.
        uid: u32,
        /// Which; all of the user's if `None`.
        app: Option<AppId>,
    },
    /// A person wants nothing prefetched, until then or until further notice.
    Pause(Option<DateTime<Utc>>),
    /// A person wants it prefetched again.
    Resume,
    /// Another configuration is in force.
    Config(Arc<Config>),
    /// The service ends: finish what is going on as interrupted, and return.
    Stop,
}

/// A session, as its agent describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The agent's unique name on the bus.
    pub client: String,
    /// Whose it is, as the bus says.
    pub uid: u32,
    /// Folders with an `applications` folder, in order of precedence. Absolute.
    pub data_dirs: Vec<PathBuf>,
    /// Where programs are found. Absolute.
    pub path: Vec<PathBuf>,
    /// `XDG_CURRENT_DESKTOP`.
    pub desktop: Option<String>,
    /// Whether its agent sees windows at all.
    pub sees_windows: bool,
}

/// What the launches tell.
#[derive(Clone, Debug)]
pub enum Notice {
    /// A launch was stored.
    Launched {
        /// Whose.
        uid: u32,
        /// It, with its number.
        launch: Box<Launch>,
    },
    /// What the history says of an app has changed.
    AppChanged {
        /// Whose.
        uid: u32,
        /// Which.
        app: AppId,
    },
    /// Something was done, and is in the history.
    Activity {
        /// For whom; the machine if `None`.
        uid: Option<u32>,
        /// What, with its number.
        activity: Activity,
    },
    /// It is paused for another reason than before, or no more.
    Pause(Pause),
}

/// Whether and why nothing is prefetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Why.
    pub reason: PauseCode,
    /// Until when, if that is known.
    pub until: Option<DateTime<Utc>>,
}

impl Default for Pause {
    fn default() -> Self {
        Self { reason: PauseCode::NotPaused, until: None }
    }
}

/// What the launches count, for whoever asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Files whose execution is waited for.
    pub watched: u32,
    /// Apps that are prefetched at launch, of all users.
    pub prefetching: u32,
    /// Apps being learned.
    pub learning: u32,
    /// Start events lost since the service began.
    pub lost: u64,
    /// Starts seen since then, by what was done about them.
    pub starts: Counts,
    /// How launches are recorded; `None` if they cannot be.
    pub backend: Option<crate::recording::Backend>,
}

/// [`Figures`] that both halves hold.
pub type SharedFigures = Arc<Mutex<Figures>>;
