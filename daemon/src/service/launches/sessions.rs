//! The sessions whose agents have registered, and what each user has installed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use crate::identify::{Index, Installed, Places};
use crate::mounts::Mounts;
use crate::service::messages::Session;

/// The sessions.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    /// In order of their beginning.
    sessions: Vec<Session>,
    indexes: BTreeMap<u32, Arc<Index>>,
}

impl Sessions {
    /// A session begins, or has changed. Gives whether anything is to be read that was not.
    pub(super) fn begin(&mut self, session: Session) -> bool {
        let same = self.sessions.iter().any(|known| {
            known.uid == session.uid && known.data_dirs == session.data_dirs && known.path == session.path
        });
        self.sessions.retain(|known| known.client != session.client);
        let uid = session.uid;
        self.sessions.push(session);
        !same || !self.indexes.contains_key(&uid)
    }

    /// A session is over. What its user has installed is of no use without one.
    pub(super) fn end(&mut self, client: &str) {
        self.sessions.retain(|session| session.client != client);
        let users = self.users();
        self.indexes.retain(|uid, _| users.contains(uid));
    }

    /// The users that have a session.
    pub(super) fn users(&self) -> BTreeSet<u32> {
        self.sessions.iter().map(|session| session.uid).collect()
    }

    /// A user's sessions.
    pub(super) fn of(&self, uid: u32) -> Vec<Session> {
        self.sessions.iter().filter(|session| session.uid == uid).cloned().collect()
    }

    /// What was read of what a user has installed. Dropped if the user has no session any more.
    pub(super) fn set_index(&mut self, uid: u32, index: Index) {
        if self.users().contains(&uid) {
            self.indexes.insert(uid, Arc::new(index));
        }
    }

    /// What a user has installed, once it was read.
    pub(super) fn index(&self, uid: u32) -> Option<Arc<Index>> {
        self.indexes.get(&uid).map(Arc::clone)
    }

    /// Whether anybody tells of the windows of a user.
    pub(super) fn sees_windows(&self, uid: u32) -> bool {
        self.sessions.iter().any(|session| session.uid == uid && session.sees_windows)
    }

    /// The programs of all apps.
    pub(super) fn programs(&self) -> BTreeSet<PathBuf> {
        self.indexes.values().flat_map(|index| index.files(|_| true)).collect()
    }
}

/// Reads what a user has installed, as all of the user's sessions together see it. Touches drives.
pub(super) fn read(uid: u32, sessions: &[Session], mounts: &Mounts) -> Index {
    let mut data_dirs: Vec<PathBuf> = Vec::new();
    let mut path: Vec<PathBuf> = Vec::new();
    for session in sessions {
        data_dirs.extend(session.data_dirs.iter().cloned());
        path.extend(session.path.iter().cloned());
    }
    for list in [&mut data_dirs, &mut path] {
        let mut seen = BTreeSet::new();
        list.retain(|dir| seen.insert(dir.clone()));
    }
    Index::new(uid, Installed::read(Places { data_dirs: &data_dirs, path: &path }, mounts))
}
