//! What a run touched: page-cache events of its processes from the kernel's tracing ring buffer, with the names of
//! the files from fanotify.
//!
//! Data flows one way: [`tracefs`] sets up a private instance and [`pipes`] collects its raw pages while the run
//! goes on; afterwards [`decode`] has [`ring`] split the pages into events and [`event`] read those by the kernel's own
//! [`mod@format`] descriptions, [`touched`] folds them into page ranges, and [`names`] says which files these are, from
//! what [`opens`] heard.
//! Only [`recorder`] and its `assemble` know all of them. Nothing is decoded while the start is being timed.

mod assemble;
pub mod backend;
pub mod decode;
pub mod event;
pub mod format;
pub mod names;
mod namespaces;
pub mod opens;
pub mod pipes;
pub mod recorder;
pub mod ring;
pub mod touched;
pub mod tracefs;

#[cfg(test)]
mod tests;
