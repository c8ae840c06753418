//! The sessions whose agents have registered, and what each user has installed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use crate::identify::{Index, Installed, Places};
use crate::mounts::Mounts;
use crate::service::messages::Session;
use crate::watch::changes::Folder;

/// The sessions.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    /// In order of their beginning.
    sessions: Vec<Session>,
    known: BTreeMap<u32, Known>,
}

/// What a user has installed.
#[derive(Debug)]
pub(super) struct Known {
    index: Arc<Index>,
    /// Where it was read from.
    folders: Vec<Folder>,
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
        !same || !self.known.contains_key(&uid)
    }

    /// A session is over. What its user has installed is of no use without one.
    pub(super) fn end(&mut self, client: &str) {
        self.sessions.retain(|session| session.client != client);
        let users = self.users();
        self.known.retain(|uid, _| users.contains(uid));
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
    pub(super) fn set_installed(&mut self, uid: u32, known: Known) {
        if self.users().contains(&uid) {
            self.known.insert(uid, known);
        }
    }

    /// What a user has installed, once it was read.
    pub(super) fn index(&self, uid: u32) -> Option<Arc<Index>> {
        self.known.get(&uid).map(|known| Arc::clone(&known.index))
    }

    /// Whether anybody tells of the windows of a user.
    pub(super) fn sees_windows(&self, uid: u32) -> bool {
        self.sessions.iter().any(|session| session.uid == uid && session.sees_windows)
    }

    /// The programs of all apps.
    pub(super) fn programs(&self) -> BTreeSet<PathBuf> {
        self.known.values().flat_map(|known| known.index.files(|_| true)).collect()
    }

    /// The folders in which apps come and go.
    pub(super) fn folders(&self) -> Vec<Folder> {
        let all: BTreeSet<Folder> = self.known.values().flat_map(|known| known.folders.clone()).collect();
        all.into_iter().collect()
    }
}

/// Reads what a user has installed, as all of the user's sessions together see it. Touches drives.
pub(super) fn read(uid: u32, sessions: &[Session], mounts: &Mounts) -> Known {
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
    let mut installed = Installed::read(Places { data_dirs: &data_dirs, path: &path }, mounts);
    let folders = std::mem::take(&mut installed.folders);
    Known { index: Arc::new(Index::new(uid, installed)), folders }
}
