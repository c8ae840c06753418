//! What the service costs and how soon it acts, with the real daemon on a bus of its own:
//!
//! ```text
//! cargo bench -p headstart-daemon --bench service -- --help
//! ```
//!
//! Needs root and `dbus-daemon`. Nothing of an installed Headstart is touched.

mod apps;
mod bus;
mod daemon;
#[path = "../history/fill.rs"]
mod fill;
mod idle;
mod kill;
mod reaction;
mod soak;
mod spread;
mod start;
mod storm;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::{Parser, ValueEnum};

/// Measure how soon the service acts, and what it costs.
#[derive(Clone, Debug, Parser)]
#[command(name = "cargo bench -p headstart-daemon --bench service --", version)]
struct Options {
    /// What to measure.
    #[arg(value_enum, default_values_t = [Part::Reaction, Part::Storm, Part::Idle, Part::Start, Part::Kill])]
    parts: Vec<Part>,
    /// Check the wiring in a minute or so, rather than measure.
    #[arg(long)]
    quick: bool,
    /// Minutes that the soak takes.
    #[arg(long, default_value_t = 60)]
    minutes: u64,
    /// Passed by `cargo bench`; without it, as in `cargo test --benches`, nothing is measured.
    #[arg(long, hide = true)]
    bench: bool,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// From a program's exec to the first read ahead for it.
    Reaction,
    /// A thousand starts a second of an app that is prefetched.
    Storm,
    /// Processor, memory and wake-ups while nothing starts.
    Idle,
    /// From the daemon's exec to its answer, with a history of five years.
    Start,
    /// `kill -9` at random moments while programs start.
    Kill,
    /// Everything at once for an hour: launches, upgrades, memory pressure, a disk that fills.
    Soak,
}

impl Part {
    /// Measures it, prints it, and tells whether it is within its bounds.
    fn run(self, options: &Options) -> Result<bool> {
        let quick = options.quick;
        match self {
            Self::Reaction => reaction::measure(if quick { 10 } else { 300 }),
            Self::Storm => {
                storm::measure(Duration::from_secs(if quick { 1 } else { 10 }), if quick { 1 } else { 6 })
            }
            Self::Idle => idle::measure(Duration::from_secs(if quick { 5 } else { 600 })),
            Self::Start => start::measure(if quick { 1_000 } else { 100_000 }),
            Self::Kill => kill::measure(if quick { 5 } else { 200 }),
            Self::Soak => soak::measure(Duration::from_secs(if quick { 20 } else { options.minutes * 60 })),
        }
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    if !options.bench && std::env::args_os().len() == 1 {
        println!("Nothing is measured unless asked for: cargo bench --bench service -- --help");
        return ExitCode::SUCCESS;
    }
    match run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<bool> {
    ensure!(rustix::process::geteuid().is_root(), "the service runs as root, and so does this");
    let mut all = true;
    for part in &options.parts {
        println!("\n## {part:?}");
        let within = part.run(options)?;
        println!("{}", if within { "within its bounds" } else { "OUT OF ITS BOUNDS" });
        // What is out of bounds in a few quick runs says nothing.
        all &= within || options.quick;
    }
    Ok(all)
}
