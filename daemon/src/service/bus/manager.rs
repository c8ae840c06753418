//! What clients ask.

use std::sync::Arc;

use chrono::{Duration, Utc};
use headstart_shared::bus::names::action;
use headstart_shared::bus::{
    ActivityCode, ActivityInfo, AppInfo, BusError, LaunchInfo, LaunchQuery, PolicyCode, StatusInfo,
};
use headstart_shared::run::AppId;
use zbus::message::Header;
use zbus::object_server::SignalEmitter;
use zbus::wire::OwnedFd;
use zbus::{Connection, interface};

use super::callers::{Caller, lock};
use super::state::{State, activity};
use super::{convert, leaving, memory_file, status};
use crate::profile::exchange;
use crate::service::authority;
use crate::service::config::{Config, MAX_LENGTH};
use crate::service::messages::{Notice, Request};
use crate::store::Activity;

/// Entries of a list that are given if no number is asked for, and at most.
const SOME: u32 = 100;
const MANY: u32 = 1000;

/// The interface for clients.
pub(super) struct Manager {
    state: Arc<State>,
}

#[interface(name = "io.github.headstart_desktop.Headstart1.Manager", introspection_docs = false)]
impl Manager {
    async fn list_apps(&self, #[zbus(header)] header: Header<'_>) -> Result<Vec<AppInfo>, BusError> {
        let caller = self.state.caller(&header).await?;
        let installed = self.state.installed(&caller).await;
        let records = self.state.store(|store| store.app_records(caller.user.uid))?;
        let setting = self.state.setting();
        let name = |id: &str| installed.get(id).map(|app| app.name.as_str());
        let mut apps: Vec<AppInfo> =
            records.iter().map(|record| convert::app_info(record, name(&record.app.0), setting)).collect();
        let known = |id: &str| records.binary_search_by(|record| record.app.0.as_str().cmp(id)).is_ok();
        let others = installed.iter().filter(|(id, app)| app.shown && !known(id));
        apps.extend(others.map(|(id, app)| convert::without_history(id, Some(&app.name))));
        apps.sort_by(|a, b| a.app.cmp(&b.app));
        Ok(apps)
    }

    async fn get_app(&self, app: &str, #[zbus(header)] header: Header<'_>) -> Result<AppInfo, BusError> {
        let caller = self.state.caller(&header).await?;
        self.state.app(&caller, app).await
    }

