//! Noticing that clients leave: one match rule for each that stays, so that nobody else's coming and going wakes us.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use headstart_shared::bus::BusError;
use zbus::export::futures_core::Stream;
use zbus::names::OwnedUniqueName;

use super::callers::lock;
use super::state::State;
use crate::service::messages::Request;

/// Waits for a client that stays to leave, unless it was known before. If that cannot be waited for it does not stay.
pub(super) async fn watch(state: &Arc<State>, name: &OwnedUniqueName, known: bool) -> Result<(), BusError> {
    if known {
        return Ok(());
    }
    let bus = state.bus()?.clone();
    let mut changes = match bus.receive_name_owner_changed_with_args(&[(0, name.as_str())]).await {
        Ok(changes) => changes,
        Err(error) => {
            lock(&state.clients).leave(name);
            return Err(error.into());
        }
    };
    let (state, name) = (Arc::clone(state), name.clone());
    tokio::spawn(async move {
        // It may have left before the rule was there.
        let there = bus.name_has_owner(name.inner().clone().into()).await.unwrap_or(false);
        while there && let Some(change) = next(&mut changes).await {
            if change.args().is_ok_and(|args| args.new_owner().is_none()) {
                break;
            }
        }
        left(&state, &name);
    });
    Ok(())
}

fn left(state: &State, name: &OwnedUniqueName) {
    state.callers.forget(name);
    let (session, others) = {
        let mut clients = lock(&state.clients);
        let session = clients.leave(name);
        let others = session.as_ref().is_some_and(|s| clients.sessions(s.uid).next().is_some());
        (session, others)
    };
    let Some(session) = session else { return };
    if !others {
        state.installed.forget(session.uid);
    }
    state.tell(Request::SessionOver { client: session.client });
}

async fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await
}
