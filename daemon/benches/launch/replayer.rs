//! A public tool in Headstart's place: `ureadahead`, which learns one start and reads it ahead at the next.
//!
//! It gets the same start to learn and is started in the same moment as the application. Of the filters it has, only
//! the file system is used: it is told to deal with the drive's and no other.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use headstart_shared::units::Nanos;

use crate::apps::Target;
use crate::mounts::Mounted;
use crate::process::{Interrupt, Running, bound};
use crate::session::time_start;
use crate::setup::Setup;

/// Where the tool keeps what it has learned; it cannot be told otherwise for a single file system.
const PACKS: &str = "/var/lib/ureadahead";
/// It tells nobody when its tracing has begun.
const TRACING_BEGINS: Duration = Duration::from_secs(1);
/// It walks the whole file system to give names to what it has seen.
const LEARNING_TAKES: Duration = Duration::from_mins(2);

/// The tool, if it is installed.
pub(crate) fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join("ureadahead")).find(|tool| tool.is_file())
}

/// Times `rounds` cold starts with the tool, after one from which it learns.
pub(crate) fn measure(
    tool: &Path,
    setup: &mut Setup,
    target: &Target,
    rounds: u32,
    interrupt: &Interrupt,
) -> Result<Vec<Nanos>> {
    std::fs::create_dir_all(PACKS).with_context(|| format!("cannot make {PACKS}"))?;
    let _packs = Mounted::memory(Path::new(PACKS))?;
    learn(tool, setup, target, interrupt)?;
    (0..rounds)
        .map(|_| {
            setup.make_cold()?;
            let _replay = Running::start("ureadahead", &mut command(tool, &[], setup))?;
            let start = time_start(setup.screen(), setup.root(), target, interrupt, || Ok(()))?;
            Ok(start.into())
        })
        .collect()
}

fn learn(tool: &Path, setup: &mut Setup, target: &Target, interrupt: &Interrupt) -> Result<()> {
    setup.make_cold()?;
    let tracing = Running::start("ureadahead", &mut command(tool, &["--force-trace"], setup))?;
    interrupt.sleep(TRACING_BEGINS)?;
    time_start(setup.screen(), setup.root(), target, interrupt, || Ok(()))?;
    tracing.with_patience(LEARNING_TAKES).end();
    let learned = std::fs::read_dir(PACKS).with_context(|| format!("cannot read {PACKS}"))?;
    if learned.flatten().all(|file| file.path().extension() != Some(OsStr::new("pack"))) {
        bail!("{} has learned nothing", tool.display());
    }
    Ok(())
}

fn command(tool: &Path, options: &[&str], setup: &Setup) -> Command {
    let mut command = bound(tool);
    command.arg("--quiet").args(options).arg(setup.root().path()).stdout(Stdio::null());
    command
}
