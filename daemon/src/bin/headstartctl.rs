//! Headstart in a terminal.
fn main() {}
