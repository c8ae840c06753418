//! Starting applications and seeing when their start is over, without any part of Headstart.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::apps::{Target, Until};
use crate::process::{Interrupt, Running};
use crate::root::{HOME, Root};
use crate::screen::Screen;
use crate::window::Watcher;

/// A start that is not over by then never will be.
const PATIENCE: Duration = Duration::from_mins(2);
/// How long an application is left alone after its first window, so that it is not ended in the middle of something.
const SETTLE: Duration = Duration::from_millis(800);

/// The whole environment of what is started.
pub(crate) fn environment(screen: Option<&Screen>) -> Vec<(&'static str, String)> {
    let mut environment = vec![
        ("HOME", HOME.to_owned()),
        ("PATH", "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned()),
        ("LANG", "C.UTF-8".to_owned()),
        ("NO_AT_BRIDGE", "1".to_owned()),
    ];
    if let Some(screen) = screen {
        environment.push(("DISPLAY", screen.display().to_owned()));
        environment.push(("DBUS_SESSION_BUS_ADDRESS", screen.bus().to_owned()));
    }
    environment
}

/// Starts a target inside a root and returns the time from just before the start until it is over. `then` is called
/// once it is over and the application has settled; after it the application is ended.
pub(crate) fn time_start(
    screen: Option<&Screen>,
    root: &Root,
    target: &Target,
    interrupt: &Interrupt,
    then: impl FnOnce() -> Result<()>,
) -> Result<Duration> {
    let took = match &target.until {
        Until::Exit => {
            let began = Instant::now();
            let status = Running::start(&target.name, &mut inside(screen, root, target))?.wait(interrupt)?;
            ensure!(status.success(), "{} failed: {status}", target.name);
            began.elapsed()
        }
        Until::Window(class) => {
            let screen = screen.context("there is no screen to show a window on")?;
            let mut watcher = Watcher::connect(screen)?;
            let began = Instant::now();
            let process = Running::start_group(&target.name, &mut inside(Some(screen), root, target))?;
            let shown = watcher.first_window(class, PATIENCE, interrupt)?;
            let Some(shown) = shown else { bail!("{} showed no window within {PATIENCE:?}", target.name) };
            interrupt.sleep(SETTLE)?;
            then()?;
            drop(process);
            shown.saturating_duration_since(began)
        }
    };
    root.end_inside().with_context(|| format!("{} does not end", target.name))?;
    Ok(took)
}

fn inside(screen: Option<&Screen>, root: &Root, target: &Target) -> Command {
    let mut chroot = Command::new("chroot");
    chroot.arg(root.path()).args(&target.command).env_clear().envs(environment(screen));
    chroot.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    chroot
}
