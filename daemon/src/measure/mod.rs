//! Was it worth it? One app's starts compared: cold, cold with prefetch, and warm.
//!
//! ```text
//! subject ──> compare ──┬──> cold      caches emptied
//! what                  ├──> prefetch  the profile as a replay that waits for the start
//!                       └──> start     one start: launched, watched to its milestone, ended
//! ```
//!
//! The conditions alternate, in an order drawn anew for each round ([`schedule`]), so that whatever else the machine does
//! meets all of them alike. No timed start is recorded; recordings are made in starts of their own, before and after.

pub mod cold;
pub mod compare;
pub mod prefetch;
pub mod schedule;
pub mod start;
pub mod subject;
