//! Names on the bus and of polkit's actions.

/// The well-known name of the daemon.
pub const SERVICE: &str = "io.github.headstart_desktop.Headstart1";
/// The one object.
pub const PATH: &str = "/io/github/headstart_desktop/Headstart1";
/// The interface for clients.
pub const MANAGER: &str = "io.github.headstart_desktop.Headstart1.Manager";
/// The interface for the agents of sessions.
pub const SESSION: &str = "io.github.headstart_desktop.Headstart1.Session";

/// polkit's actions (data/polkit): each guards one kind of power.
pub mod action {
    /// Switching one's own apps, pausing, forgetting one's own history: the active session may.
    pub const MANAGE: &str = "io.github.headstart_desktop.Headstart1.manage-apps";
    /// Changing the configuration of the machine: an administrator.
    pub const CONFIGURE: &str = "io.github.headstart_desktop.Headstart1.configure";
    /// Seeing or forgetting what others started: an administrator.
    pub const OTHERS: &str = "io.github.headstart_desktop.Headstart1.others";
}
