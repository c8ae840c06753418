//! What all methods share.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use chrono::{DateTime, Utc};
use headstart_shared::bus::{ActivityCode, AppInfo, BusError};
use headstart_shared::run::AppId;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use zbus::fdo::DBusProxy;
use zbus::message::Header;

use super::callers::{Caller, Callers, lock};
use super::clients::Clients;
use super::convert::{self, Setting};
use super::installed::{Apps, Installed, Source};
use super::status::Doctor;
use super::{Inputs, Notices};
use crate::roots::Roots;
use crate::service::config::{Config, ConfigError};
use crate::service::log::{Level, log};
use crate::service::mailbox::Sender;
use crate::service::messages::{Notice, Pause, Request, SharedFigures};
use crate::store::{Activity, Store, StoreError};

/// The longest ID of an app that is looked up: a command's is its path.
const LONGEST_ID: usize = 4096;

pub(super) struct State {
    pub(super) roots: Roots,
    pub(super) started: DateTime<Utc>,
    pub(super) figures: SharedFigures,
    pub(super) clients: Mutex<Clients>,
    pub(super) callers: Callers,
    pub(super) installed: Installed,
    pub(super) pause: Mutex<Pause>,
    pub(super) doctor: Doctor,
    pub(super) config_path: PathBuf,
    config: Mutex<Arc<Config>>,
    store: Mutex<Store>,
    launches: Sender,
    notices: UnboundedSender<Notice>,
    bus: OnceLock<DBusProxy<'static>>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("config_path", &self.config_path).finish_non_exhaustive()
    }
}

impl State {
    pub(super) fn new(inputs: Inputs) -> (Self, UnboundedReceiver<Notice>) {
        let Notices { sender, receiver } = inputs.notices;
        let state = Self {
            roots: inputs.roots,
            started: Utc::now(),
            figures: inputs.figures,
            clients: Mutex::default(),
            callers: Callers::default(),
            installed: Installed::default(),
            pause: Mutex::default(),
            doctor: Doctor::default(),
            config_path: inputs.config_path,
            config: Mutex::new(inputs.config),
            store: Mutex::new(inputs.store),
            launches: inputs.launches,
            notices: sender,
            bus: OnceLock::new(),
        };
        (state, receiver)
    }

    /// From now on the bus can be asked.
    pub(super) fn connected(&self, bus: DBusProxy<'static>) {
        let _ = self.bus.set(bus);
    }

    pub(super) fn bus(&self) -> Result<&DBusProxy<'static>, BusError> {
        self.bus.get().ok_or_else(|| BusError::Failed("the service is just starting; try again".into()))
    }

    /// Who sent this.
    pub(super) async fn caller(&self, header: &Header<'_>) -> Result<Caller, BusError> {
        self.callers.of(self.bus()?, header).await
    }

    pub(super) fn config(&self) -> Arc<Config> {
        Arc::clone(&lock(&self.config))
    }

    /// Puts another configuration in force.
    pub(super) fn apply(&self, config: Config) {
        let config = Arc::new(config);
        *lock(&self.config) = Arc::clone(&config);
        self.tell(Request::Config(config));
        self.note(None, activity(ActivityCode::ConfigLoaded));
    }

    /// Reads the configuration file again; a wrong one leaves the old one in force.
    pub(super) fn reload(&self) -> Result<(), ConfigError> {
        match Config::load(&self.config_path) {
            Ok(config) => {
                self.apply(config);
                Ok(())
            }
            Err(error) => {
                let detail = Some(error.to_string());
                log(Level::Error, format_args!("{error}; the configuration from before stays in force"));
                self.note(None, Activity { detail, ..activity(ActivityCode::ConfigRefused) });
                Err(error)
            }
        }
    }

    /// Works with the history.
    pub(super) fn store<T>(
        &self,
        work: impl FnOnce(&mut Store) -> Result<T, StoreError>,
    ) -> Result<T, BusError> {
        work(&mut lock(&self.store)).map_err(|error| {
            log(Level::Error, &error);
            BusError::Storage(error.to_string())
        })
    }

    /// Tells the launches. If they have ended, the service is about to.
    pub(super) fn tell(&self, request: Request) {
        let _ = self.launches.send(request);
    }

    /// Has signals sent.
    pub(super) fn notify(&self, notice: Notice) {
        let _ = self.notices.send(notice);
    }

    /// Remembers something that was done, and has signals sent of it.
    pub(super) fn note(&self, uid: Option<u32>, activity: Activity) {
        if let Ok(id) = self.store(|store| store.add_activity(uid, &activity)) {
            self.notify(Notice::Activity { uid, activity: Activity { id, ..activity } });
        }
    }

    /// What a user can launch.
    pub(super) async fn installed(&self, caller: &Caller) -> Arc<Apps> {
        let mut sources: Vec<Source> = Vec::new();
        for session in lock(&self.clients).sessions(caller.user.uid) {
            let source = Source::of(session);
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
        self.installed.of(&caller.user, sources).await
    }

    /// One app of the caller's: of the history or installed.
    pub(super) async fn app(&self, caller: &Caller, app: &str) -> Result<AppInfo, BusError> {
        if app.is_empty() || app.len() > LONGEST_ID {
            return Err(BusError::InvalidArgument(format!(
                "app: an ID of 1 to {LONGEST_ID} bytes, as list_apps gives it"
            )));
        }
        let installed = self.installed(caller).await;
        let name = installed.get(app).map(|app| app.name.as_str());
        let record = self.store(|store| store.app_record(caller.user.uid, &AppId(app.to_owned())))?;
        match (record, name) {
            (Some(record), name) => Ok(convert::app_info(&record, name, self.setting())),
            (None, Some(_)) => Ok(convert::without_history(app, name)),
            (None, None) => Err(BusError::UnknownApp(app.to_owned())),
        }
    }

    /// One app of a user's, for a signal.
    pub(super) fn app_of(&self, uid: u32, app: &AppId) -> Result<AppInfo, BusError> {
        let installed = self.installed.last(uid);
        let name = installed.get(&app.0).map(|app| app.name.as_str());
        let record = self.store(|store| store.app_record(uid, app))?;
        Ok(record.map_or_else(
            || convert::without_history(&app.0, name),
            |record| convert::app_info(&record, name, self.setting()),
        ))
    }

    pub(super) fn setting(&self) -> Setting {
        let page_size = rustix::param::page_size() as u64;
        Setting { page_size, compares: self.config().shares.holdout > 0.0 }
    }
}

/// Something done now, of which nothing more is to be said.
pub(super) fn activity(kind: ActivityCode) -> Activity {
    let (app, launch, count, detail) = (None, None, None, None);
    Activity { id: 0, at: Utc::now(), kind: kind.into(), app, launch, count, detail }
}
