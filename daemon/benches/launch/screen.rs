//! A screen nobody looks at: X server, window manager and session bus.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::process::{Interrupt, Running, bound};

/// A session that starts nothing by itself: what a bus would start is not part of the application's own start, and
/// would differ from machine to machine.
fn bus_configuration(address: &str) -> String {
    format!(
        r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>{address}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"#
    )
}

/// The session, up until it is dropped.
#[derive(Debug)]
pub(crate) struct Screen {
    display: String,
    bus: String,
    // In the order in which they are to end.
    _manager: Running,
    _bus: Running,
    _server: Running,
    _directory: TempDir,
}

impl Screen {
    /// Starts everything and waits until it is ready.
    pub(crate) fn start(interrupt: &Interrupt) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("headstart-screen-").tempdir()?;
        let (server, display) = start_server(directory.path())?;
        let (daemon, bus) = start_bus(directory.path())?;
        let mut openbox = bound("openbox");
        openbox.args(["--sm-disable"]).env("DISPLAY", &display).stdout(Stdio::null()).stderr(Stdio::null());
        let manager = Running::start("openbox", &mut openbox)?;
        let screen =
            Self { display, bus, _manager: manager, _bus: daemon, _server: server, _directory: directory };
        screen.wait_for_manager(interrupt)?;
        Ok(screen)
    }

    /// The name of the display.
    pub(crate) fn display(&self) -> &str {
        &self.display
    }

    /// The address of the session bus.
    pub(crate) fn bus(&self) -> &str {
        &self.bus
    }

    fn wait_for_manager(&self, interrupt: &Interrupt) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(10);
        let watcher = crate::window::Watcher::connect(self)?;
        while !watcher.has_manager()? {
            if Instant::now() > deadline {
                bail!("openbox does not manage {}", self.display);
            }
            interrupt.sleep(Duration::from_millis(20))?;
        }
        Ok(())
    }
}

fn start_server(directory: &Path) -> Result<(Running, String)> {
    // The server picks a free number itself and writes it when it is ready.
    let mut xvfb = bound("Xvfb");
    xvfb.args(["-displayfd", "1", "-screen", "0", "1280x900x24", "-nolisten", "tcp", "-noreset"]);
    let (server, number) = start_and_ask("Xvfb", &mut xvfb, directory)?;
    Ok((server, format!(":{number}")))
}

fn start_bus(directory: &Path) -> Result<(Running, String)> {
    let configuration = directory.join("bus.conf");
    // An abstract socket is reached from inside a root as well.
    let address = format!("unix:abstract=headstart-bench-{}", std::process::id());
    fs::write(&configuration, bus_configuration(&address))?;
    let mut daemon = bound("dbus-daemon");
    daemon.arg("--config-file").arg(&configuration).args(["--nofork", "--nopidfile", "--nosyslog"]);
    daemon.arg("--print-address=1");
    start_and_ask("dbus-daemon", &mut daemon, directory)
}

/// Starts a server that writes a line to its standard output when it is ready, and returns that line.
fn start_and_ask(name: &str, command: &mut Command, directory: &Path) -> Result<(Running, String)> {
    let log = directory.join(name);
    command.stdout(Stdio::piped()).stderr(File::create(&log)?);
    let mut running = Running::start(name, command)?;
    let mut line = String::new();
    BufReader::new(running.child().stdout.take().context("no output")?).read_line(&mut line)?;
    let line = line.trim();
    if line.is_empty() {
        bail!("{name} does not start: {}", fs::read_to_string(&log).unwrap_or_default().trim());
    }
    Ok((running, line.to_owned()))
}
