//! Headstart's vocabulary as types, its statistics and its charts.
//!
//! Everything here is pure: values in, values out. No file, socket or clock is touched, so the daemon, the
//! command line and the window all read the same figures and draw the same pictures.

#![forbid(unsafe_code)]

pub mod bus;
pub mod chart;
pub mod comparison;
pub mod launch;
pub mod policy;
mod report;
pub mod run;
pub mod sample;
pub mod stats;
pub mod summary;
pub mod text;
pub mod units;
pub mod verdict;
pub mod words;
