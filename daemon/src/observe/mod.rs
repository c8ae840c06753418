//! One launch as it happens: how cold it began, what its processes use, when its milestones are, and what it touches.
//!
//! ```text
//! exec ──> temperature ──> usage, windows, recorder ──> settled ──> Observed
//!          what is cached   while it goes on             it is over
//! ```
//!
//! Nothing here holds a program or reads from a drive; a launch that is watched is as fast as one that is not, but for the
//! samples of its processes.

pub mod delays;
pub mod foreign;
pub mod observer;
pub mod temperature;
pub mod usage;
