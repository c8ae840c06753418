//! Kernel interfaces that need `unsafe`, one file each, with its SAFETY notes and its own tests.

pub mod fiemap;
pub(crate) mod foreign_file;
pub mod handle;
pub mod identity;
pub mod ioprio;
pub mod readahead;
pub mod residency;

#[cfg(test)]
pub(crate) mod loop_images;
pub mod spawn;
#[cfg(test)]
pub(crate) mod touching;
