//! Who is started, as whom, which processes belong to the run, and when a start is over.
//!
//! ```text
//! session ──> desktop / command ──> milestone::Watcher ──> launch ──> Watcher::wait ──> Run::end
//! who asks    what to run            what to wait for       the gate   when it was over  nothing left behind
//! ```
//!
//! A run is the descendants of its *keeper* ([`crate::sys::spawn`]), nothing else: so it is known without guessing what
//! to account, whose windows count and what to end. The start is one event ([`start::StartEvent`]) that the program's
//! own process gives right before it executes.

pub mod command;
pub mod desktop;
pub mod execs;
pub mod launch;
pub mod milestone;
mod output;
pub mod processes;
pub mod session;
pub mod start;
mod watched;

#[cfg(test)]
pub(crate) mod testing;
