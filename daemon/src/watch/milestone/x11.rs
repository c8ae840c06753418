//! Windows of an X server: seen when they become viewable, and whose they are.
//!
//! One thread blocks on the connection and takes the time when an event is read. Children of the roots are known from
//! their creation on and watched one by one, since a window manager puts a client's window into a frame, where the root
//! no longer hears of it. A window counts from the first event after which the server calls it *viewable*: mapped, and
//! its frame too (X Window System Protocol, `GetWindowAttributes`).

use std::collections::HashMap;
use std::ffi::OsStr;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use x11rb::connection::{Connection, RequestConnection};
use x11rb::protocol::Event;
use x11rb::protocol::res::{ClientIdMask, ClientIdSpec, ConnectionExt as _};
use x11rb::protocol::xproto::{
    AtomEnum, ChangeWindowAttributesAux, ClientMessageEvent, ConnectionExt as _, CreateWindowAux, EventMask,
    GetPropertyReply, MapState, Window, WindowClass,
};
use x11rb::reexports::x11rb_protocol::parse_display::parse_display;
use x11rb::rust_connection::{DefaultStream, RustConnection};

use super::{Hints, Signal, xauth};
use crate::watch::session::Session;
use crate::watch::start::Monotonic;

x11rb::atom_manager! {
    /// The atoms used here.
    Atoms: AtomCookies {
        _NET_WM_NAME,
        _NET_WM_PID,
        _NET_WM_WINDOW_TYPE,
        _NET_WM_WINDOW_TYPE_COMBO,
        _NET_WM_WINDOW_TYPE_DND,
        _NET_WM_WINDOW_TYPE_DROPDOWN_MENU,
        _NET_WM_WINDOW_TYPE_NOTIFICATION,
        _NET_WM_WINDOW_TYPE_POPUP_MENU,
        _NET_WM_WINDOW_TYPE_SPLASH,
        _NET_WM_WINDOW_TYPE_TOOLTIP,
        WM_DELETE_WINDOW,
        WM_PROTOCOLS,
    }
}

/// What is known of a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(super) struct Facts {
    pub(super) id: Window,
    /// The process: of the connection, as the server knows it, else as the window says of itself.
    pub(super) pid: Option<i32>,
    /// The two parts of `WM_CLASS`; empty if it has none.
    pub(super) instance: String,
    pub(super) class: String,
    pub(super) title: String,
    pub(super) width: u16,
    pub(super) height: u16,
    pub(super) override_redirect: bool,
    pub(super) input_only: bool,
    pub(super) splash: bool,
    /// A menu, tooltip, notification or the like, by its type.
    pub(super) popup: bool,
    /// Whether it was there before the start.
    pub(super) existed: bool,
    pub(super) viewable: bool,
    /// It says itself that it can be asked to close.
    pub(super) closes: bool,
}

/// The connection and what was found out about the server.
struct Server {
    connection: RustConnection,
    atoms: Atoms,
    /// A window of ours that is never mapped: a message to it wakes the thread.
    own: Window,
    /// Whether the server tells which process a connection is of (X-Resource 1.2).
    knows_clients: bool,
    host: Vec<u8>,
}

/// Watches an X server until dropped.
pub(super) struct Listener {
    server: Arc<Server>,
    /// Windows that were there at the start, for telling an earlier instance.
    earlier: Vec<Facts>,
    known: Arc<Mutex<HashMap<Window, Tracked>>>,
    thread: Option<JoinHandle<()>>,
}

/// A window that is being watched.
#[derive(Clone, Copy, Debug)]
struct Tracked {
    existed: bool,
    viewable_since: Option<Monotonic>,
    size: (u16, u16),
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

impl Listener {
    /// Connects to `display` as the person of `session` would, notes what is there, and begins to listen.
    pub(super) fn start(display: &OsStr, session: &Session, signals: Sender<Signal>) -> Result<Self, String> {
        Self::try_start(display, session, signals)
            .map_err(|failure| format!("X display {}: {failure}", display.to_string_lossy()))
    }

    fn try_start(display: &OsStr, session: &Session, signals: Sender<Signal>) -> Result<Self, Failure> {
        let name = display.to_str().ok_or("its name is not UTF-8")?;
        let server = Arc::new(Server::connect(name, session)?);
        let known = server.select_and_list()?;
        let earlier: Vec<Facts> = known.keys().filter_map(|&window| server.facts(window, true)).collect();
        let known = Arc::new(Mutex::new(known));
        let thread = thread::Builder::new().name("x11-windows".into()).spawn({
            let (server, known) = (Arc::clone(&server), Arc::clone(&known));
            move || Thread { server: &server, known: &known, signals: &signals }.run()
        })?;
        Ok(Self { server, earlier, known, thread: Some(thread) })
    }

