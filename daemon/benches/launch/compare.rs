//! The comparison itself, made by `headstartctl try` as a user would make it.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use headstart_shared::comparison::Comparison;

use crate::apps::{Target, Until};
use crate::process::{Interrupt, Running, bound};
use crate::session::environment;
use crate::setup::Setup;

/// How the comparison is to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    /// The program.
    pub headstartctl: &'a Path,
    /// Rounds of all conditions.
    pub rounds: u32,
    /// The `--cold` method: `drop` or `evict`.
    pub cold: &'a str,
    /// Further options of `try`.
    pub options: &'a [String],
}

/// Compares the starts of a target.
pub(crate) fn compare(
    setup: &Setup,
    target: &Target,
    request: Request<'_>,
    interrupt: &Interrupt,
) -> Result<Comparison> {
    let result = tempfile::NamedTempFile::new().context("no file for the result")?;
    // A history of its own, so that each comparison learns from nothing.
    let history = tempfile::tempdir().context("no folder for the history")?;
    let mut command = bound(request.headstartctl);
    command.arg("--state-dir").arg(history.path());
    command.args(["try", "--rounds", &request.rounds.to_string(), "--cold", request.cold]);
    let mut json = OsString::from("--json=");
    json.push(result.path());
    command.arg(json).args(["--id", &target.name]).args(request.options);
    match &target.until {
        Until::Window(class) => command.args(["--until", "window", "--window-class", class]),
        Until::Exit => command.args(["--until", "exit"]),
    };
    let environment = environment(setup.screen());
    for (name, value) in &environment {
        command.arg("--env").arg(format!("{name}={value}"));
    }
    command.args(["--", "chroot"]).arg(setup.root().path()).args(&target.command);
    // Where the command itself looks for a display, it is this one.
    command.envs(environment).stdout(Stdio::null());
    let running = Running::start("headstartctl try", &mut command)?.with_patience(Duration::from_secs(20));
    let status = running.wait(interrupt)?;
    setup.root().end_inside()?;
    ensure!(status.success(), "headstartctl try failed: {status}");
    let text =
        std::fs::read_to_string(result.path()).context("cannot read the result of headstartctl try")?;
    serde_json::from_str(&text).context("headstartctl try wrote no comparison")
}
