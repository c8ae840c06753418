//! The service on the bus: what `headstart_shared::bus` says, answered from the history.
//!
//! Invariants: a caller's uid is the bus's word, and every answer and signal about apps is made for that uid alone; what
//! a caller names (folders, processes, texts) is checked before anything is done with it; whatever changes something is
//! allowed by [`super::authority`] first.
//!
//! ```text
//! manager, session ──> state ──> history (a connection of its own)
//!                        │  └──> launches (Request)
//!                        └──> notices ──> signals, one by one to the subscribers of a uid
//! ```

mod callers;
mod clients;
mod convert;
mod installed;
mod leaving;
mod manager;
mod memory_file;
mod notices;
mod session;
mod state;
mod status;

use std::path::PathBuf;
use std::sync::Arc;

use headstart_shared::bus::names;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use zbus::Connection;
use zbus::connection::Builder;
use zbus::fdo::{DBusProxy, RequestNameFlags, RequestNameReply};
use zbus::proxy::CacheProperties;

use super::config::{Config, ConfigError};
use super::mailbox::Sender;
use super::messages::{Notice, SharedFigures};
use crate::roots::Roots;
use crate::store::{Activity, Store};
use state::State;

/// What the bus works with.
#[derive(Debug)]
pub struct Inputs {
    /// Where the kernel's file systems are.
    pub roots: Roots,
    /// The history.
    pub store: Store,
    /// The configuration to begin with.
    pub config: Arc<Config>,
    /// Its file.
    pub config_path: PathBuf,
    /// Tells the launches.
    pub launches: Sender,
    /// What the launches tell.
    pub notices: Notices,
    /// What the launches count.
    pub figures: SharedFigures,
}

/// A way for notices, both ends of it.
#[derive(Debug)]
pub struct Notices {
    sender: UnboundedSender<Notice>,
    receiver: UnboundedReceiver<Notice>,
}

impl Notices {
    /// A new one.
    #[must_use]
    pub fn new() -> Self {
        let (sender, receiver) = unbounded_channel();
        Self { sender, receiver }
    }

    /// What tells. It never waits, and goes unheard once the bus has ended.
    pub fn tell(&self) -> impl Fn(Notice) + Send + 'static {
        let sender = self.sender.clone();
        move |notice| drop(sender.send(notice))
    }
}

impl Default for Notices {
    fn default() -> Self {
        Self::new()
    }
}

/// Why the service is not on the bus.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// There is no bus.
    #[error("cannot connect to the system bus: {0}; see whether dbus runs, or name another bus with --bus")]
    Connect(#[source] zbus::Error),
    /// The bus refuses the name, or does something unexpected.
    #[error(
        "the bus does not give the name {}: {source}; the bus policy (dbus-1/system.d) has to be installed and the service to run as root",
        names::SERVICE
    )]
    Name {
        /// The bus's word.
        source: zbus::Error,
    },
    /// Somebody else has the name.
    #[error("another headstartd has the name {} on this bus; stop it first", names::SERVICE)]
    Taken,
}

/// The service on the bus. Its tasks run on the Tokio runtime that it was made on, and end with it.
#[derive(Debug)]
pub struct Bus {
    connection: Connection,
    state: Arc<State>,
}

impl Bus {
    /// Connects and answers; the name is not taken yet. Without an address it is the system bus.
    ///
    /// # Errors
    /// There is no such bus.
    pub async fn connect(address: Option<&str>, inputs: Inputs) -> Result<Self, ServeError> {
        let (state, receiver) = State::new(inputs);
        let state = Arc::new(state);
        let builder = address.map_or_else(Builder::system, Builder::address);
        let connection = builder
            .serve_at(names::PATH, manager::Manager::new(Arc::clone(&state)))
            .serve_at(names::PATH, session::Session::new(Arc::clone(&state)))
            .build()
            .await
            .map_err(ServeError::Connect)?;
        let bus = DBusProxy::builder(&connection).cache_properties(CacheProperties::No).build();
        let bus = bus.await.map_err(ServeError::Connect)?;
        state.connected(bus);
        tokio::spawn(notices::pass_on(Arc::clone(&state), connection.clone(), receiver));
        Ok(Self { connection, state })
    }

    /// Takes the service's name: from now on it is found.
    ///
    /// # Errors
    /// The bus does not give it.
    pub async fn take_name(&self) -> Result<(), ServeError> {
        let flags = RequestNameFlags::DO_NOT_QUEUE;
        match self.connection.request_name_with_flags(names::SERVICE, flags).await {
            Ok(RequestNameReply::PrimaryOwner | RequestNameReply::AlreadyOwner) => Ok(()),
            Ok(_) | Err(zbus::Error::NameTaken) => Err(ServeError::Taken),
            Err(source) => Err(ServeError::Name { source }),
        }
    }

    /// Reads the configuration file again. A wrong one leaves the old one in force.
    ///
    /// # Errors
    /// What is wrong with it; it is in the list of what was done as well.
    pub fn reload(&self) -> Result<(), ConfigError> {
        self.state.reload()
    }

    /// Remembers something that was done, and tells who wants to know: for a user, or without one to the machine.
    pub fn note(&self, uid: Option<u32>, activity: Activity) {
        self.state.note(uid, activity);
    }

    /// Waits until the bus is gone.
    pub async fn closed(&self) {
        self.connection.closed().await;
    }
}
