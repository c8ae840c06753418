//! The daemon under measurement, and a client of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use headstart_shared::bus::{
    LaunchInfo, LaunchQuery, ManagerProxy, SessionInfo, SessionProxy, StateCode, StatusInfo,
};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use zbus::connection::Builder;
use zbus::proxy::CacheProperties;

use crate::apps::Apps;
use crate::bus::Bus;

const PROGRAM: &str = env!("CARGO_BIN_EXE_headstartd");

/// A configuration that learns an app from one launch, with these shares of launches held out and learned from again.
pub(crate) fn config(holdout: f64, again: f64) -> String {
    format!("[learning]\nruns = 1\nagain = {again:?}\n[comparison]\nholdout = {holdout:?}\n")
}

/// A daemon with a bus, a history and a session.
pub(crate) struct Daemon {
    child: Child,
    folder: TempDir,
    bus: Bus,
    runtime: Runtime,
    client: Option<Client>,
}

struct Client {
    manager: ManagerProxy<'static>,
    session: SessionProxy<'static>,
}

impl Daemon {
    /// Starts one with this configuration.
    pub(crate) fn start(config: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join("config.toml"), config)?;
        let bus = Bus::start(folder.path())?;
        let child = spawn(folder.path(), &bus.address)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut daemon = Self { child, folder, bus, runtime, client: None };
        daemon.connect()?;
        Ok(daemon)
    }

    /// Starts it again, with the same history.
    pub(crate) fn restart(&mut self) -> Result<()> {
        self.child = spawn(self.folder.path(), &self.bus.address)?;
        self.connect()
    }

    /// Waits until it answers.
    fn connect(&mut self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(20);
        let address = self.bus.address.clone();
        let client = self.runtime.block_on(async {
            let connection = Builder::address(address.as_str()).build().await?;
            let manager =
                ManagerProxy::builder(&connection).cache_properties(CacheProperties::No).build().await?;
            let session = SessionProxy::new(&connection).await?;
            while manager.version().await.is_err() {
                ensure!(Instant::now() < deadline, "the daemon does not answer");
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            Ok(Client { manager, session })
        })?;
        self.client = Some(client);
        Ok(())
    }

    fn client(&self) -> Result<&Client> {
        self.client.as_ref().context("not connected")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn state_dir(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// Has it write as to a disk of this size, which is empty.
    pub(crate) fn on_small_disk(&mut self, size: &str) -> Result<()> {
        self.kill()?;
        let (state, size) = (self.state_dir(), format!("size={size}"));
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&state).status()?;
        ensure!(mount.success(), "cannot mount a small disk at {}", state.display());
        self.restart()
    }

    /// Tells it of a session with these apps, and waits until it watches them.
    pub(crate) fn register(&self, apps: &Apps) -> Result<()> {
        let session = SessionInfo {
            data_dirs: vec![apps.data_dir().display().to_string()],
            path: Some(vec![apps.bin().display().to_string()]),
            ..SessionInfo::default()
        };
        self.runtime.block_on(self.client()?.session.register(session))?;
        self.until("the apps are watched", |status| {
            status.watched as usize >= apps.count() && status.backend.is_some()
        })
    }

    /// Waits until the state is so.
    pub(crate) fn until(&self, what: &str, is_so: impl Fn(&StatusInfo) -> bool) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !is_so(&self.status()?) {
            if Instant::now() > deadline {
                bail!("waited too long until {what}: {:?}", self.status()?);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    pub(crate) fn status(&self) -> Result<StatusInfo> {
        Ok(self.runtime.block_on(self.client()?.manager.get_status())?)
    }

    /// The latest launches, of an app or of all.
    pub(crate) fn launches(&self, app: Option<String>, limit: u32) -> Result<Vec<LaunchInfo>> {
        let query = LaunchQuery { app, limit: Some(limit), ..LaunchQuery::default() };
        Ok(self.runtime.block_on(self.client()?.manager.list_launches(query))?)
    }

    pub(crate) fn list_apps(&self) -> Result<usize> {
        Ok(self.runtime.block_on(self.client()?.manager.list_apps())?.len())
    }

    /// Has an app learned, so that it is prefetched from now on.
    pub(crate) fn learn(&self, apps: &Apps, app: usize) -> Result<()> {
        let id = crate::apps::id(app);
        let deadline = Instant::now() + Duration::from_mins(1);
        loop {
            apps.make_cold(app)?;
            apps.command(app).status()?;
            let began = Instant::now();
            while began.elapsed() < Duration::from_secs(6) {
                let info = self.runtime.block_on(self.client()?.manager.get_app(&id))?;
                if info.state == StateCode::Prefetching {
                    return Ok(());
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            ensure!(
                Instant::now() < deadline,
                "{id} is not learned: {:?}",
                self.launches(Some(id.clone()), 3)
            );
        }
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        self.client = None;
        Ok(())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Only there after a soak.
        let unmount = Command::new("umount")
            .args(["--quiet", "--lazy"])
            .arg(self.state_dir())
            .stderr(Stdio::null())
            .status();
        drop(unmount);
    }
}

fn spawn(folder: &Path, address: &str) -> Result<Child> {
    let mut command = Command::new(PROGRAM);
    command.arg("--state-dir").arg(folder.join("state"));
    command.arg("--runtime-dir").arg(folder.join("run"));
    command.arg("--config").arg(folder.join("config.toml")).arg("--bus").arg(address);
    command.spawn().with_context(|| format!("cannot start {PROGRAM}"))
}
