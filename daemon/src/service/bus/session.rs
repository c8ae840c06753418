//! What agents tell: sessions and windows. Nothing of it is believed beyond the agent's own user.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use headstart_shared::bus::{BusError, SessionInfo, WindowInfo};
use zbus::interface;
use zbus::message::Header;

use super::callers::{Caller, lock};
use super::leaving;
use super::state::State;
use crate::roots::Roots;
use crate::service::messages::{self, Request, Window};
use crate::watch::start::Monotonic;

/// Folders of a list, and bytes of each, that are taken over.
const FOLDERS: usize = 64;
const LONGEST: usize = 4096;
/// Names of a window, and bytes of each.
const NAMES: usize = 8;
const LONGEST_NAME: usize = 256;

/// The interface for agents.
pub(super) struct Session {
    state: Arc<State>,
}

impl Session {
    pub(super) fn new(state: Arc<State>) -> Self {
        Self { state }
    }
}

// In order: a window must not overtake the session that it belongs to.
#[interface(
    name = "io.github.headstart_desktop.Headstart1.Session",
    spawn = false,
    introspection_docs = false
)]
impl Session {
    async fn register(
        &self,
        session: SessionInfo,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<(), BusError> {
        let caller = self.state.caller(&header).await?;
        let session = sound(session, &caller);
        let known = lock(&self.state.clients).register(caller.name.clone(), session.clone())?;
        leaving::watch(&self.state, &caller.name, known).await?;
        self.state.tell(Request::Session(session));
        Ok(())
    }

    async fn window_shown(
        &self,
        window: WindowInfo,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<(), BusError> {
        let caller = self.state.caller(&header).await?;
        let now = Monotonic::now();
        lock(&self.state.clients).window(&caller.name, now)?;
        self.state.tell(Request::Window(seen(window, caller.user.uid, now, &self.state.roots)));
        Ok(())
    }
}

/// A session without what makes no sense.
fn sound(info: SessionInfo, caller: &Caller) -> messages::Session {
    messages::Session {
        client: caller.name.to_string(),
        uid: caller.user.uid,
        data_dirs: folders(info.data_dirs),
        path: folders(info.path.unwrap_or_default()),
        desktop: info.desktop.filter(|name| name.len() <= LONGEST_NAME),
        sees_windows: info.x11 || info.wayland,
    }
}

/// The first so many that lead straight from the root.
fn folders(named: Vec<String>) -> Vec<PathBuf> {
    let straight = |path: &Path| {
        path.is_absolute() && path.components().all(|part| !matches!(part, Component::ParentDir))
    };
    let mut folders: Vec<PathBuf> = Vec::new();
    for name in named {
        // Without doubled and trailing slashes, so that each is there once.
        let folder: PathBuf = Path::new(&name).components().collect();
        let sound = name.len() <= LONGEST && !name.contains('\0') && straight(&folder);
        if sound && !folders.contains(&folder) && folders.len() < FOLDERS {
            folders.push(folder);
        }
    }
    folders
}

fn seen(info: WindowInfo, uid: u32, now: Monotonic, roots: &Roots) -> Window {
    let names = info.names.into_iter().filter(|name| !name.is_empty() && name.len() <= LONGEST_NAME);
    Window {
        uid,
        // What is yet to come is not seen.
        at: Monotonic(info.at.min(now.0)),
        pid: info.pid.filter(|&pid| owner(roots, pid) == Some(uid)),
        names: names.take(NAMES).collect(),
    }
}

/// Whose process this is: its real user. Another's is not the agent's to speak of, and a number from another process
/// namespace means nothing here.
fn owner(roots: &Roots, pid: i32) -> Option<u32> {
    if pid <= 0 {
        return None;
    }
    let status = std::fs::read_to_string(roots.proc.join(format!("{pid}/status"))).ok()?;
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    uids.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_that_lead_straight_from_the_root_are_taken_over() {
        let named = ["/usr/share/", "/usr//share", "share", "", "/home/../root", "/a\0b", "/opt/share"];
        let taken = folders(named.map(str::to_owned).into());
        assert_eq!(taken, [Path::new("/usr/share"), Path::new("/opt/share")]);
        assert_eq!(folders(vec![format!("/{}", "x".repeat(LONGEST))]), Vec::<PathBuf>::new());
        assert_eq!(folders((0..200).map(|n| format!("/{n}")).collect()).len(), FOLDERS);
    }

    #[test]
    fn a_window_is_of_the_past_and_of_a_process_of_the_same_user() {
        let roots = Roots::default();
        let (own, uid) = (std::process::id().cast_signed(), rustix::process::getuid().as_raw());
        let now = Monotonic(1000);
        let window = |at, pid| {
            let names = vec![String::new(), "x".repeat(LONGEST_NAME + 1), "gedit".to_owned()];
            seen(WindowInfo { at, pid: Some(pid), names }, uid, now, &roots)
        };
        let names = vec!["gedit".to_owned()];
        assert_eq!(window(900, own), Window { uid, at: Monotonic(900), pid: Some(own), names });
        assert_eq!(window(2000, own).at, now);
        for nobodys in [0, -1, i32::MAX] {
            assert_eq!(window(900, nobodys).pid, None);
        }
        let others = WindowInfo { at: 900, pid: Some(own), names: Vec::new() };
        assert_eq!(seen(others, uid + 1, now, &roots).pid, None);
    }
}
