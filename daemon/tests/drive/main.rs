//! The simulated drive: its model, and the drive itself on the real kernel.

#[path = "../../benches/drive/mod.rs"]
#[allow(dead_code, unreachable_pub, reason = "the benchmark uses all of it")]
mod drive;
mod model;
mod real;
