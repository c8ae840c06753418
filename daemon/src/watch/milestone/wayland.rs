//! Windows of a Wayland compositor that lists them: `ext-foreign-toplevel-list-v1` (wayland-protocols, staging) or
//! `wlr-foreign-toplevel-management-unstable-v1`. A compositor adds a toplevel when it maps it.
//!
//! GNOME and Weston have neither; there the program's own protocol log tells ([`super::protocol_log`]).

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use wayland_client::backend::ObjectId;
use wayland_client::globals::{GlobalListContents, registry_queue_init};
use wayland_client::protocol::wl_registry::{self, WlRegistry};
use wayland_client::{Connection, Dispatch, EventQueue, Proxy, QueueHandle, event_created_child};
use wayland_protocols::ext::foreign_toplevel_list::v1::client::{
    ext_foreign_toplevel_handle_v1::{self, ExtForeignToplevelHandleV1},
    ext_foreign_toplevel_list_v1::{self, ExtForeignToplevelListV1},
};
use wayland_protocols_wlr::foreign_toplevel::v1::client::{
    zwlr_foreign_toplevel_handle_v1::{self, ZwlrForeignToplevelHandleV1},
    zwlr_foreign_toplevel_manager_v1::{self, ZwlrForeignToplevelManagerV1},
};

use super::{Hints, Signal};
use crate::watch::session::Session;
use crate::watch::start::Monotonic;

/// What a failure to connect begins with.
pub(super) const FAILURE: &str = "Wayland display";

/// The compositor's socket, if the session has one.
pub(super) fn socket(session: &Session) -> Option<PathBuf> {
    let display = Path::new(session.var("WAYLAND_DISPLAY")?);
    if display.is_absolute() {
        return Some(display.to_path_buf());
    }
    Some(Path::new(session.var("XDG_RUNTIME_DIR")?).join(display))
}

/// A window that the compositor listed.
#[derive(Debug)]
struct Toplevel {
    /// When it was listed.
    at: Monotonic,
    app_id: String,
    title: String,
    existed: bool,
    /// It can be closed through this, with the one of the two protocols that has that.
    handle: Option<ZwlrForeignToplevelHandleV1>,
}

type Toplevels = Arc<Mutex<HashMap<ObjectId, Toplevel>>>;

/// Watches a compositor's list until dropped.
pub(super) struct Listener {
    connection: Connection,
    toplevels: Toplevels,
    earlier: Vec<(String, String)>,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Connects, notes what is listed, and begins to listen. `None` if the compositor lists nothing.
    pub(super) fn start(socket: &Path, signals: Sender<Signal>) -> Result<Option<Self>, String> {
        Self::try_start(socket, signals)
            .map_err(|failure| format!("{FAILURE} {}: {failure}", socket.display()))
    }

    fn try_start(
        socket: &Path,
        signals: Sender<Signal>,
    ) -> Result<Option<Self>, Box<dyn std::error::Error + Send + Sync>> {
        let connection = Connection::from_socket(UnixStream::connect(socket)?)?;
        let (globals, mut queue) = registry_queue_init::<State>(&connection)?;
        let handle = queue.handle();
        let wlr = globals.bind::<ZwlrForeignToplevelManagerV1, _, _>(&handle, 1..=3, ());
        // Both list the same windows; the one that can also close them is preferred.
        if wlr.is_err() && globals.bind::<ExtForeignToplevelListV1, _, _>(&handle, 1..=1, ()).is_err() {
            return Ok(None);
        }
        let toplevels = Toplevels::default();
        let mut state = State { toplevels: Arc::clone(&toplevels), signals: None };
        // The first lists the windows, the second what is known of each.
        queue.roundtrip(&mut state)?;
        queue.roundtrip(&mut state)?;
        let earlier = {
            let mut listed = toplevels.lock().unwrap_or_else(PoisonError::into_inner);
            listed.values_mut().for_each(|toplevel| toplevel.existed = true);
            listed.values().map(|t| (t.app_id.clone(), t.title.clone())).collect()
        };
        state.signals = Some(signals);
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let thread = thread::Builder::new().name("wayland-windows".into()).spawn({
            let stop = Arc::clone(&stop);
            // An end of the connection ends the list.
            move || drop(follow(&mut queue, &mut state, &stop))
        })?;
        Ok(Some(Self { connection, toplevels, earlier, stop, thread: Some(thread) }))
    }

    /// The title of a window of the application that was there before, if there was one.
    pub(super) fn earlier_window(&self, hints: &Hints) -> Option<String> {
        self.earlier.iter().find(|(app_id, _)| hints.matches(app_id)).map(|(_, title)| title.clone())
    }

