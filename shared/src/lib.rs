//! Headstart's vocabulary as types, its statistics and its charts.
//!
//! Everything here is pure: values in, values out. No file, socket or clock is touched, so the daemon, the
//! command line and the window all read the same figures and draw the same pictures.

#![forbid(unsafe_code)]

pub mod chart;
pub mod comparison;
mod report;
pub mod run;
pub mod sample;
pub mod stats;
pub mod summary;
pub mod text;
pub mod units;
pub mod words;
