//! The D-Bus contract between the daemon, its clients and the agents of sessions.
//!
//! The bus is the system bus. The version number is in the service's name, the path and the interfaces; within a version
//! members are only added. Conventions:
//!
//! - What may grow is a dictionary (`a{sv}`): an absent key is not known, an unknown one is skipped.
//! - Enumerations are unsigned numbers, 0 for *unknown*, which is also what a reader makes of a number that it does not know.
//! - Times are nanoseconds (`t`), sizes bytes (`t`), dates milliseconds since 1970 in UTC (`x`), shares 0 to 1 (`d`).
//! - Words for people are never sent; the reader makes them, in its language.
//! - A large answer (a timeline) is a sealed memory file (`memfd_create(2)`) of JSON, passed as a descriptor.
//! - What belongs to a user is given to that user only: methods answer for the caller's uid, and signals that tell of
//!   apps go to the subscribers of that uid one by one, never to everybody.
//!
//! The daemon implements the interfaces; `data/dbus/*.xml` is their checked-in introspection, compared with both sides by
//! tests.

mod error;
pub mod names;
mod proxy;
mod types;

pub use error::BusError;
pub use proxy::{ManagerProxy, SessionProxy};
pub use types::*;
