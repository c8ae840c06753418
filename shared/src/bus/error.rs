//! Errors on the bus.

use zbus::DBusError;

/// What the daemon answers when it cannot do what was asked.
#[derive(Debug, DBusError)]
#[zbus(prefix = "io.github.headstart_desktop.Headstart1.Error")]
pub enum BusError {
    /// Of the bus itself: no daemon, no reply.
    #[zbus(error)]
    ZBus(zbus::Error),
    /// No such app in the caller's history or among the installed ones.
    UnknownApp(String),
    /// No such launch, or its timeline is kept no longer.
    UnknownLaunch(String),
    /// polkit, or the lack of it, does not allow it. The text names the action.
    NotAuthorized(String),
    /// An argument is out of range; the text names it.
    InvalidArgument(String),
    /// A configuration that cannot be used; the text names the file, line and cure.
    InvalidConfig(String),
    /// The history cannot be read or written; the text names the file and the cure.
    Storage(String),
    /// A mistake in Headstart or a kernel that refuses.
    Failed(String),
}
