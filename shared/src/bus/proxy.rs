//! The client's side of the interfaces. The daemon's side is in its `service::bus`; a test compares both.

use zbus::fdo;
use zbus::wire::OwnedFd;

use super::BusError;
use super::types::{
    ActivityInfo, AppInfo, LaunchInfo, LaunchQuery, PolicyCode, SessionInfo, StatusInfo, WindowInfo,
};

/// What clients ask of the daemon. Unless said otherwise a method is about the caller's own apps and needs nothing.
#[zbus::proxy(
    interface = "io.github.headstart_desktop.Headstart1.Manager",
    default_service = "io.github.headstart_desktop.Headstart1",
    default_path = "/io/github/headstart_desktop/Headstart1"
)]
pub trait Manager {
    /// All apps that can be launched or have a history, by ID.
    fn list_apps(&self) -> Result<Vec<AppInfo>, BusError>;
    /// One app.
    fn get_app(&self, app: &str) -> Result<AppInfo, BusError>;
    /// Chooses what is done about an app (manage-apps).
    fn set_policy(&self, app: &str, policy: PolicyCode) -> Result<(), BusError>;
    /// Launches, the latest first.
    fn list_launches(&self, query: LaunchQuery) -> Result<Vec<LaunchInfo>, BusError>;
    /// A launch's timeline: JSON in a sealed memory file.
    fn get_timeline(&self, launch: u64) -> Result<OwnedFd, BusError>;
    /// An app's profile in the exchange format of `headstartctl export`: JSON in a sealed memory file.
    fn get_profile(&self, app: &str) -> Result<OwnedFd, BusError>;
    /// Forgets an app's history and profile, or all of the caller's with an empty ID (manage-apps). Gives the number of
    /// apps forgotten.
    fn forget(&self, app: &str) -> Result<u32, BusError>;
    /// Prefetches nothing for so many seconds, or with 0 until `resume` (manage-apps).
    fn pause(&self, seconds: u32) -> Result<(), BusError>;
    /// Ends a pause (manage-apps).
    fn resume(&self) -> Result<(), BusError>;
    /// What the daemon did, the latest first: `limit` entries at most, with numbers below `before` unless that is 0.
    fn list_activity(&self, before: u64, limit: u32) -> Result<Vec<ActivityInfo>, BusError>;
    /// The daemon's state and cost.
    fn get_status(&self) -> Result<StatusInfo, BusError>;
    /// The kernel features it needs, as JSON of `headstartctl doctor --json`.
    fn doctor(&self) -> Result<String, BusError>;
    /// The configuration in force, as TOML with every key.
    fn get_config(&self) -> Result<String, BusError>;
    /// Replaces the configuration by a TOML text, of which absent keys get their defaults (configure).
    fn set_config(&self, toml: &str) -> Result<(), BusError>;
    /// Reads the configuration file again (configure).
    fn reload(&self) -> Result<(), BusError>;
    /// From now on the signals about the caller's apps go to the caller, until it leaves the bus.
    fn subscribe(&self) -> Result<(), BusError>;

    /// An app has changed. To subscribers only.
    #[zbus(signal)]
    fn app_changed(&self, app: AppInfo) -> fdo::Result<()>;
    /// A launch was stored. To subscribers only.
    #[zbus(signal)]
    fn launched(&self, launch: LaunchInfo) -> fdo::Result<()>;
    /// Something was done. To subscribers only.
    #[zbus(signal)]
    fn activity_added(&self, activity: ActivityInfo) -> fdo::Result<()>;

    /// The daemon's version.
    #[zbus(property(emits_changed_signal = "const"))]
    fn version(&self) -> fdo::Result<String>;
    /// Whether and why nothing is prefetched, as a `PauseCode`.
    #[zbus(property)]
    fn pause_reason(&self) -> fdo::Result<u32>;
    /// Until when, in milliseconds since 1970; 0 if that is not known.
    #[zbus(property)]
    fn paused_until(&self) -> fdo::Result<i64>;
}

/// What the agent of a session tells the daemon.
#[zbus::proxy(
    interface = "io.github.headstart_desktop.Headstart1.Session",
    default_service = "io.github.headstart_desktop.Headstart1",
    default_path = "/io/github/headstart_desktop/Headstart1"
)]
pub trait Session {
    /// The agent's session begins or has changed; it ends when the agent leaves the bus.
    fn register(&self, session: SessionInfo) -> Result<(), BusError>;
    /// A window became visible.
    fn window_shown(&self, window: WindowInfo) -> Result<(), BusError>;
}
