//! Clients that stay: who wants signals, and the agents of sessions. Pure; who leaves is told by [`super::leaving`].

use std::collections::BTreeMap;
use std::time::Duration;

use headstart_shared::bus::BusError;
use zbus::names::OwnedUniqueName;

use crate::service::messages::Session;
use crate::watch::start::Monotonic;

/// Subscribers of one user.
const SUBSCRIBERS: usize = 64;
/// Agents of one user.
const AGENTS: usize = 16;
/// Windows of one user that may be told at once, and how long it takes until one more may.
const WINDOWS: u32 = 200;
const WINDOW_EVERY: Duration = Duration::from_millis(20);

/// The clients that stay.
#[derive(Debug, Default)]
pub(super) struct Clients {
    subscribers: BTreeMap<OwnedUniqueName, u32>,
    agents: BTreeMap<OwnedUniqueName, Session>,
    windows: BTreeMap<u32, Windows>,
}

/// What is left of the windows that a user may tell.
#[derive(Debug)]
struct Windows {
    left: u32,
    filled: Monotonic,
}

impl Clients {
    fn knows(&self, name: &OwnedUniqueName) -> bool {
        self.subscribers.contains_key(name) || self.agents.contains_key(name)
    }

    /// A client wants signals. Gives whether it was known before.
    pub(super) fn subscribe(&mut self, name: OwnedUniqueName, uid: u32) -> Result<bool, BusError> {
        let known = self.knows(&name);
        let others = self.subscribers.iter().filter(|&(other, &of)| of == uid && *other != name).count();
        room(others, SUBSCRIBERS, uid, "subscribers")?;
        self.subscribers.insert(name, uid);
        Ok(known)
    }

    /// An agent's session begins or has changed. Gives whether the client was known before.
    pub(super) fn register(&mut self, name: OwnedUniqueName, session: Session) -> Result<bool, BusError> {
        let known = self.knows(&name);
        let uid = session.uid;
        let others = self.agents.iter().filter(|&(other, of)| of.uid == uid && *other != name).count();
        room(others, AGENTS, uid, "agents")?;
        self.agents.insert(name, session);
        Ok(known)
    }

    /// A client has left. Gives its session if it was an agent.
    pub(super) fn leave(&mut self, name: &OwnedUniqueName) -> Option<Session> {
        self.subscribers.remove(name);
        let session = self.agents.remove(name)?;
        if self.sessions(session.uid).next().is_none() {
            self.windows.remove(&session.uid);
        }
        Some(session)
    }

    /// Who is told about a user's apps; without a user, everybody that wants to be told anything.
    pub(super) fn subscribers(&self, uid: Option<u32>) -> Vec<OwnedUniqueName> {
        let meant = self.subscribers.iter().filter(|&(_, &of)| uid.is_none_or(|uid| uid == of));
        meant.map(|(name, _)| name.clone()).collect()
    }

    /// The sessions of a user.
    pub(super) fn sessions(&self, uid: u32) -> impl Iterator<Item = &Session> {
        self.agents.values().filter(move |session| session.uid == uid)
    }

    /// Agents that see windows, of all users.
    pub(super) fn agents(&self) -> u32 {
        let seeing = self.agents.values().filter(|session| session.sees_windows).count();
        u32::try_from(seeing).unwrap_or(u32::MAX)
    }

    /// Whether this client may tell of a window now.
    pub(super) fn window(&mut self, name: &OwnedUniqueName, now: Monotonic) -> Result<(), BusError> {
        let Some(uid) = self.agents.get(name).map(|session| session.uid) else {
            return Err(BusError::Failed("windows are told by agents only; call Register first".into()));
        };
        let windows = self.windows.entry(uid).or_insert(Windows { left: WINDOWS, filled: now });
        let every = u64::try_from(WINDOW_EVERY.as_nanos()).unwrap_or(u64::MAX);
        let more = now.since(windows.filled).0 / every;
        windows.left = WINDOWS.min(windows.left.saturating_add(u32::try_from(more).unwrap_or(u32::MAX)));
        windows.filled = windows.filled.after(Duration::from_nanos(more * every));
        match windows.left.checked_sub(1) {
            Some(left) => windows.left = left,
            None => return Err(BusError::Failed("too many windows at once; this one is left out".into())),
        }
        Ok(())
    }
}

fn room(taken: usize, most: usize, uid: u32, what: &str) -> Result<(), BusError> {
    if taken < most {
        return Ok(());
    }
    Err(BusError::Failed(format!("user {uid} has {most} {what} already; end some of them")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: usize) -> OwnedUniqueName {
        OwnedUniqueName::try_from(format!(":1.{number}")).expect("a name")
    }

    fn session(uid: u32, sees_windows: bool) -> Session {
        let (data_dirs, path, desktop) = (Vec::new(), Vec::new(), None);
        Session { client: ":1.0".into(), uid, data_dirs, path, desktop, sees_windows }
    }

    #[test]
    fn each_user_is_told_of_the_own_and_all_of_what_is_everybodys() {
        let mut clients = Clients::default();
        for (number, uid) in [(1, 1000), (2, 1000), (3, 1001)] {
            clients.subscribe(name(number), uid).expect("room");
        }
        assert_eq!(clients.subscribers(Some(1000)), [name(1), name(2)]);
        assert_eq!(clients.subscribers(Some(1001)), [name(3)]);
        assert_eq!(clients.subscribers(None).len(), 3);
        assert_eq!(clients.leave(&name(1)), None);
        assert_eq!(clients.subscribers(Some(1000)), [name(2)]);
        assert!(clients.knows(&name(2)) && !clients.knows(&name(1)));
    }

    #[test]
    fn a_user_has_only_so_many_of_each_and_may_repeat_them() {
        let mut clients = Clients::default();
        for number in 0..SUBSCRIBERS {
            clients.subscribe(name(number), 1000).expect("room");
        }
        assert!(clients.subscribe(name(0), 1000).expect("it is one of them"));
        assert!(matches!(clients.subscribe(name(99), 1000), Err(BusError::Failed(_))));
        clients.subscribe(name(99), 1001).expect("another user's");
        for number in 0..AGENTS {
            clients.register(name(number), session(1000, number == 0)).expect("room");
        }
        assert!(matches!(clients.register(name(99), session(1000, true)), Err(BusError::Failed(_))));
        assert_eq!(clients.agents(), 1);
        clients.register(name(1), session(1000, true)).expect("it has changed");
        assert_eq!(clients.agents(), 2);
        assert_eq!(clients.leave(&name(1)), Some(session(1000, true)));
    }

    #[test]
    fn windows_come_from_agents_and_not_in_floods() {
        let mut clients = Clients::default();
        let at = |millis: u64| Monotonic(1_000_000_000 + millis * 1_000_000);
        clients.window(&name(1), at(0)).expect_err("it is no agent");
        clients.register(name(1), session(1000, true)).expect("room");
        for _ in 0..WINDOWS {
            clients.window(&name(1), at(0)).expect("within what is allowed");
        }
        clients.window(&name(1), at(19)).expect_err("too many");
        clients.window(&name(1), at(20)).expect("one more");
        clients.window(&name(1), at(20)).expect_err("and no other");
        clients.window(&name(1), at(60_000)).expect("long after");
    }
}
