//! From notices to signals: what is about apps goes to the subscribers of one uid, one by one.

use std::sync::Arc;

use headstart_shared::bus::names;
use tokio::sync::mpsc::UnboundedReceiver;
use zbus::Connection;
use zbus::names::{BusName, OwnedUniqueName};
use zbus::object_server::SignalEmitter;

use super::callers::lock;
use super::convert;
use super::manager::Manager;
use super::state::State;
use crate::service::log::{Level, log};
use crate::service::messages::{Notice, Pause};

/// Passes all notices on, until the bus is gone.
pub(super) async fn pass_on(
    state: Arc<State>,
    connection: Connection,
    mut notices: UnboundedReceiver<Notice>,
) {
    while let Some(notice) = notices.recv().await {
        if let Err(error) = one(&state, &connection, notice).await {
            log(Level::Warning, format_args!("a signal could not be sent: {error}"));
        }
    }
}

async fn one(state: &State, connection: &Connection, notice: Notice) -> zbus::Result<()> {
    match notice {
        Notice::Launched { uid, launch } => {
            let to = subscribers(state, Some(uid));
            if to.is_empty() {
                return Ok(());
            }
            // Without the history there is nothing to be told of it.
            let kept = state.store(|store| store.with_timeline(uid)).unwrap_or_default();
            let info = convert::launch_info(&launch, kept.contains(&launch.id));
            for name in &to {
                Manager::launched(&emitter(connection, name)?, info.clone()).await?;
            }
        }
        Notice::AppChanged { uid, app } => {
            let to = subscribers(state, Some(uid));
            // What cannot be read is told of by whoever asks for it.
            let info = if to.is_empty() { None } else { state.app_of(uid, &app).ok() };
            let Some(info) = info else { return Ok(()) };
            for name in &to {
                Manager::app_changed(&emitter(connection, name)?, info.clone()).await?;
            }
        }
        Notice::Activity { uid, activity } => {
            for name in &subscribers(state, uid) {
                let info = convert::activity_info(&activity);
                Manager::activity_added(&emitter(connection, name)?, info).await?;
            }
        }
        Notice::Pause(pause) => paused(state, connection, pause).await?,
    }
    Ok(())
}

/// Whether and why it is paused is no secret: everybody is told, if it is another.
async fn paused(state: &State, connection: &Connection, pause: Pause) -> zbus::Result<()> {
    let before = std::mem::replace(&mut *lock(&state.pause), pause);
    let manager = connection.object_server().interface::<_, Manager>(names::PATH).await?;
    let (manager, emitter) = (manager.get().await, SignalEmitter::new(connection, names::PATH)?);
    if before.reason != pause.reason {
        manager.pause_reason_changed(&emitter).await?;
    }
    if before.until != pause.until {
        manager.paused_until_changed(&emitter).await?;
    }
    Ok(())
}

fn subscribers(state: &State, uid: Option<u32>) -> Vec<OwnedUniqueName> {
    lock(&state.clients).subscribers(uid)
}

fn emitter(connection: &Connection, to: &OwnedUniqueName) -> zbus::Result<SignalEmitter<'static>> {
    Ok(SignalEmitter::new(connection, names::PATH)?.set_destination(BusName::from(to.inner().clone())))
}
