//! Who calls, as the bus says, and how much one user may ask at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use headstart_shared::bus::BusError;
use zbus::fdo::DBusProxy;
use zbus::message::Header;
use zbus::names::OwnedUniqueName;

use crate::sys::identity::User;

/// Calls of one user that are answered at a time; root's are not counted.
const AT_A_TIME: u32 = 32;
/// Callers remembered. A unique name is never given twice, so what is remembered stays true.
const REMEMBERED: usize = 512;
/// Nobody's group, for a user of whose groups the bus does not tell.
const NOGROUP: u32 = 65534;

/// A caller, for the time of a call.
#[derive(Debug)]
pub(super) struct Caller {
    /// Its unique name.
    pub(super) name: OwnedUniqueName,
    /// Who it is, with its groups.
    pub(super) user: Arc<User>,
    _place: Option<Place>,
}

/// All that call.
#[derive(Debug, Default)]
pub(super) struct Callers {
    known: Mutex<HashMap<OwnedUniqueName, Arc<User>>>,
    going_on: Arc<Mutex<HashMap<u32, u32>>>,
}

impl Callers {
    /// The sender of a message.
    pub(super) async fn of(&self, bus: &DBusProxy<'_>, header: &Header<'_>) -> Result<Caller, BusError> {
        let sender = header.sender().ok_or_else(|| BusError::Failed("the call has no sender".into()))?;
        let name = OwnedUniqueName::from(sender.to_owned());
        let known = lock(&self.known).get(&name).cloned();
        let user = match known {
            Some(user) => user,
            None => self.ask(bus, &name).await?,
        };
        let place = (user.uid != 0).then(|| Place::take(&self.going_on, user.uid)).transpose()?;
        Ok(Caller { name, user, _place: place })
    }

    async fn ask(&self, bus: &DBusProxy<'_>, name: &OwnedUniqueName) -> Result<Arc<User>, BusError> {
        let unknown = |why: &str| BusError::Failed(format!("the bus does not say who {name} is: {why}"));
        let credentials = bus
            .get_connection_credentials(name.inner().clone().into())
            .await
            .map_err(|e| unknown(&e.to_string()))?;
        let uid = credentials.unix_user_id().ok_or_else(|| unknown("no uid"))?;
        let groups = credentials.into_unix_group_ids().unwrap_or_default();
        let gid = groups.first().copied().unwrap_or(NOGROUP);
        let user = Arc::new(User { uid, gid, groups });
        let mut known = lock(&self.known);
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(name.clone(), Arc::clone(&user));
        Ok(user)
    }

    /// Forgets one that has left the bus.
    pub(super) fn forget(&self, name: &OwnedUniqueName) {
        lock(&self.known).remove(name);
    }
}

/// One of the calls of a user that go on.
#[derive(Debug)]
struct Place {
    going_on: Arc<Mutex<HashMap<u32, u32>>>,
    uid: u32,
}

impl Place {
    fn take(going_on: &Arc<Mutex<HashMap<u32, u32>>>, uid: u32) -> Result<Self, BusError> {
        let mut counts = lock(going_on);
        let count = counts.entry(uid).or_default();
        if *count >= AT_A_TIME {
            return Err(BusError::Failed(format!(
                "{AT_A_TIME} calls of user {uid} wait for their answers; ask again when some are answered"
            )));
        }
        *count += 1;
        Ok(Self { going_on: Arc::clone(going_on), uid })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = lock(&self.going_on);
        if let Some(count) = counts.get_mut(&self.uid) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.uid);
            }
        }
    }
}

/// What a panic leaves behind the process does not outlive, so there is nothing to be careful about.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_can_only_ask_so_much_at_a_time_and_others_do_not_notice() {
        let going_on = Arc::default();
        let mut places: Vec<Place> =
            (0..AT_A_TIME).map(|_| Place::take(&going_on, 1000).expect("there is room")).collect();
        assert!(matches!(Place::take(&going_on, 1000), Err(BusError::Failed(_))));
        Place::take(&going_on, 1001).expect("it is another's");
        places.pop();
        places.push(Place::take(&going_on, 1000).expect("one was answered"));
        drop(places);
        assert!(lock(&going_on).is_empty());
    }
}