    /// Asks the application's new windows to close; how many were asked.
    pub(super) fn close_windows(&self, hints: &Hints) -> usize {
        let toplevels = self.toplevels.lock().unwrap_or_else(PoisonError::into_inner);
        let ours = toplevels.values().filter(|t| !t.existed && hints.matches(&t.app_id));
        let asked = ours.filter_map(|t| t.handle.as_ref()).map(ZwlrForeignToplevelHandleV1::close).count();
        let _ = self.connection.flush();
        asked
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Blocks on the connection until it ends or `stop` is written to.
fn follow(
    queue: &mut EventQueue<State>,
    state: &mut State,
    stop: &OwnedFd,
) -> Result<(), Box<dyn std::error::Error>> {
    loop {
        queue.dispatch_pending(state)?;
        queue.flush()?;
        let Some(guard) = queue.prepare_read() else { continue };
        let socket = guard.connection_fd();
        let mut fds =
            [PollFd::new(&socket, PollFlags::IN), PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN)];
        match poll(&mut fds, None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(io::Error::from(error).into()),
        }
        if !fds[1].revents().is_empty() {
            return Ok(());
        }
        guard.read()?;
    }
}

struct State {
    toplevels: Toplevels,
    /// `None` while the list is read for the first time.
    signals: Option<Sender<Signal>>,
}

impl State {
    fn edit(&self, id: &ObjectId, edit: impl FnOnce(&mut Toplevel)) {
        let mut toplevels = self.toplevels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(toplevel) = toplevels.get_mut(id) {
            edit(toplevel);
        }
    }

    fn listed(&self, id: ObjectId, handle: Option<ZwlrForeignToplevelHandleV1>) {
        let toplevel = Toplevel {
            at: Monotonic::now(),
            app_id: String::new(),
            title: String::new(),
            existed: false,
            handle,
        };
        self.toplevels.lock().unwrap_or_else(PoisonError::into_inner).insert(id, toplevel);
    }

    fn closed(&self, id: &ObjectId) {
        self.toplevels.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    /// All that is known now of a window was sent.
    fn done(&self, id: &ObjectId) {
        let Some(signals) = &self.signals else { return };
        self.edit(id, |toplevel| {
            if !toplevel.existed && !toplevel.app_id.is_empty() {
                // Nobody listens any more when the start is over.
                let _ = signals.send(Signal::Toplevel(toplevel.at, toplevel.app_id.clone()));
            }
        });
    }
}

impl Dispatch<WlRegistry, GlobalListContents> for State {
    fn event(
        _: &mut Self,
        _: &WlRegistry,
        _: wl_registry::Event,
        _: &GlobalListContents,
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
    }
}

impl Dispatch<ExtForeignToplevelListV1, ()> for State {
    fn event(
        state: &mut Self,
        _: &ExtForeignToplevelListV1,
        event: ext_foreign_toplevel_list_v1::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        if let ext_foreign_toplevel_list_v1::Event::Toplevel { toplevel } = event {
            state.listed(toplevel.id(), None);
        }
    }

    event_created_child!(State, ExtForeignToplevelListV1, [
        ext_foreign_toplevel_list_v1::EVT_TOPLEVEL_OPCODE => (ExtForeignToplevelHandleV1, ()),
    ]);
}

impl Dispatch<ExtForeignToplevelHandleV1, ()> for State {
    fn event(
        state: &mut Self,
        handle: &ExtForeignToplevelHandleV1,
        event: ext_foreign_toplevel_handle_v1::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        use ext_foreign_toplevel_handle_v1::Event;
        match event {
            Event::AppId { app_id } => state.edit(&handle.id(), |t| t.app_id = app_id),
            Event::Title { title } => state.edit(&handle.id(), |t| t.title = title),
            Event::Done => state.done(&handle.id()),
            Event::Closed => state.closed(&handle.id()),
            _ => {}
        }
    }
}

impl Dispatch<ZwlrForeignToplevelManagerV1, ()> for State {
    fn event(
        state: &mut Self,
        _: &ZwlrForeignToplevelManagerV1,
        event: zwlr_foreign_toplevel_manager_v1::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        if let zwlr_foreign_toplevel_manager_v1::Event::Toplevel { toplevel } = event {
            state.listed(toplevel.id(), Some(toplevel));
        }
    }

    event_created_child!(State, ZwlrForeignToplevelManagerV1, [
        zwlr_foreign_toplevel_manager_v1::EVT_TOPLEVEL_OPCODE => (ZwlrForeignToplevelHandleV1, ()),
    ]);
}

impl Dispatch<ZwlrForeignToplevelHandleV1, ()> for State {
    fn event(
        state: &mut Self,
        handle: &ZwlrForeignToplevelHandleV1,
        event: zwlr_foreign_toplevel_handle_v1::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        use zwlr_foreign_toplevel_handle_v1::Event;
        match event {
            Event::AppId { app_id } => state.edit(&handle.id(), |t| t.app_id = app_id),
            Event::Title { title } => state.edit(&handle.id(), |t| t.title = title),
            Event::Done => state.done(&handle.id()),
            Event::Closed => state.closed(&handle.id()),
            _ => {}
        }
    }
}

#[cfg(test)]
#[path = "wayland_tests.rs"]
mod tests;
