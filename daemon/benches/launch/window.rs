//! Seeing an application's first window.

use std::collections::HashSet;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    AtomEnum, ChangeWindowAttributesAux, ClientMessageEvent, ConnectionExt, EventMask, MapState, Window,
};
use x11rb::rust_connection::RustConnection;

use crate::process::Interrupt;
use crate::screen::Screen;

/// Smaller windows are helpers that nobody sees.
const SMALLEST: (u16, u16) = (100, 60);

/// Watches a screen for windows.
#[derive(Debug)]
pub(crate) struct Watcher {
    connection: RustConnection,
    root: Window,
    /// Windows that have been asked to tell of themselves.
    known: HashSet<Window>,
    /// Windows of the right class that are mapped in a frame which is not mapped yet.
    framed: HashSet<Window>,
}

impl Watcher {
    /// Begins to watch.
    pub(crate) fn connect(screen: &Screen) -> Result<Self> {
        let display = screen.display();
        let (connection, number) = RustConnection::connect(Some(display))
            .with_context(|| format!("cannot connect to display {display}"))?;
        let root = connection.setup().roots.get(number).context("the display has no screen")?.root;
        let events = ChangeWindowAttributesAux::new().event_mask(EventMask::SUBSTRUCTURE_NOTIFY);
        connection.change_window_attributes(root, &events)?.check()?;
        Ok(Self { connection, root, known: HashSet::new(), framed: HashSet::new() })
    }

    /// Whether a window manager runs.
    pub(crate) fn has_manager(&self) -> Result<bool> {
        Ok(!self.root_windows("_NET_SUPPORTING_WM_CHECK", AtomEnum::WINDOW)?.is_empty())
    }

    /// Waits for a window of a class to be mapped; `None` if none is within the time.
    pub(crate) fn first_window(
        &mut self,
        class: &str,
        within: Duration,
        interrupt: &Interrupt,
    ) -> Result<Option<Instant>> {
        let deadline = Instant::now() + within;
        loop {
            while let Some(event) = self.connection.poll_for_event()? {
                let seen = Instant::now();
                let Some(window) = self.concerns(&event)? else { continue };
                let others: Vec<_> = self.framed.iter().copied().filter(|&w| w != window).collect();
                for candidate in std::iter::once(window).chain(others) {
                    match self.look(candidate, class) {
                        MapState::VIEWABLE => return Ok(Some(seen)),
                        MapState::UNVIEWABLE => drop(self.framed.insert(candidate)),
                        _ => drop(self.framed.remove(&candidate)),
                    }
                }
            }
            interrupt.check()?;
            if Instant::now() > deadline {
                return Ok(None);
            }
            self.wait_for_event()?;
        }
    }

    /// Asks every window to close, as its close button does.
    pub(crate) fn close_all(&self) -> Result<()> {
        let close = self.atom("_NET_CLOSE_WINDOW")?;
        for window in self.root_windows("_NET_CLIENT_LIST", AtomEnum::WINDOW)? {
            let message = ClientMessageEvent::new(32, window, close, [0_u32; 5]);
            let mask = EventMask::SUBSTRUCTURE_REDIRECT | EventMask::SUBSTRUCTURE_NOTIFY;
            self.connection.send_event(false, self.root, mask, message)?;
        }
        self.connection.flush()?;
        Ok(())
    }

    /// The window that may just have become what is waited for. A window tells of itself once it is asked to: a window
    /// manager moves it into a frame, and the screen then only hears of the frame.
    fn concerns(&mut self, event: &Event) -> Result<Option<Window>> {
        Ok(match event {
            Event::CreateNotify(created) if self.known.insert(created.window) => {
                let events = EventMask::STRUCTURE_NOTIFY | EventMask::PROPERTY_CHANGE;
                let aux = ChangeWindowAttributesAux::new().event_mask(events);
                self.connection.change_window_attributes(created.window, &aux)?.ignore_error();
                self.connection.flush()?;
                // It may have been mapped before it was asked.
                Some(created.window)
            }
            Event::MapNotify(mapped) => Some(mapped.window),
            // Some set their class after they are mapped.
            Event::PropertyNotify(changed) if changed.atom == u32::from(AtomEnum::WM_CLASS) => {
                Some(changed.window)
            }
            _ => None,
        })
    }

    /// How far a window of the class is shown. One that is of another class, too small, or gone by the time it is
    /// looked at is not mapped as far as this is concerned.
    fn look(&self, window: Window, class: &str) -> MapState {
        let state = || -> Result<MapState> {
            let state = self.connection.get_window_attributes(window)?;
            let size = self.connection.get_geometry(window)?;
            let name =
                self.connection.get_property(false, window, AtomEnum::WM_CLASS, AtomEnum::STRING, 0, 64)?;
            let (state, size, name) = (state.reply()?, size.reply()?, name.reply()?);
            let name = String::from_utf8_lossy(&name.value).to_lowercase();
            let large = size.width > SMALLEST.0 && size.height > SMALLEST.1;
            Ok(if large && name.contains(class) { state.map_state } else { MapState::UNMAPPED })
        };
        state().unwrap_or(MapState::UNMAPPED)
    }

    fn wait_for_event(&self) -> Result<()> {
        let stream = self.connection.stream();
        let mut sources = [PollFd::from_borrowed_fd(stream.as_fd(), PollFlags::IN)];
        let tick = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        match poll(&mut sources, Some(&tick)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => bail!("cannot wait for the X server: {error}"),
        }
    }

    fn atom(&self, name: &str) -> Result<u32> {
        Ok(self.connection.intern_atom(false, name.as_bytes())?.reply()?.atom)
    }

    fn root_windows(&self, property: &str, kind: AtomEnum) -> Result<Vec<Window>> {
        let atom = self.atom(property)?;
        let value = self.connection.get_property(false, self.root, atom, kind, 0, 1024)?.reply()?;
        Ok(value.value32().map(Iterator::collect).unwrap_or_default())
    }
}
