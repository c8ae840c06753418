//! Paths as serde values that survive exactly, whatever bytes they hold.
//!
//! Serde's own form of a path is a string, and fails where the path is not UTF-8. Here a path is text in formats for
//! people (JSON) and bytes in compact ones. In the text, `\` is written `\\` and each byte that is not part of valid
//! UTF-8 as `\xNN`; everything else stands for itself. Each path has exactly one such text.
//!
//! Use with `#[serde(with = "crate::profile::path_text")]`.

use std::ffi::OsString;
use std::fmt::{self, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::ser::Serializer;

/// The text of a path.
#[must_use]
pub fn to_text(path: &Path) -> String {
    let mut text = String::with_capacity(path.as_os_str().len());
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            if c == '\\' {
                text.push('\\');
            }
            text.push(c);
        }
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// The path of a text, or `None` if the text is not exactly what [`to_text`] writes for some path.
#[must_use]
pub fn from_text(text: &str) -> Option<PathBuf> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, escape)) = rest.split_once('\\') {
        bytes.extend_from_slice(plain.as_bytes());
        if let Some(after) = escape.strip_prefix('\\') {
            bytes.push(b'\\');
            rest = after;
        } else {
            let digits = escape.strip_prefix('x')?.get(..2)?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = escape.get(3..)?;
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    let path = PathBuf::from(OsString::from_vec(bytes));
    (to_text(&path) == text).then_some(path)
}

/// For serde.
///
/// # Errors
/// What the serializer returns.
pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    if serializer.is_human_readable() {
        serializer.serialize_str(&to_text(path))
    } else {
        serializer.serialize_bytes(path.as_os_str().as_bytes())
    }
}

/// For serde.
///
/// # Errors
/// What the deserializer returns, or that a text is not a path's.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    if deserializer.is_human_readable() {
        deserializer.deserialize_str(PathVisitor)
    } else {
        deserializer.deserialize_bytes(PathVisitor)
    }
}

struct PathVisitor;

impl<'de> Visitor<'de> for PathVisitor {
    type Value = PathBuf;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a path in which \\ is \\\\ and a byte that is not UTF-8 is \\xNN")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<PathBuf, E> {
        from_text(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<PathBuf, E> {
        Ok(PathBuf::from(OsString::from_vec(bytes.to_vec())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<PathBuf, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = seq.next_element()? {
            bytes.push(byte);
        }
        Ok(PathBuf::from(OsString::from_vec(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(bytes: &[u8]) -> PathBuf {
        PathBuf::from(OsString::from_vec(bytes.to_vec()))
    }

    #[test]
    fn the_text_is_readable() {
        assert_eq!(to_text(&path(b"/usr/lib/caf\xc3\xa9")), "/usr/lib/café");
        assert_eq!(to_text(&path(b"/home/a\\b\xff\xc3")), r"/home/a\\b\xff\xc3");
    }

    #[test]
    fn another_text_of_the_same_path_is_refused() {
        for text in [r"/\x61", r"/\xFF", r"/\", r"/\x", r"/\xf", r"/\q", r"/\xé", r"/\x+f", r"/\xc3\xa9"] {
            assert_eq!(from_text(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_path_survives(bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'\\'), Just(b'x')], 0..40)) {
            let path = path(&bytes);
            prop_assert_eq!(from_text(&to_text(&path)), Some(path));
        }

        #[test]
        fn no_text_is_accepted_that_is_not_a_paths_own(text in r"(\\|x|[0-9a-f]|é|/){0,12}") {
            if let Some(path) = from_text(&text) {
                prop_assert_eq!(to_text(&path), text);
            }
        }
    }
}