    async fn set_policy(
        &self,
        app: &str,
        policy: PolicyCode,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> Result<(), BusError> {
        let caller = self.state.caller(&header).await?;
        let Some(chosen) = convert::policy_of(policy) else {
            return Err(BusError::InvalidArgument("policy: 1 (off) or 2 (at launch)".into()));
        };
        // So that nobody can fill the history with apps that there are not.
        self.state.app(&caller, app).await?;
        authority::check(connection, &header, caller.user.uid, action::MANAGE).await?;
        let (uid, id) = (caller.user.uid, AppId(app.to_owned()));
        self.state.store(|store| store.set_policy(uid, &id, chosen))?;
        self.state.tell(Request::AppChanged { uid, app: Some(id.clone()) });
        self.state.notify(Notice::AppChanged { uid, app: id.clone() });
        let count = Some(u64::from(u32::from(policy)));
        let changed = Activity { app: Some(id), count, ..activity(ActivityCode::PolicyChanged) };
        self.state.note(Some(uid), changed);
        Ok(())
    }

    async fn list_launches(
        &self,
        query: LaunchQuery,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> Result<Vec<LaunchInfo>, BusError> {
        let caller = self.state.caller(&header).await?;
        let uid = query.uid.unwrap_or(caller.user.uid);
        if uid != caller.user.uid {
            authority::check(connection, &header, caller.user.uid, action::OTHERS).await?;
        }
        let (app, limit) = (query.app.map(AppId), query.limit.unwrap_or(SOME).min(MANY));
        self.state.store(|store| {
            let launches = store.launches(uid, app.as_ref(), query.before, limit)?.value;
            let kept = store.with_timeline(uid)?;
            let infos = launches.iter().map(|launch| convert::launch_info(launch, kept.contains(&launch.id)));
            Ok(infos.collect())
        })
    }

    async fn get_timeline(
        &self,
        launch: u64,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<OwnedFd, BusError> {
        let caller = self.state.caller(&header).await?;
        let timeline = self.state.store(|store| store.timeline(caller.user.uid, launch))?.value;
        let timeline = timeline.ok_or_else(|| BusError::UnknownLaunch(launch.to_string()))?;
        let json = serde_json::to_vec(&timeline).map_err(|e| BusError::Failed(e.to_string()))?;
        large("headstart-timeline", &json)
    }

    async fn get_profile(&self, app: &str, #[zbus(header)] header: Header<'_>) -> Result<OwnedFd, BusError> {
        let caller = self.state.caller(&header).await?;
        let id = AppId(app.to_owned());
        let profile = self.state.store(|store| store.profile(caller.user.uid, &id))?.value;
        let profile = profile.ok_or_else(|| BusError::UnknownApp(app.to_owned()))?;
        let text = exchange::encode(&profile).map_err(|e| BusError::Failed(e.to_string()))?;
        large("headstart-profile", &text)
    }

    async fn forget(
        &self,
        app: &str,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> Result<u32, BusError> {
        let caller = self.state.caller(&header).await?;
        authority::check(connection, &header, caller.user.uid, action::MANAGE).await?;
        self.forget_of(&caller, app)
    }

    async fn pause(
        &self,
        seconds: u32,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> Result<(), BusError> {
        let caller = self.state.caller(&header).await?;
        authority::check(connection, &header, caller.user.uid, action::MANAGE).await?;
        let until = (seconds > 0).then(|| Utc::now() + Duration::seconds(seconds.into()));
        self.state.tell(Request::Pause(until));
        Ok(())
    }

    async fn resume(
        &self,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> Result<(), BusError> {
        let caller = self.state.caller(&header).await?;
        authority::check(connection, &header, caller.user.uid, action::MANAGE).await?;
        self.state.tell(Request::Resume);
        Ok(())
    }

    async fn list_activity(
        &self,
        before: u64,
        limit: u32,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<Vec<ActivityInfo>, BusError> {
        let caller = self.state.caller(&header).await?;
        let before = (before != 0).then_some(before);
        let list = self.state.store(|store| store.activity(caller.user.uid, before, limit.min(MANY)))?;
        Ok(list.iter().map(convert::activity_info).collect())
    }

    async fn get_status(&self, #[zbus(header)] header: Header<'_>) -> Result<StatusInfo, BusError> {
        let _caller = self.state.caller(&header).await?;
        status::status(&self.state)
    }

    async fn doctor(&self, #[zbus(header)] header: Header<'_>) -> Result<String, BusError> {
        let _caller = self.state.caller(&header).await?;
        self.state.doctor.examine(&self.state.roots).await
    }

    async fn get_config(&self, #[zbus(header)] header: Header<'_>) -> Result<String, BusError> {
        let _caller = self.state.caller(&header).await?;
        Ok(self.state.config().to_toml())
    }

    async fn set_config(
        &self,
        toml: &str,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> Result<(), BusError> {
        let caller = self.state.caller(&header).await?;
        if toml.len() as u64 > MAX_LENGTH {
            return Err(BusError::InvalidArgument(format!("toml: at most {MAX_LENGTH} bytes")));
        }
        authority::check(connection, &header, caller.user.uid, action::CONFIGURE).await?;
        let saved = Config::save(&self.state.config_path, toml);
        self.state.apply(saved.map_err(|e| BusError::InvalidConfig(e.to_string()))?);
        Ok(())
    }

    async fn reload(
        &self,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> Result<(), BusError> {
        let caller = self.state.caller(&header).await?;
        authority::check(connection, &header, caller.user.uid, action::CONFIGURE).await?;
        self.state.reload().map_err(|e| BusError::InvalidConfig(e.to_string()))
    }

    async fn subscribe(&self, #[zbus(header)] header: Header<'_>) -> Result<(), BusError> {
        let caller = self.state.caller(&header).await?;
        let known = lock(&self.state.clients).subscribe(caller.name.clone(), caller.user.uid)?;
        leaving::watch(&self.state, &caller.name, known).await
    }

    #[zbus(signal)]
    pub(super) async fn app_changed(emitter: &SignalEmitter<'_>, app: AppInfo) -> zbus::Result<()>;

    #[zbus(signal)]
    pub(super) async fn launched(emitter: &SignalEmitter<'_>, launch: LaunchInfo) -> zbus::Result<()>;

    #[zbus(signal)]
    pub(super) async fn activity_added(
        emitter: &SignalEmitter<'_>,
        activity: ActivityInfo,
    ) -> zbus::Result<()>;

    #[zbus(property(emits_changed_signal = "const"))]
    #[expect(clippy::unused_self, reason = "a property is a method of its interface")]
    fn version(&self) -> String {
        status::VERSION.to_owned()
    }

    #[zbus(property)]
    fn pause_reason(&self) -> u32 {
        lock(&self.state.pause).reason.into()
    }

    #[zbus(property)]
    fn paused_until(&self) -> i64 {
        convert::millis(lock(&self.state.pause).until)
    }
}

impl Manager {
    pub(super) fn new(state: Arc<State>) -> Self {
        Self { state }
    }

    fn forget_of(&self, caller: &Caller, app: &str) -> Result<u32, BusError> {
        let uid = caller.user.uid;
        let id = (!app.is_empty()).then(|| AppId(app.to_owned()));
        let (forgotten, apps) = self.state.store(|store| {
            let apps = match &id {
                Some(id) => vec![id.clone()],
                None => store.app_records(uid)?.into_iter().map(|record| record.app).collect(),
            };
            Ok((store.forget(uid, id.as_ref())?, apps))
        })?;
        if forgotten == 0 && id.is_some() {
            return Err(BusError::UnknownApp(app.to_owned()));
        }
        self.state.tell(Request::Forgotten { uid, app: id });
        for app in apps {
            self.state.notify(Notice::AppChanged { uid, app });
        }
        // Without a name: that would be what was to be forgotten.
        let count = Some(forgotten as u64);
        self.state.note(Some(uid), Activity { count, ..activity(ActivityCode::Forgotten) });
        Ok(u32::try_from(forgotten).unwrap_or(u32::MAX))
    }
}

fn large(name: &str, bytes: &[u8]) -> Result<OwnedFd, BusError> {
    let file = memory_file::sealed(name, bytes);
    file.map(OwnedFd::from).map_err(|e| BusError::Failed(format!("no memory file for the answer: {e}")))
}
