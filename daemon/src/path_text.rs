//! Paths as text that can be shown, typed, stored and read back, whatever bytes they hold.
//!
//! Format: UTF-8 as it is, except that a backslash is doubled, and a byte that is no part of UTF-8, or a control
//! character, is `\xNN`. For use as `#[serde(with = "crate::path_text")]`, since serde refuses paths that are not UTF-8.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

/// The path as text.
#[must_use]
pub fn to_text(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' => text.push_str("\\\\"),
                // Of the control characters only those of one byte have this form.
                c if c.is_ascii_control() => push_byte(&mut text, c as u8),
                c => text.push(c),
            }
        }
        for &byte in chunk.invalid() {
            push_byte(&mut text, byte);
        }
    }
    text
}

fn push_byte(text: &mut String, byte: u8) {
    // Writing to a string cannot fail.
    let _ = write!(text, "\\x{byte:02x}");
}

/// The path of a text; `None` if a backslash in it is followed by neither another nor `xNN`.
#[must_use]
pub fn from_text(text: &str) -> Option<PathBuf> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        match (first, tail) {
            (b'\\', [b'\\', after @ ..]) => {
                bytes.push(b'\\');
                rest = after;
            }
            (b'\\', [b'x', high, low, after @ ..]) => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                bytes.push(u8::try_from(digit(high)? << 4 | digit(low)?).ok()?);
                rest = after;
            }
            (b'\\', _) => return None,
            (byte, _) => bytes.push(*byte),
        }
    }
    Some(OsString::from_vec(bytes).into())
}

/// Writes the path as text.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&to_text(path))
}

/// Reads a path from text.
///
/// # Errors
/// Those of the deserializer, and text that [`from_text`] does not take.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    let text = String::deserialize(deserializer)?;
    from_text(&text).ok_or_else(|| D::Error::custom(format!("not an escaped path: {text}")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_stays_as_it_is_and_the_rest_is_escaped() {
        assert_eq!(to_text(Path::new("/usr/lib/ä b")), "/usr/lib/ä b");
        let odd = PathBuf::from(OsString::from_vec(b"/a\\b\n\xff".to_vec()));
        assert_eq!(to_text(&odd), r"/a\\b\x0a\xff");
        assert_eq!(from_text(r"/a\q"), None);
        assert_eq!(from_text(r"/a\x1"), None);
        assert_eq!(from_text(r"/a\"), None);
    }

    proptest! {
        #[test]
        fn any_path_comes_back(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let path = PathBuf::from(OsString::from_vec(bytes));
            prop_assert_eq!(from_text(&to_text(&path)), Some(path));
        }
    }
}
