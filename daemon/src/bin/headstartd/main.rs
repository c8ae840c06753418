//! Headstart's service. It runs as root and is started by systemd, or by the bus when somebody asks for it.
//!
//! Exit status: 0 ended as asked, 1 failed, 2 wrong use. A mistake in the program (a panic, in whatever thread) aborts it at
//! once: systemd starts it again, and half a service would be worse than none.

mod launches;
mod serve;
mod watchdog;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{CommandFactory as _, Parser};
use headstart_daemon::service::config;
use headstart_daemon::service::log::{Level, log};

/// Headstart's service: watches applications start, learns what they read, and reads it ahead the next time
///
/// It is started by systemd ('systemctl enable --now headstart') and asked by headstartctl and the window. SIGHUP has it
/// read its configuration again; a wrong one leaves the old one in force.
#[derive(Debug, Parser)]
#[command(name = "headstartd", version)]
struct Args {
    /// Folder of the history
    #[arg(long, value_name = "DIR", default_value = "/var/lib/headstart")]
    state_dir: PathBuf,
    /// Folder for what the next service has to know if this one is killed
    #[arg(long, value_name = "DIR", default_value = "/run/headstart")]
    runtime_dir: PathBuf,
    /// Configuration file; without it every setting has its default
    #[arg(long, value_name = "FILE", default_value = config::FILE)]
    config: PathBuf,
    /// Address of the bus to answer on, instead of the system bus
    #[arg(long, value_name = "ADDRESS")]
    bus: Option<String>,
    /// Write the man page into this folder, and do nothing else
    #[arg(long, value_name = "DIR", hide = true)]
    man: Option<PathBuf>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = if let Some(dir) = &args.man {
        man(dir)
    } else {
        abort_on_panic();
        serve::serve(&args)
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log(Level::Error, format_args!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn abort_on_panic() {
    std::panic::set_hook(Box::new(|panic| {
        log(Level::Error, format_args!("a mistake in Headstart: {panic}; please report it"));
        std::process::abort();
    }));
}

/// Made when a package is built. Services are in section 8.
fn man(dir: &std::path::Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(dir).with_context(|| format!("cannot make the folder {}", dir.display()))?;
    let path = dir.join("headstartd.8");
    let mut page = Vec::new();
    clap_mangen::Man::new(Args::command()).section("8").render(&mut page)?;
    std::fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound_and_has_the_usual_places() {
        Args::command().debug_assert();
        let args = Args::parse_from(["headstartd"]);
        assert_eq!(args.config, PathBuf::from("/etc/headstart/config.toml"));
        assert_eq!((args.state_dir, args.bus), (PathBuf::from("/var/lib/headstart"), None));
    }
}
