//! The service: the pipeline at work all day, and what it answers on the bus.

pub mod config;
pub mod launches;
pub mod mailbox;
pub mod messages;
