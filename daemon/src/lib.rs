//! Headstart's pipeline, one module a stage, data flowing one way:
//!
//! ```text
//! kernel ──> watch ──> trace ──> learn ──> store ──> plan ──> replay ──> kernel
//!            who       what it   what it   history   in what  read it
//!            started   touched   needs               order    ahead
//!                                   └──> measure: was it worth it?
//! ```
//!
//! Parsing, aggregation, ordering and statistics are pure; files, sockets and clocks are at the edges. `sys` is the
//! only place with `unsafe`. Every kernel root is a parameter ([`roots::Roots`]), so a test can give a folder.

pub mod doctor;
pub mod drive;
pub mod identify;
pub mod learn;
pub mod measure;
pub mod mounts;
pub mod observe;
pub mod opening;
pub mod path_text;
pub mod plan;
pub mod profile;
pub mod recording;
pub mod replay;
pub mod roots;
pub mod service;
pub mod store;
pub mod sys;
pub mod trace;
pub mod watch;
