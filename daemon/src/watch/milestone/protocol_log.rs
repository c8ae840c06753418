//! A Wayland client's own log of the protocol (`WAYLAND_DEBUG=client`), as libwayland writes it to standard error:
//!
//! ```text
//! [1234567.890]  -> xdg_wm_base@7.get_xdg_surface(new id xdg_surface@13, wl_surface@3)
//! [1234567.891] {Default Queue}  -> wl_surface#3.commit()
//! ```
//!
//! The second form is that of version 1.22 and later. A window is shown when a surface with the role of a toplevel is
//! committed with a buffer attached, after its first configuration was acknowledged (xdg-shell): before that the
//! compositor may not show it.

use std::collections::{HashMap, HashSet};

/// What a line is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    /// A line of the protocol log, not of the program.
    pub(super) protocol: bool,
    /// With it a window is shown.
    pub(super) shown: bool,
}

/// What the lines so far said.
#[derive(Debug, Default)]
pub(super) struct ProtocolLog {
    /// The `wl_surface` of each `xdg_surface`.
    surfaces: HashMap<u32, u32>,
    /// Each `xdg_surface` that is a toplevel, and each whose configuration was acknowledged.
    toplevels: HashSet<u32>,
    acknowledged: HashSet<u32>,
    /// Each `wl_surface` with a buffer.
    attached: HashSet<u32>,
}

impl ProtocolLog {
    pub(super) fn line(&mut self, line: &[u8]) -> Step {
        let Some(message) = std::str::from_utf8(line).ok().and_then(message) else { return Step::default() };
        let shown = message.sent && self.request(&message);
        Step { protocol: true, shown }
    }

    /// Takes a request; whether with it a window is shown.
    fn request(&mut self, message: &Message<'_>) -> bool {
        match (message.interface, message.name) {
            ("xdg_wm_base", "get_xdg_surface") => {
                let mut ids = message.arguments.split(", ").map(object_id);
                if let (Some(Some(xdg)), Some(Some(surface))) = (ids.next(), ids.next()) {
                    self.forget(xdg);
                    self.surfaces.insert(xdg, surface);
                }
            }
            ("xdg_surface", "get_toplevel") => {
                self.toplevels.insert(message.id);
            }
            ("xdg_surface", "ack_configure") => {
                self.acknowledged.insert(message.id);
            }
            ("xdg_surface", "destroy") => self.forget(message.id),
            ("wl_surface", "attach") => {
                if message.arguments.starts_with("nil") {
                    self.attached.remove(&message.id);
                } else {
                    self.attached.insert(message.id);
                }
            }
            ("wl_surface", "destroy") => {
                self.attached.remove(&message.id);
            }
            ("wl_surface", "commit") => return self.attached.contains(&message.id) && self.ready(message.id),
            _ => {}
        }
        false
    }

    fn ready(&self, surface: u32) -> bool {
        let mut of_surface = self.surfaces.iter().filter(|&(_, &s)| s == surface).map(|(xdg, _)| xdg);
        of_surface.any(|xdg| self.toplevels.contains(xdg) && self.acknowledged.contains(xdg))
    }

    /// Numbers of destroyed objects are used again.
    fn forget(&mut self, xdg: u32) {
        self.surfaces.remove(&xdg);
        self.toplevels.remove(&xdg);
        self.acknowledged.remove(&xdg);
    }
}

struct Message<'a> {
    sent: bool,
    interface: &'a str,
    id: u32,
    name: &'a str,
    arguments: &'a str,
}

fn message(line: &str) -> Option<Message<'_>> {
    let (time, rest) = line.strip_prefix('[')?.split_once(']')?;
    if !time.trim_start().bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    let mut rest = rest.trim_start();
    if let Some((_, behind)) = rest.strip_prefix('{').and_then(|queue| queue.split_once('}')) {
        rest = behind.trim_start();
    }
    rest = rest.strip_prefix("discarded ").map_or(rest, str::trim_start);
    let sent = rest.starts_with("->");
    let rest = rest.trim_start_matches("->").trim_start();
    let (interface, rest) = rest.split_once(['@', '#'])?;
    let (id, rest) = rest.split_once('.')?;
    let (name, arguments) = rest.split_once('(')?;
    Some(Message { sent, interface, id: id.parse().ok()?, name, arguments: arguments.strip_suffix(')')? })
}

/// The number in `new id xdg_surface@13` or `wl_surface#3`.
fn object_id(argument: &str) -> Option<u32> {
    argument.rsplit(['@', '#']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "\
[3020.100]  -> wl_compositor@4.create_surface(new id wl_surface@3)
[3020.200]  -> xdg_wm_base@7.get_xdg_surface(new id xdg_surface@13, wl_surface@3)
[3020.300]  -> xdg_surface@13.get_toplevel(new id xdg_toplevel@14)
[3020.400]  -> wl_surface@3.commit()
[3020.500] xdg_surface@13.configure(7)
[3020.600]  -> xdg_surface@13.ack_configure(7)
[3020.700]  -> wl_surface@3.attach(wl_buffer@20, 0, 0)
[3020.800]  -> wl_surface@3.damage(20, 20, 210, 210)
[3020.900]  -> wl_surface@3.commit()
";

    fn shown_at(log: &str) -> Option<usize> {
        let mut state = ProtocolLog::default();
        log.lines().position(|line| state.line(line.as_bytes()).shown)
    }

    #[test]
    fn a_window_is_shown_by_the_commit_with_a_buffer_after_the_acknowledgement() {
        assert_eq!(shown_at(OLD), Some(8));
    }

    #[test]
    fn the_form_of_newer_libraries_is_read_too() {
        let new = OLD.replace('@', "#").replace("] ", "] {Default Queue} ");
        assert_eq!(shown_at(&new), Some(8));
    }

    #[test]
    fn cursors_popups_and_detached_surfaces_are_no_windows() {
        assert_eq!(shown_at(&OLD.replace("get_toplevel", "get_popup")), None);
        assert_eq!(shown_at(&OLD.replace("attach(wl_buffer@20", "attach(nil")), None);
        assert_eq!(shown_at(&OLD.replace("-> xdg_surface@13.ack", "-> xdg_surface@99.ack")), None);
        assert_eq!(
            shown_at("[1.0]  -> wl_surface@3.attach(wl_buffer@2, 0, 0)\n[1.1]  -> wl_surface@3.commit()"),
            None
        );
    }

    #[test]
    fn what_the_program_itself_writes_is_not_taken() {
        let mut log = ProtocolLog::default();
        for line in ["", "[", "[warning] no theme", "[12.5] done", "Gtk-WARNING **: a@b.c(d)", "[x] a@1.b()"]
        {
            assert_eq!(log.line(line.as_bytes()), Step::default(), "{line}");
        }
        assert!(log.line(b"[ 12.500] wl_display@1.delete_id(3)").protocol);
        assert!(!log.line(b"[12.5] \xff@1.b()").protocol);
    }
}
