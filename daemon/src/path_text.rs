//! Paths as text that can be shown, typed, stored and read back, and as serde values that survive exactly, whatever
//! bytes they hold.
//!
//! In the text a backslash is written `\\`, and each byte that is no part of UTF-8 or belongs to a control character
//! (Unicode's `Cc`, so that no text moves a terminal's cursor) `\xNN`, in lower case; everything else stands for itself.
//! Each path has exactly one text, and what is not the text of a path is refused.
//!
//! Serde's own form of a path is a string, and fails where the path is not UTF-8. With
//! `#[serde(with = "crate::path_text")]` a path is its text in formats for people (JSON) and its bytes in compact ones.

use std::ffi::OsString;
use std::fmt::{self, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::ser::Serializer;

/// The text of a path.
#[must_use]
pub fn to_text(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => text.push_str("\\\\"),
                c if c.is_control() => escape(&mut text, c.encode_utf8(&mut [0; 4]).as_bytes()),
                c => text.push(c),
            }
        }
        escape(&mut text, chunk.invalid());
    }
    text
}

fn escape(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "\\x{byte:02x}");
    }
}

/// The path of a text, or `None` if the text is not exactly what [`to_text`] writes for some path.
#[must_use]
pub fn from_text(text: &str) -> Option<PathBuf> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, escaped)) = rest.split_once('\\') {
        bytes.extend_from_slice(plain.as_bytes());
        if let Some(after) = escaped.strip_prefix('\\') {
            bytes.push(b'\\');
            rest = after;
        } else {
            let digits = escaped.strip_prefix('x')?.get(..2)?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = escaped.get(3..)?;
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
        f.write_str(
            "a path in which \\ is \\\\ and a control character, or a byte that is not UTF-8, is \\xNN",
        )
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
    use serde::{Deserialize, Serialize};

    use super::*;

    fn path(bytes: &[u8]) -> PathBuf {
        PathBuf::from(OsString::from_vec(bytes.to_vec()))
    }

    #[test]
    fn text_stays_as_it_is_and_the_rest_is_escaped() {
        assert_eq!(to_text(&path(b"/usr/lib/caf\xc3\xa9 b")), "/usr/lib/café b");
        assert_eq!(to_text(&path(b"/a\\b\n\xff")), r"/a\\b\x0a\xff");
        assert_eq!(to_text(&path(b"/home/a\\b\xff\xc3")), r"/home/a\\b\xff\xc3");
        assert_eq!(
            to_text(&path(b"/\x1b[2J\x7f\xc2\x9b")),
            r"/\x1b[2J\x7f\xc2\x9b",
            "no text moves a cursor"
        );
    }

    #[test]
    fn another_text_of_the_same_path_is_refused() {
        for text in [
            r"/\x61",
            r"/\xFF",
            r"/\",
            r"/\x",
            r"/\xf",
            r"/a\x1",
            r"/\q",
            r"/\xé",
            r"/\x+f",
            r"/\xc3\xa9",
            r"/\x5c",
            "/\n",
            "/\u{9b}",
        ] {
            assert_eq!(from_text(text), None, "{text:?}");
        }
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Holder {
        #[serde(with = "crate::path_text")]
        path: PathBuf,
    }

    proptest! {
        #[test]
        fn every_path_survives(bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'\\'), Just(b'x'), Just(0xc2)], 0..60)) {
            let path = path(&bytes);
            let text = to_text(&path);
            prop_assert!(!text.contains(char::is_control));
            prop_assert_eq!(from_text(&text), Some(path.clone()));

            let holder = Holder { path };
            let json = serde_json::to_string(&holder).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Holder>(&json).unwrap(), &holder);
            let compact = postcard::to_stdvec(&holder).unwrap();
            prop_assert!(compact.ends_with(&bytes), "bytes as they are");
            prop_assert_eq!(postcard::from_bytes::<Holder>(&compact).unwrap(), holder);
        }

        #[test]
        fn no_text_is_accepted_that_is_not_a_paths_own(text in r"(\\|x|[0-9a-f]|é|/|\n){0,12}") {
            if let Some(path) = from_text(&text) {
                prop_assert_eq!(to_text(&path), text);
            }
        }
    }
}
