//! The command line, from which help, man pages and completions are made.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::builder::{NonEmptyStringValueParser, OsStringValueParser, TypedValueParser as _};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use headstart_daemon::drive::Class;

/// Learns what application starts read, reads it ahead, and measures what that gains
#[derive(Debug, Parser)]
#[command(name = "headstartctl", version, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// Where profiles and results are kept
    #[arg(long, global = true, value_name = "DIR", env = "HEADSTART_STATE_DIR")]
    #[arg(default_value = "/var/lib/headstart", hide_env_values = true)]
    pub(crate) state_dir: PathBuf,

    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Reads the command line.
    ///
    /// # Errors
    /// What clap says, and where two results would go to the same place.
    pub(crate) fn read(
        words: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    ) -> Result<Self, clap::Error> {
        let cli = Self::try_parse_from(words)?;
        let Command::Try(options) = &cli.command else { return Ok(cli) };
        match options.shared_output() {
            None => Ok(cli),
            Some(path) => {
                let place = if path == Path::new(STDOUT) {
                    "standard output".into()
                } else {
                    path.display().to_string()
                };
                let what =
                    format!("--json, --csv and --svg cannot share {place}: give each a file of its own\n");
                Err(Self::command().error(ErrorKind::ArgumentConflict, what))
            }
        }
    }
}

/// Stands for standard output.
pub(crate) const STDOUT: &str = "-";

impl Try {
    /// Where results go, beside the table.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = &Path> {
        [&self.json, &self.csv, &self.svg].into_iter().flatten().map(PathBuf::as_path)
    }

    fn shared_output(&self) -> Option<&Path> {
        let outputs: Vec<_> = self.outputs().collect();
        outputs.iter().enumerate().find_map(|(n, path)| outputs[..n].contains(path).then_some(*path))
    }
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
    #[arg(long, default_value_t = 600, value_name = "MS", value_parser = clap::value_parser!(u64).range(..=600_000))]
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
    #[arg(long, value_name = "NAME=VALUE", value_parser = OsStringValueParser::new().try_map(|text| variable(&text)))]
    pub(crate) env: Vec<(OsString, OsString)>,

    /// Learn a command under this name instead of its program's path
    #[arg(long, value_name = "ID", requires = "command", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) id: Option<String>,

    /// Plan as for a drive of this class: hdd, sata, nvme, emmc
    #[arg(long, value_name = "CLASS", value_parser = Class::from_str)]
    pub(crate) drive: Option<Class>,

    /// Order and pace of the prefetch, as JSON
    #[arg(long, value_name = "JSON", hide = true, value_parser = tuning)]
    pub(crate) tuning: Option<headstart_daemon::plan::Tuning>,

    /// Write the result as JSON to a file, or to standard output without one: --json=FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub(crate) json: Option<PathBuf>,

    /// Write the starts as CSV to a file, or to standard output without one: --csv=FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub(crate) csv: Option<PathBuf>,

    /// Write a picture of the result as SVG to a file, or to standard output with -
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

fn variable(text: &OsStr) -> Result<(OsString, OsString), &'static str> {
    let bytes = text.as_bytes();
    match bytes.iter().position(|byte| *byte == b'=') {
        None | Some(0) => Err("give NAME=VALUE"),
        Some(end) => {
            let part = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
            Ok((part(&bytes[..end]), part(&bytes[end + 1..])))
        }
    }
}

fn tuning(text: &str) -> Result<headstart_daemon::plan::Tuning, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Try, clap::Error> {
        let cli = Cli::read(["headstartctl", "try"].iter().chain(words))?;
        let Command::Try(options) = cli.command else { panic!("another command") };
        Ok(*options)
    }

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
    fn the_name_of_an_app_is_no_file_for_the_result() {
        let options = read(&["--json", "gimp"]).unwrap();
        assert_eq!((options.app.as_deref(), options.json), (Some("gimp"), Some(STDOUT.into())));
        let options = read(&["--csv=starts.csv", "--json=-", "gimp"]).unwrap();
        assert_eq!(options.app.as_deref(), Some("gimp"));
        assert_eq!((options.json, options.csv), (Some(STDOUT.into()), Some("starts.csv".into())));
        assert!(read(&["--json", "result.json", "gimp"]).is_err());
        assert!(read(&["--json", "result.json", "--", "ls"]).is_err());
    }

    #[test]
    fn two_results_cannot_go_to_one_place() {
        for words in [["--json", "--csv"], ["--csv=-", "--svg=-"], ["--json=x", "--svg=x"]] {
            let error = read(&words).unwrap_err();
            assert_eq!((error.kind(), error.exit_code()), (ErrorKind::ArgumentConflict, 2), "{words:?}");
            assert!(error.to_string().contains("a file of its own"), "{error}");
        }
        assert!(read(&["--json", "--csv=x", "--svg=y"]).is_ok());
    }

    #[test]
    fn a_variable_need_not_be_text() {
        let odd = OsStr::from_bytes(b"NAME=a=\xff");
        let value = OsStr::from_bytes(b"a=\xff").to_owned();
        assert_eq!(variable(odd), Ok(("NAME".into(), value)));
        assert!(variable(OsStr::new("NAME")).is_err());
    }

    #[test]
    fn absurd_values_are_refused() {
        for words in [
            ["-n", "0"],
            ["-n", "1001"],
            ["--timeout", "nan"],
            ["--timeout", "-1"],
            ["--env", "=x"],
            ["--linger", "600001"],
        ] {
            assert!(Cli::try_parse_from(["headstartctl", "try"].iter().chain(&words)).is_err(), "{words:?}");
        }
    }
}