    /// The title of a window of the application that was there before, if there was one.
    pub(super) fn earlier_window(&self, hints: &Hints) -> Option<String> {
        let named = |f: &&Facts| hints.matches(&f.instance) || hints.matches(&f.class);
        let real = |f: &&Facts| f.viewable && !f.override_redirect && !f.input_only;
        self.earlier.iter().filter(named).find(real).map(|facts| facts.title.clone())
    }

    /// Asks the windows that `ours` says yes to to close (ICCCM 4.2.8.1); how many were asked.
    pub(super) fn close_windows(&self, ours: impl Fn(&Facts) -> bool) -> usize {
        let known: Vec<(Window, bool)> = {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.iter().map(|(&window, tracked)| (window, tracked.existed)).collect()
        };
        let asked = known
            .into_iter()
            .filter_map(|(window, existed)| self.server.facts(window, existed))
            .filter(|facts| facts.viewable && facts.closes && ours(facts))
            .filter(|facts| self.server.ask_to_close(facts.id).is_ok())
            .count();
        let _ = self.server.connection.flush();
        asked
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let woken = self.server.wake();
        // A server that is gone has ended the thread by itself.
        if let (Some(thread), true) = (self.thread.take(), woken.is_ok()) {
            let _ = thread.join();
        }
    }
}

impl Server {
    fn connect(display: &str, session: &Session) -> Result<Self, Failure> {
        let parsed = parse_display(Some(display))?;
        let mut failure: Failure = "no such display".into();
        for address in parsed.connect_instruction() {
            let (stream, (family, peer)) = match DefaultStream::connect(&address) {
                Ok(connected) => connected,
                Err(error) => {
                    failure = error.into();
                    continue;
                }
            };
            let (name, data) = xauth::cookie(session, family, &peer, parsed.display);
            let screen = usize::from(parsed.screen);
            let connection = RustConnection::connect_to_stream_with_auth_info(stream, screen, name, data)?;
            return Self::new(connection);
        }
        Err(failure)
    }

    fn new(connection: RustConnection) -> Result<Self, Failure> {
        let atoms = Atoms::new(&connection)?.reply()?;
        let own = connection.generate_id()?;
        let root = connection.setup().roots.first().ok_or("it has no screen")?.root;
        let nothing = CreateWindowAux::new();
        connection
            .create_window(0, own, root, 0, 0, 1, 1, 0, WindowClass::INPUT_ONLY, 0, &nothing)?
            .check()?;
        let knows_clients = knows_clients(&connection);
        let host = rustix::system::uname().nodename().to_bytes().to_vec();
        Ok(Self { connection, atoms, own, knows_clients, host })
    }

    /// Selects events of all roots and lists the windows that are there: their children, and the children of frames.
    fn select_and_list(&self) -> Result<HashMap<Window, Tracked>, Failure> {
        let roots: Vec<Window> = self.connection.setup().roots.iter().map(|screen| screen.root).collect();
        let events = ChangeWindowAttributesAux::new().event_mask(EventMask::SUBSTRUCTURE_NOTIFY);
        let mut known = HashMap::new();
        for root in roots {
            self.connection.change_window_attributes(root, &events)?.check()?;
            for child in self.connection.query_tree(root)?.reply()?.children {
                // Windows may go while we look.
                let below = self.connection.query_tree(child)?.reply().map(|tree| tree.children);
                for window in below.unwrap_or_default().into_iter().chain([child]) {
                    if window != self.own {
                        self.watch(window)?;
                        let viewable_since = self.viewable(window).then(Monotonic::now);
                        known.insert(window, Tracked { existed: true, viewable_since, size: (0, 0) });
                    }
                }
            }
        }
        Ok(known)
    }

    /// Selects what a window tells about itself.
    fn watch(&self, window: Window) -> Result<(), Failure> {
        let events = ChangeWindowAttributesAux::new()
            .event_mask(EventMask::STRUCTURE_NOTIFY | EventMask::PROPERTY_CHANGE);
        // It may be gone already: the error then comes as an event, and is passed over.
        self.connection.change_window_attributes(window, &events)?;
        Ok(())
    }

    fn viewable(&self, window: Window) -> bool {
        let reply = self.connection.get_window_attributes(window).ok().and_then(|cookie| cookie.reply().ok());
        reply.is_some_and(|attributes| attributes.map_state == MapState::VIEWABLE)
    }

