//! The command line, from which help, man pages and completions are made.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand, ValueEnum};
use headstart_daemon::drive::Class;

/// Measures, learns and prefetches application starts.
#[derive(Debug, Parser)]
#[command(name = "headstartctl", version, about, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// Where profiles and results are kept
    #[arg(long, global = true, value_name = "DIR", env = "HEADSTART_STATE_DIR")]
    #[arg(default_value = "/var/lib/headstart", hide_env_values = true)]
    pub(crate) state_dir: PathBuf,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compare cold, prefetched and warm starts of an application or command
    ///
    /// Learns what the start reads, then times it in rounds: with empty caches, with empty caches and prefetch, and with
    /// everything in memory, in an order drawn anew for each round. The program is started as you, also under sudo, and is
    /// closed again each time.
    Try(Box<Try>),
    /// Look at what was learned
    #[command(subcommand)]
    Profile(ProfileCommand),
    /// Look at what would be read ahead, and in which order
    #[command(subcommand)]
    Plan(PlanCommand),
    /// Tell which kernel features are there, what is used instead of those that are not, and the cure
    Doctor(Doctor),
    /// Write a profile to a file
    Export(Export),
    /// Take a profile from a file
    Import(Import),
    /// Print completions for a shell
    #[command(hide = true)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages to a folder
    #[command(hide = true)]
    Man {
        /// The folder
        dir: PathBuf,
    },
}

/// Options of `try`.
#[derive(Debug, Args)]
pub(crate) struct Try {
    /// An installed application: its ID, name or program; without one, one that suits is picked
    #[arg(value_name = "APP", conflicts_with = "command")]
    pub(crate) app: Option<String>,

    /// A command with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,

    /// Rounds: each has one start of each condition
    #[arg(long, short = 'n', default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,

    /// How cold is made
    #[arg(long, value_enum, default_value_t = ColdArg::Evict)]
    pub(crate) cold: ColdArg,

    /// When a start counts as over
    #[arg(long, value_enum, default_value_t = UntilArg::Auto)]
    pub(crate) until: UntilArg,

    /// Runs to learn from before measuring
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=32))]
    pub(crate) learn: u32,

    /// Begin a new profile instead of going on from the known one
    #[arg(long)]
    pub(crate) relearn: bool,

    /// Seconds that one start may take
    #[arg(long, default_value_t = 60.0, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: f64,

    /// Milliseconds that the program is left alone once its start is over
    #[arg(long, default_value_t = 600, value_name = "MS")]
    pub(crate) linger: u64,

    /// Count a command that fails
    #[arg(long)]
    pub(crate) ignore_failure: bool,

    /// Also time cold starts while they are recorded, to see what recording costs
    #[arg(long)]
    pub(crate) time_recording: bool,

    /// Also take windows of this class for the program's own
    #[arg(long, value_name = "CLASS")]
    pub(crate) window_class: Option<String>,

    /// Set a variable in the program's environment
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) env: Vec<(OsString, OsString)>,

    /// Learn a command under this name instead of its program's path
    #[arg(long, value_name = "ID", requires = "command")]
    pub(crate) id: Option<String>,

    /// Plan as for a drive of this class: hdd, sata, nvme, emmc
    #[arg(long, value_name = "CLASS", value_parser = Class::from_str)]
    pub(crate) drive: Option<Class>,

    /// Order and pace of the prefetch, as JSON
    #[arg(long, value_name = "JSON", hide = true, value_parser = tuning)]
    pub(crate) tuning: Option<headstart_daemon::plan::Tuning>,

    /// Write the result as JSON to a file, or to standard output with -
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) json: Option<PathBuf>,

    /// Write the starts as CSV to a file, or to standard output with -
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) csv: Option<PathBuf>,

    /// Write a picture of the result
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

/// How cold is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColdArg {
    /// Only this program's files leave memory; kind to the rest of the system
    Evict,
    /// The whole machine's page cache, names and inodes are emptied
    Drop,
}

/// When a start counts as over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum UntilArg {
    /// The first window, or the exit of a command that shows none
    Auto,
    /// The first window
    Window,
    /// The exit
    Exit,
    /// Disk and processor quiet, no new pages
    Settled,
}

/// `profile …`
#[derive(Debug, Subcommand)]
pub(crate) enum ProfileCommand {
    /// Files, ranges, first need, and how many runs used each
    Show(ProfileShow),
    /// The apps that have a profile
    List(ProfileList),
}

/// Options of `profile show`.
#[derive(Debug, Args)]
pub(crate) struct ProfileShow {
    #[command(flatten)]
    pub(crate) which: Which,
    /// Each range, not only each file
    #[arg(long)]
    pub(crate) ranges: bool,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Options of `profile list`.
#[derive(Debug, Args)]
pub(crate) struct ProfileList {
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `plan …`
#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// The steps for each drive
    Show(PlanShow),
}

/// Options of `plan show`.
#[derive(Debug, Args)]
pub(crate) struct PlanShow {
    #[command(flatten)]
    pub(crate) which: Which,
    /// Plan as for a drive of this class: hdd, sata, nvme, emmc
    #[arg(long, value_name = "CLASS", value_parser = Class::from_str)]
    pub(crate) drive: Option<Class>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Whose profile: an app's, or one in a file.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Which {
    /// The application or command
    #[arg(value_name = "APP")]
    pub(crate) app: Option<String>,
    /// An exported profile
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

/// Options of `doctor`.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Options of `export`.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The application or command
    #[arg(value_name = "APP")]
    pub(crate) app: String,
    /// The file to write
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// Options of `import`.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// The file to read
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Only say what is in it
    #[arg(long)]
    pub(crate) check: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.1..=3600.0).contains(&value) => Ok(value),
        _ => Err("give seconds from 0.1 to 3600".into()),
    }
}

fn variable(text: &str) -> Result<(OsString, OsString), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("give NAME=VALUE".into()),
    }
}

fn tuning(text: &str) -> Result<headstart_daemon::plan::Tuning, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_command_comes_after_two_dashes() {
        let cli = Cli::parse_from(["headstartctl", "try", "-n", "3", "--json", "--", "ls", "--json", "/"]);
        let Command::Try(options) = cli.command else { panic!("another command") };
        assert_eq!(options.command, ["ls", "--json", "/"]);
        assert_eq!((options.rounds, options.json), (3, Some("-".into())));
        assert!(Cli::try_parse_from(["headstartctl", "try", "gimp", "--", "ls"]).is_err());
    }

    #[test]
    fn absurd_values_are_refused() {
        for words in [["-n", "0"], ["-n", "1001"], ["--timeout", "nan"], ["--timeout", "-1"], ["--env", "=x"]]
        {
            assert!(Cli::try_parse_from(["headstartctl", "try"].iter().chain(&words)).is_err(), "{words:?}");
        }
    }
}
