//! The cookie that an X server wants, from a person's authority file (`Xau(3)`).
//!
//! The file is a series of entries of five fields, all but the first with a 16-bit length in front, all numbers
//! big-endian: family, address, display number in decimal, name of the method, data. The library's own reader goes by
//! our environment, which is not that of the person a program is started for.

use std::path::PathBuf;

use x11rb::reexports::x11rb_protocol::xauth::Family;

use crate::sys::foreign_file;
use crate::watch::session::Session;

/// The largest file read, in bytes: an entry has about fifty.
const MAX_LENGTH: u64 = 1 << 20;

const METHOD: &[u8] = b"MIT-MAGIC-COOKIE-1";

/// The method and data for a display; empty where the file has none for it: servers on a local socket may let us in
/// for who we are.
pub(super) fn cookie(session: &Session, family: Family, address: &[u8], display: u16) -> (Vec<u8>, Vec<u8>) {
    let file = session.var("XAUTHORITY").map_or_else(|| session.home.join(".Xauthority"), PathBuf::from);
    let bytes = foreign_file::read(&file, MAX_LENGTH).unwrap_or_default();
    find(&bytes, family, address, display).map(|data| (METHOD.to_vec(), data)).unwrap_or_default()
}

fn find(mut bytes: &[u8], family: Family, address: &[u8], display: u16) -> Option<Vec<u8>> {
    let display = display.to_string();
    while let Some(entry) = Entry::take(&mut bytes) {
        // A machine that was renamed since still has its entries under the old name, and its sockets are local.
        let same_host = entry.address == address || family == Family::LOCAL;
        let host = entry.family == Family::WILD || (entry.family == family && same_host);
        let number = entry.number.is_empty() || entry.number == display.as_bytes();
        if host && number && entry.name == METHOD {
            return Some(entry.data.to_vec());
        }
    }
    None
}

struct Entry<'a> {
    family: Family,
    address: &'a [u8],
    number: &'a [u8],
    name: &'a [u8],
    data: &'a [u8],
}

impl<'a> Entry<'a> {
    /// Takes the next entry off `bytes`; `None` at the end, or where the file is cut short.
    fn take(bytes: &mut &'a [u8]) -> Option<Self> {
        Some(Self {
            family: number(bytes)?.into(),
            address: field(bytes)?,
            number: field(bytes)?,
            name: field(bytes)?,
            data: field(bytes)?,
        })
    }
}

fn number(bytes: &mut &[u8]) -> Option<u16> {
    let (head, rest) = bytes.split_first_chunk::<2>()?;
    *bytes = rest;
    Some(u16::from_be_bytes(*head))
}

fn field<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::from(number(bytes)?);
    let (head, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(family: u16, address: &str, number: &str, name: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = family.to_be_bytes().to_vec();
        for field in [address.as_bytes(), number.as_bytes(), name.as_bytes(), data] {
            bytes.extend(u16::try_from(field.len()).unwrap().to_be_bytes());
            bytes.extend(field);
        }
        bytes
    }

    #[test]
    fn the_cookie_of_the_display_is_found() {
        let cookie = "MIT-MAGIC-COOKIE-1";
        let file = [
            entry(256, "host", "1", cookie, b"one"),
            entry(256, "host", "0", "XDM-AUTHORIZATION-1", b"xdm"),
            entry(0, "\u{1}\u{2}\u{3}\u{4}", "0", cookie, b"tcp"),
            entry(256, "host", "0", cookie, b"zero"),
        ]
        .concat();
        assert_eq!(find(&file, Family::LOCAL, b"host", 0), Some(b"zero".to_vec()));
        assert_eq!(find(&file, Family::LOCAL, b"host", 1), Some(b"one".to_vec()));
        assert_eq!(find(&file, Family::INTERNET, &[1, 2, 3, 4], 0), Some(b"tcp".to_vec()));
        assert_eq!(find(&file, Family::LOCAL, b"host", 2), None);
        assert_eq!(find(&file[..file.len() - 1], Family::LOCAL, b"host", 0), None);
    }

    #[test]
    fn a_wildcard_entry_fits_every_display() {
        let file = entry(65535, "", "", "MIT-MAGIC-COOKIE-1", b"any");
        assert_eq!(find(&file, Family::LOCAL, b"host", 7), Some(b"any".to_vec()));
    }
}
