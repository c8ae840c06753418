//! The names of the units of systemd that desktops put apps in (<https://systemd.io/DESKTOP_ENVIRONMENTS>):
//!
//! ```text
//! app[-LAUNCHER]-ID-RANDOM.scope          app-gnome-org.gnome.Calculator-4711.scope
//! app[-LAUNCHER]-ID[@RANDOM].service      app-org.kde.kate@8f3c….service
//! app-flatpak-ID-RANDOM.scope             app-flatpak-org.gimp.GIMP-815.scope
//! snap.NAME.APP-UUID.scope                snap.firefox.firefox-0d…-….scope
//! dbus-:CONNECTION-NAME@NUMBER.service    dbus-:1.2-org.gnome.Nautilus@0.service
//! ```
//!
//! What is not a letter, a digit, `:`, `_` or `.` is escaped in each part, a hyphen as `\x2d`. Not every desktop does: a
//! name with hyphens too many can be read in several ways, the likeliest first ([`Unit::ids`]).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::path_text;

/// Who put an app in a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A desktop, by the ID of the desktop entry.
    Desktop,
    /// Flatpak, by its ID.
    Flatpak,
    /// Snap, as `NAME.APP`.
    Snap,
    /// The bus, by the name it was asked for.
    Bus,
}

/// A unit that an app is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The name of the unit: two launches of one app have two.
    pub name: String,
    /// Who made it.
    pub kind: Kind,
    /// The IDs it may mean, the likeliest first.
    pub ids: Vec<String>,
}

impl Unit {
    /// The innermost unit of an app in the text of `/proc/PID/cgroup`, of either version of control groups.
    #[must_use]
    pub fn of_cgroup(text: &str) -> Option<Self> {
        let path_of = |line: &str| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            (controllers.is_empty() || controllers == "name=systemd").then(|| path.to_owned())
        };
        text.lines().filter_map(path_of).find_map(|path| path.rsplit('/').find_map(Self::parse))
    }

    /// The unit of this name, if apps are in units of such names.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let scope = name.strip_suffix(".scope");
        let service = name.strip_suffix(".service");
        let stem = scope.or(service)?;
        let unit = |kind, ids| Self { name: name.to_owned(), kind, ids };
        if let Some(rest) = stem.strip_prefix("snap.") {
            // The random part is a UUID, with its own hyphens; neither names nor apps of snaps begin with a hyphen, but
            // both may have some.
            let app = without_uuid(rest).unwrap_or(rest);
            return app.contains('.').then(|| unit(Kind::Snap, vec![unescape(app)]));
        }
        if let Some(rest) = stem.strip_prefix("dbus-") {
            let (bus_name, _) = rest.split_once('@')?;
            let (_, bus_name) = bus_name.split_once('-')?;
            return Some(unit(Kind::Bus, vec![unescape(bus_name)]));
        }
        let rest = stem.strip_prefix("app-")?;
        // An `@` within an ID is escaped.
        let instance = service.and_then(|_| rest.rsplit_once('@'));
        let mut parts: Vec<&str> = instance.map_or(rest, |(id, _)| id).split('-').collect();
        let last_is_random = scope.is_some() || parts.last().is_some_and(|part| looks_random(part));
        let has_random = instance.is_none() && last_is_random;
        if has_random && parts.len() > 1 {
            parts.pop();
        }
        if parts.iter().any(|part| part.is_empty()) {
            return None;
        }
        let kind = if parts.len() > 1 && parts[0] == "flatpak" { Kind::Flatpak } else { Kind::Desktop };
        Some(unit(kind, readings(&parts)))
    }
}

/// The IDs that parts with hyphens in between may mean: the last part, with a launcher before it, as the rules have it;
/// else the more the better, with hyphens that were not escaped.
fn readings(parts: &[&str]) -> Vec<String> {
    let from = |start: usize| unescape(&parts[start..].join("-"));
    match parts.len() {
        0 => Vec::new(),
        1 => vec![from(0)],
        2 => vec![from(1), from(0)],
        // More than a launcher and an ID: somebody did not escape. The launcher has no hyphens.
        n => [1, 0].into_iter().chain(2..n).map(from).collect(),
    }
}

/// Whether a part is one that launchers make up: a number, or 32 hexadecimal digits.
fn looks_random(part: &str) -> bool {
    let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    digits || (part.len() == 32 && part.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Without a UUID at the end and the hyphen before it.
fn without_uuid(text: &str) -> Option<&str> {
    const GROUPS: [usize; 5] = [12, 4, 4, 4, 8];
    let mut rest = text;
    for length in GROUPS {
        // Older versions have a dot before the whole.
        let (before, group) = rest.rsplit_once(['-', '.'])?;
        if group.len() != length || !group.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        rest = before;
    }
    Some(rest)
}

/// Undoes systemd's escaping, and writes the result as IDs are written ([`path_text`]).
fn unescape(part: &str) -> String {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part;
    while let Some((plain, escaped)) = rest.split_once("\\x") {
        bytes.extend_from_slice(plain.as_bytes());
        let byte = escaped.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        if let Some(byte) = byte {
            bytes.push(byte);
            rest = escaped.get(2..).unwrap_or_default();
        } else {
            bytes.extend_from_slice(b"\\x");
            rest = escaped;
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    path_text::to_text(Path::new(OsStr::from_bytes(&bytes)))
}

#[cfg(test)]
#[path = "unit_tests.rs"]
mod tests;
