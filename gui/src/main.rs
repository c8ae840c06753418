//! Headstart’s window.
fn main() {}
