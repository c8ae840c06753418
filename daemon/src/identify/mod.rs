//! Which app a started program is.
//!
//! ```text
//! desktop entries ──> Installed ──> Index ──────────┐
//! /proc/PID ────────────────────> Facts ──> decide ──> Decision
//! ```
//!
//! The deciding is pure; [`Installed::read`] and [`Facts::read`] are the only ones that read files.

mod command;
pub mod decide;
pub mod facts;
mod find;
pub mod index;
pub mod installed;
pub mod read;
pub mod rule;
mod shell;
pub mod unit;

pub use decide::{Decision, Reason, decide, same_launch};
pub use facts::{Ancestor, Facts, Hints, Image};
pub use index::{Index, Meant};
pub use installed::{App, Installed, Places, Program};
pub use read::await_exec;
