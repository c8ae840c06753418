//! The service: the pipeline at work all day, and what it answers on the bus.

pub mod authority;
pub mod bus;
pub mod config;
pub mod launches;
pub mod log;
pub mod mailbox;
pub mod messages;
