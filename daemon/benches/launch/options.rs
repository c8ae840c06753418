//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::apps::App;
use crate::drive::parameters::Kind;

/// Time starts of real applications on simulated drives: cold, cold with Headstart, and warm.
///
/// The first run builds an image with the applications (once; some minutes, 2 GB in the cache directory).
#[derive(Clone, Debug, Parser)]
#[expect(clippy::struct_excessive_bools, reason = "switches of a command line")]
#[command(name = "cargo bench -p headstart-daemon --bench launch --", version)]
pub(crate) struct Options {
    /// The drives to simulate.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Kind::ALL)]
    pub drives: Vec<Kind>,
    /// The applications to start.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = App::ALL)]
    pub apps: Vec<App>,
    /// Rounds of each comparison.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// How the caches are emptied before a cold start.
    #[arg(long, value_enum, default_value_t = Cold::Drop)]
    pub cold: Cold,
    /// Time cold and warm starts without any part of Headstart as well.
    #[arg(long)]
    pub cross_check: bool,
    /// Measure as well what recording costs a cold start.
    #[arg(long)]
    pub recording_cost: bool,
    /// Time cold starts with ureadahead as well, if it is installed.
    #[arg(long)]
    pub replayer: bool,
    /// Leave out the comparison itself (with --cross-check, --replayer or --recording-cost).
    #[arg(long)]
    pub no_comparison: bool,

    /// Order and pace of the prefetch, as JSON, instead of what suits the drive.
    #[arg(long, value_name = "JSON")]
    pub tuning: Option<String>,
    /// Check the wiring in less than a minute: the host's Python on a small image, on the hard disk.
    #[arg(long, conflicts_with_all = ["drives", "apps"])]
    pub quick: bool,
    /// Hold the simulated drives against their models, and do nothing else.
    #[arg(long, conflicts_with_all = ["quick", "serve", "cross_check", "recording_cost"])]
    pub calibrate: bool,
    /// Keep one drive with the image and a screen up, to try things by hand, until interrupted.
    #[arg(long, value_name = "DRIVE", conflicts_with_all = ["quick", "cross_check", "recording_cost"])]
    pub serve: Option<Kind>,
    /// Build the image anew.
    #[arg(long)]
    pub rebuild_image: bool,
    /// The program to measure.
    #[arg(long, default_value = env!("CARGO_BIN_EXE_headstartctl"))]
    pub headstartctl: PathBuf,
    /// Where `launch.json` and `launch.md` go.
    #[arg(long, default_value_os_t = default_output())]
    pub output: PathBuf,
    /// Passed by `cargo bench`; without it, as in `cargo test --benches`, nothing is measured.
    #[arg(long, hide = true)]
    pub bench: bool,
}

/// How the caches are emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cold {
    /// The caches of the whole machine.
    Drop,
    /// Only what belongs to the application.
    Evict,
}

impl Options {
    /// Options of `headstartctl try` on this drive. It is told the drive's class, which a loop device does not show.
    pub(crate) fn try_options(&self, drive: Kind) -> Vec<String> {
        let mut options = vec!["--drive".to_owned(), drive.to_string()];
        options.extend(self.recording_cost.then(|| "--time-recording".to_owned()));
        if let Some(tuning) = &self.tuning {
            options.extend(["--tuning".to_owned(), tuning.clone()]);
        }
        options
    }
}

impl Cold {
    /// The word that `headstartctl try --cold` wants.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Drop => "drop",
            Self::Evict => "evict",
        }
    }
}

fn default_output() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    target.unwrap_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target"))).join("bench")
}
