//! Headstart in a terminal: everything the window can do, for people and scripts.
//!
//! Figures go to standard output, all else to standard error. Exit status: 0 done, 1 failed, 2 wrong use, 130 stopped by
//! Ctrl-C.

mod args;
mod attempt;
mod documents;
mod files;
mod profiles;
mod progress;
mod report;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::CommandFactory as _;
use headstart_daemon::roots::Roots;
use headstart_daemon::watch::session::Session;

use args::{Cli, Command, PlanCommand, ProfileCommand};

/// The exit status of something stopped by Ctrl-C, as shells have it.
const INTERRUPTED: u8 = 130;

/// What every command needs to know.
struct Context {
    roots: Roots,
    session: Session,
    state_dir: std::path::PathBuf,
}

fn main() -> ExitCode {
    let cli = Cli::read(std::env::args_os()).unwrap_or_else(|error| error.exit());
    match run(cli) {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "headstartctl: {}", sentence(&error));
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.command {
        // Made when a package is built, where there may be neither a person nor a kernel to ask.
        Command::Completions { shell } => documents::completions(shell, &mut Cli::command())?,
        Command::Man { dir } => documents::man(&dir, Cli::command())?,
        command => {
            let roots = Roots::default();
            let session = Session::invoking(&roots)?;
            return carry_out(&command, &Context { roots, session, state_dir: cli.state_dir });
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn carry_out(command: &Command, context: &Context) -> anyhow::Result<ExitCode> {
    match command {
        Command::Try(options) => return attempt::run(options, context),
        Command::Profile(ProfileCommand::Show(options)) => profiles::show(options, context)?,
        Command::Profile(ProfileCommand::List(options)) => profiles::list(options, context)?,
        Command::Plan(PlanCommand::Show(options)) => profiles::plan(options, context)?,
        Command::Doctor(options) => return report::doctor(options, context),
        Command::Export(options) => profiles::export(options, context)?,
        Command::Import(options) => profiles::import(options, context)?,
        Command::Completions { .. } | Command::Man { .. } => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// An error with its causes, but for those that it names itself.
fn sentence(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |said, cause| match said.as_str() {
        "" => cause,
        known if known.contains(&cause) => said,
        known => format!("{known}: {cause}"),
    })
}

/// Whoever read our output has enough of it: no failure.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
