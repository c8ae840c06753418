//! A bus of its own, on which everybody may do everything: policies are what tests are for.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};

const CONFIG: &str = r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <listen>unix:dir=FOLDER</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"#;

/// A running bus.
pub(crate) struct Bus {
    child: Child,
    pub(crate) address: String,
}

impl Bus {
    pub(crate) fn start(folder: &Path) -> Result<Self> {
        let config = folder.join("bus.conf");
        std::fs::write(&config, CONFIG.replace("FOLDER", &folder.display().to_string()))?;
        let mut child = Command::new("dbus-daemon")
            .args(["--nofork", "--print-address", "--config-file"])
            .arg(config)
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start dbus-daemon; install the package dbus")?;
        let mut address = String::new();
        BufReader::new(child.stdout.take().context("no output")?).read_line(&mut address)?;
        ensure!(!address.is_empty(), "dbus-daemon ended at once");
        Ok(Self { child, address: address.trim().to_owned() })
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
