//! What a run touched: page-cache events of its processes from the kernel's tracing ring buffer, with the names of
//! the files from fanotify.
//!
//! Data flows one way: [`tracefs`] sets up a private instance and [`pipes`] collects its raw pages while the run
//! goes on; afterwards [`ring`] splits the pages into events, [`event`] decodes those by the kernel's own
//! [`mod@format`] descriptions, [`touched`] folds them into page ranges, and [`names`] says which files these are.
//! Only [`recorder`] knows all of them. Nothing is decoded while the start is being timed.

pub mod backend;
pub mod event;
pub mod format;
pub mod names;
pub mod opens;
pub mod pipes;
pub mod recorder;
pub mod ring;
pub mod touched;
pub mod tracefs;
