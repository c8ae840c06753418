//! Launches, from the exec of an app's program to their place in the history.

pub mod advance;
pub mod decide;
pub mod table;
