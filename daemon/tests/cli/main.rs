//! What `headstartctl` does with bad input and in bad places: a clear word, a non-zero exit, and nothing left behind.
//!
//! Every test runs the real program on the real kernel, with a state folder, home and screen of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod interrupt;
mod outputs;
mod profiles;
mod programs;
mod replaced;
mod rights;
mod room;
mod support;