    /// All facts in one round trip. `None` if the window is gone.
    fn facts(&self, window: Window, existed: bool) -> Option<Facts> {
        let c = &self.connection;
        let property =
            |name: u32, kind: AtomEnum, longs: u32| c.get_property(false, window, name, kind, 0, longs).ok();
        let attributes = c.get_window_attributes(window).ok()?;
        let geometry = c.get_geometry(window).ok()?;
        let class = property(AtomEnum::WM_CLASS.into(), AtomEnum::STRING, 128)?;
        let machine = property(AtomEnum::WM_CLIENT_MACHINE.into(), AtomEnum::ANY, 64)?;
        let pid = property(self.atoms._NET_WM_PID, AtomEnum::CARDINAL, 1)?;
        let types = property(self.atoms._NET_WM_WINDOW_TYPE, AtomEnum::ATOM, 16)?;
        let protocols = property(self.atoms.WM_PROTOCOLS, AtomEnum::ATOM, 32)?;
        let title = property(self.atoms._NET_WM_NAME, AtomEnum::ANY, 64)?;
        let old_title = property(AtomEnum::WM_NAME.into(), AtomEnum::ANY, 64)?;
        let client = self.ask_for_client(window);

        let attributes = attributes.reply().ok()?;
        let geometry = geometry.reply().ok()?;
        let values = |reply: Option<GetPropertyReply>| -> Vec<u32> {
            reply.and_then(|r| r.value32().map(Iterator::collect)).unwrap_or_default()
        };
        let text = |reply: Option<GetPropertyReply>| reply.map(|r| r.value).unwrap_or_default();
        let (instance, class) = split_class(&text(class.reply().ok()));
        let machine = text(machine.reply().ok());
        let local = machine.is_empty() || machine == self.host || machine == b"localhost";
        let stated =
            values(pid.reply().ok()).first().and_then(|&pid| i32::try_from(pid).ok()).filter(|_| local);
        let types = values(types.reply().ok());
        let protocols = values(protocols.reply().ok());
        let title = text(title.reply().ok());
        let old_title = text(old_title.reply().ok());
        let title = if title.is_empty() { old_title } else { title };
        let kind = self.kind(&types);
        Some(Facts {
            id: window,
            pid: client.and_then(|cookie| client_pid(&cookie.reply().ok()?)).or(stated),
            instance,
            class,
            title: String::from_utf8_lossy(&title).into_owned(),
            width: geometry.width,
            height: geometry.height,
            override_redirect: attributes.override_redirect,
            input_only: attributes.class == WindowClass::INPUT_ONLY,
            splash: kind == Kind::Splash,
            popup: kind == Kind::Popup,
            existed,
            viewable: attributes.map_state == MapState::VIEWABLE,
            closes: protocols.contains(&self.atoms.WM_DELETE_WINDOW),
        })
    }

    /// A window lists its types with the preferred one first; the first that is known here decides.
    fn kind(&self, types: &[u32]) -> Kind {
        let a = &self.atoms;
        let popups = [
            a._NET_WM_WINDOW_TYPE_COMBO,
            a._NET_WM_WINDOW_TYPE_DND,
            a._NET_WM_WINDOW_TYPE_DROPDOWN_MENU,
            a._NET_WM_WINDOW_TYPE_NOTIFICATION,
            a._NET_WM_WINDOW_TYPE_POPUP_MENU,
            a._NET_WM_WINDOW_TYPE_TOOLTIP,
        ];
        match types.first() {
            Some(&kind) if kind == a._NET_WM_WINDOW_TYPE_SPLASH => Kind::Splash,
            Some(kind) if popups.contains(kind) => Kind::Popup,
            _ => Kind::Window,
        }
    }

    fn ask_for_client(
        &self,
        window: Window,
    ) -> Option<x11rb::cookie::Cookie<'_, RustConnection, x11rb::protocol::res::QueryClientIdsReply>> {
        let spec = ClientIdSpec { client: window, mask: ClientIdMask::LOCAL_CLIENT_PID };
        self.knows_clients.then(|| self.connection.res_query_client_ids(&[spec]).ok()).flatten()
    }

    fn ask_to_close(&self, window: Window) -> Result<(), Failure> {
        let data = [self.atoms.WM_DELETE_WINDOW, 0, 0, 0, 0];
        let message = ClientMessageEvent::new(32, window, self.atoms.WM_PROTOCOLS, data);
        self.connection.send_event(false, window, EventMask::NO_EVENT, message)?;
        Ok(())
    }

