//! What a user can launch: the desktop entries of the user's sessions, by ID with their untranslated names.
//!
//! Folders are named by the user, so they are looked at with that user's eyes, on a thread that may be left waiting:
//! what hangs there (a file system of the user's own making, say) holds up nothing but that user's list.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::oneshot;

use super::callers::lock;
use crate::service::messages::Session;
use crate::sys::identity::{FileUser, User};
use crate::watch::desktop::Catalogue;
use crate::watch::desktop::locale::Locale;

/// How long a list is waited for. One of 500 entries takes some 20 ms when nothing of it is in memory on a flash drive.
const PATIENCE: Duration = Duration::from_secs(5);
/// A folder below an `applications` folder changes without it; so the list is read anew after this in any case.
const LASTS: Duration = Duration::from_mins(5);
/// Apps of one user that are listed at most.
const MOST: usize = 20_000;

/// An installed app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct App {
    /// Its untranslated name.
    pub(super) name: String,
    /// Whether menus of the session show it.
    pub(super) shown: bool,
}

/// The installed apps of a user.
pub(super) type Apps = BTreeMap<String, App>;

/// What is known of all users.
#[derive(Debug, Default)]
pub(super) struct Installed {
    users: Mutex<HashMap<u32, Arc<tokio::sync::Mutex<Known>>>>,
}

#[derive(Debug, Default)]
struct Known {
    list: Arc<List>,
    /// Of a thread that was not waited for any longer.
    pending: Option<oneshot::Receiver<List>>,
}

/// A list, and what it was made from.
#[derive(Debug, Default)]
struct List {
    apps: Arc<Apps>,
    sources: Vec<Source>,
    changed: Vec<Option<SystemTime>>,
    read: Option<Instant>,
}

/// A session, as far as it says what is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source {
    dirs: Vec<PathBuf>,
    path: Vec<PathBuf>,
    desktop: Option<String>,
}

impl Source {
    /// Of a session.
    pub(super) fn of(session: &Session) -> Self {
        let dirs = session.data_dirs.iter().map(|dir| dir.join("applications")).collect();
        Self { dirs, path: session.path.clone(), desktop: session.desktop.clone() }
    }
}

impl Installed {
    /// The apps that a user's sessions can launch; none if they have no sessions.
    pub(super) async fn of(&self, user: &User, sources: Vec<Source>) -> Arc<Apps> {
        if sources.is_empty() {
            self.forget(user.uid);
            return Arc::default();
        }
        let known = Arc::clone(lock(&self.users).entry(user.uid).or_default());
        // Whoever asks meanwhile waits for the same list.
        let mut known = known.lock().await;
        let mut pending = match known.pending.take() {
            Some(pending) => pending,
            None => look(user.clone(), sources, Arc::clone(&known.list)),
        };
        match tokio::time::timeout(PATIENCE, &mut pending).await {
            Ok(Ok(list)) => known.list = Arc::new(list),
            // It was not even begun: no thread or no rights.
            Ok(Err(_)) => {}
            Err(_) => known.pending = Some(pending),
        }
        Arc::clone(&known.list.apps)
    }

    /// What was last known of a user's apps; nothing while it is being looked for.
    pub(super) fn last(&self, uid: u32) -> Arc<Apps> {
        let known = lock(&self.users).get(&uid).cloned();
        known.and_then(|known| Some(Arc::clone(&known.try_lock().ok()?.list.apps))).unwrap_or_default()
    }

    /// A user has no sessions any more.
    pub(super) fn forget(&self, uid: u32) {
        lock(&self.users).remove(&uid);
    }
}

/// Has a thread of its own look. Without one the answer is none.
fn look(user: User, sources: Vec<Source>, last: Arc<List>) -> oneshot::Receiver<List> {
    let (sender, receiver) = oneshot::channel();
    let work = move || {
        if let Ok(eyes) = FileUser::new(&user) {
            // Nobody may be waiting any more.
            let _ = sender.send(eyes.during(|| list(sources, &last)));
        }
    };
    // Whether it could be started is seen by the channel, which is then closed.
    let _ = std::thread::Builder::new().name("installed".into()).stack_size(512 << 10).spawn(work);
    receiver
}

/// The list now: the last one, if nothing has changed.
fn list(sources: Vec<Source>, last: &List) -> List {
    let dirs = sources.iter().flat_map(|source| &source.dirs);
    let changed: Vec<Option<SystemTime>> =
        dirs.map(|dir| std::fs::metadata(dir).and_then(|found| found.modified()).ok()).collect();
    let fresh = last.read.filter(|read| read.elapsed() < LASTS);
    if fresh.is_some() && last.sources == sources && last.changed == changed {
        return List { apps: Arc::clone(&last.apps), sources, changed, read: fresh };
    }
    let mut apps = Apps::new();
    for source in &sources {
        let catalogue = Catalogue::load(&source.dirs, &Locale::default(), &source.path);
        let desktop = source.desktop.as_deref().map(std::ffi::OsStr::new);
        for entry in catalogue.entries().filter(|entry| entry.installed).take(MOST) {
            let app = App { name: entry.plain_name.clone(), shown: entry.shown_in(desktop) };
            apps.entry(entry.id.clone()).or_insert(app);
        }
    }
    List { apps: Arc::new(apps), sources, changed, read: Some(Instant::now()) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn me() -> User {
        let uid = rustix::process::getuid().as_raw();
        User { uid, gid: rustix::process::getgid().as_raw(), groups: Vec::new() }
    }

    fn install(dir: &Path, id: &str, more: &str) {
        let text = format!("[Desktop Entry]\nType=Application\nName=The {id}\nExec=true\n{more}\n");
        fs::write(dir.join(format!("{id}.desktop")), text).expect("written");
    }

    fn source(dir: &Path) -> Vec<Source> {
        vec![Source { dirs: vec![dir.to_path_buf()], path: vec!["/usr/bin".into()], desktop: None }]
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
    }

    #[test]
    fn a_list_follows_what_is_installed() {
        let dir = tempfile::tempdir().expect("a folder");
        install(dir.path(), "one", "");
        install(dir.path(), "helper", "NoDisplay=true");
        install(dir.path(), "gone", "TryExec=/nonexistent/program");
        let (installed, runtime) = (Installed::default(), runtime());
        let ask = || runtime.block_on(installed.of(&me(), source(dir.path())));
        let first = ask();
        let listed: Vec<_> =
            first.iter().map(|(id, app)| (id.as_str(), app.name.as_str(), app.shown)).collect();
        assert_eq!(listed, [("helper", "The helper", false), ("one", "The one", true)]);
        assert!(Arc::ptr_eq(&first, &ask()), "it is not read again while nothing changes");
        install(dir.path(), "two", "");
        assert!(ask().contains_key("two"));
        assert!(runtime.block_on(installed.of(&me(), Vec::new())).is_empty());
    }

    #[test]
    fn as_root_others_folders_are_seen_with_their_owners_eyes() {
        if !rustix::process::geteuid().is_root() {
            return crate::watch::testing::skip("root");
        }
        let dir = tempfile::tempdir().expect("a folder");
        install(dir.path(), "secret", "");
        let (installed, runtime) = (Installed::default(), runtime());
        let nobody = User { uid: 65534, gid: 65534, groups: Vec::new() };
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).expect("its mode");
        assert!(runtime.block_on(installed.of(&nobody, source(dir.path()))).is_empty());
        assert!(runtime.block_on(installed.of(&me(), source(dir.path()))).contains_key("secret"));
    }
}
