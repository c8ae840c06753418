//! Kernel interfaces that need `unsafe`, one file each, with its SAFETY notes and its own tests.

pub mod spawn;