    fn wake(&self) -> Result<(), Failure> {
        let message = ClientMessageEvent::new(32, self.own, AtomEnum::STRING, [0u32; 5]);
        self.connection.send_event(false, self.own, EventMask::NO_EVENT, message)?;
        self.connection.flush()?;
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Window,
    Splash,
    Popup,
}

fn knows_clients(connection: &RustConnection) -> bool {
    let present = connection.extension_information(x11rb::protocol::res::X11_EXTENSION_NAME);
    let version = || connection.res_query_version(1, 2).ok()?.reply().ok();
    matches!(present, Ok(Some(_))) && version().is_some_and(|v| (v.server_major, v.server_minor) >= (1, 2))
}

fn client_pid(reply: &x11rb::protocol::res::QueryClientIdsReply) -> Option<i32> {
    let pid = *reply.ids.first()?.value.first()?;
    i32::try_from(pid).ok().filter(|&pid| pid > 0)
}

/// `WM_CLASS` is two strings, each ended by a zero byte.
fn split_class(value: &[u8]) -> (String, String) {
    let mut parts = value.split(|&b| b == 0).map(|part| String::from_utf8_lossy(part).into_owned());
    (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
}

/// The listening thread.
struct Thread<'a> {
    server: &'a Server,
    known: &'a Mutex<HashMap<Window, Tracked>>,
    signals: &'a Sender<Signal>,
}

impl Thread<'_> {
    fn run(&self) {
        while let Ok(event) = self.server.connection.wait_for_event() {
            let at = Monotonic::now();
            if matches!(&event, Event::ClientMessage(message) if message.window == self.server.own) {
                return;
            }
            self.take(&event, at);
        }
    }

    fn take(&self, event: &Event, at: Monotonic) {
        match event {
            Event::CreateNotify(created) => {
                // Numbers of windows are used again: this is another one than any known before.
                let size = (created.width, created.height);
                let tracked = Tracked { existed: false, viewable_since: None, size };
                self.edit(|known| known.insert(created.window, tracked));
                // Mapped before we asked to hear of it, it is viewable now.
                if self.server.watch(created.window).is_ok() {
                    self.look_for_viewable(at);
                }
            }
            Event::MapNotify(_) | Event::ReparentNotify(_) => self.look_for_viewable(at),
            Event::UnmapNotify(unmapped) => self.edit(|known| {
                known.entry(unmapped.window).and_modify(|tracked| tracked.viewable_since = None);
            }),
            Event::DestroyNotify(gone) => self.edit(|known| {
                known.remove(&gone.window);
            }),
            Event::ConfigureNotify(now) => self.resized(now.window, (now.width, now.height), at),
            Event::PropertyNotify(changed) => self.changed(changed.window, changed.atom),
            _ => {}
        }
    }

    fn edit<T>(&self, edit: impl FnOnce(&mut HashMap<Window, Tracked>) -> T) -> T {
        edit(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Tells of every window that was not viewable before and is now.
    fn look_for_viewable(&self, at: Monotonic) {
        let hidden: Vec<Window> = self.edit(|known| {
            let hidden = known.iter().filter(|(_, tracked)| tracked.viewable_since.is_none());
            hidden.map(|(&window, _)| window).collect()
        });
        let connection = &self.server.connection;
        let asked: Vec<_> =
            hidden.iter().map(|&window| (window, connection.get_window_attributes(window))).collect();
        for (window, cookie) in asked {
            let reply = cookie.ok().and_then(|cookie| cookie.reply().ok());
            if reply.is_some_and(|attributes| attributes.map_state == MapState::VIEWABLE) {
                self.edit(|known| {
                    known.entry(window).and_modify(|tracked| tracked.viewable_since = Some(at));
                });
                self.tell(window, at);
            }
        }
    }

    /// A window that was too small to count may have grown.
    fn resized(&self, window: Window, size: (u16, u16), at: Monotonic) {
        let grown = self.edit(|known| {
            let tracked = known.get_mut(&window)?;
            let before = std::mem::replace(&mut tracked.size, size);
            (tracked.viewable_since.is_some() && before != size).then_some(())
        });
        if grown.is_some() {
            self.tell(window, at);
        }
    }

    /// A viewable window says only now whose it is: it counts from when it became viewable.
    fn changed(&self, window: Window, property: u32) {
        let atoms = &self.server.atoms;
        let telling = [AtomEnum::WM_CLASS.into(), atoms._NET_WM_PID, atoms._NET_WM_WINDOW_TYPE];
        let since = self.edit(|known| known.get(&window).and_then(|tracked| tracked.viewable_since));
        if let (Some(since), true) = (since, telling.contains(&property)) {
            self.tell(window, since);
        }
    }

    fn tell(&self, window: Window, at: Monotonic) {
        let existed = self.edit(|known| known.get(&window).is_some_and(|tracked| tracked.existed));
        if let Some(facts) = self.server.facts(window, existed) {
            // Nobody listens any more when the start is over.
            let _ = self.signals.send(Signal::Window(at, facts));
        }
    }
}

#[cfg(test)]
#[path = "x11_tests.rs"]
mod tests;
