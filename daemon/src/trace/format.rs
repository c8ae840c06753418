//! The kernel's own description of its events: `events/*/*/format` and `events/header_page` in tracefs.
//!
//! Offsets and sizes differ between kernels and configurations (Documentation/trace/events.rst, section 4), so every
//! field is found by its name, never by a fixed offset.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Why a description cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The file cannot be read.
    #[error("cannot read the event description {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file is not what the kernel documents.
    #[error("the event description {path} has no usable {what}")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What was looked for.
        what: String,
    },
}

/// Where one field is in an event's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    offset: usize,
    size: usize,
}

impl Field {
    /// The field's value in `payload`, zero-extended; `None` if the payload is too short or the size is not that
    /// of an integer.
    #[must_use]
    pub fn read(self, payload: &[u8]) -> Option<u64> {
        let bytes = payload.get(self.offset..self.offset.checked_add(self.size)?)?;
        Some(match bytes.len() {
            1 => u64::from(bytes[0]),
            2 => u64::from(u16::from_ne_bytes(bytes.try_into().ok()?)),
            4 => u64::from(u32::from_ne_bytes(bytes.try_into().ok()?)),
            8 => u64::from_ne_bytes(bytes.try_into().ok()?),
            _ => return None,
        })
    }
}

/// One event's description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFormat {
    /// The number in each event's `common_type`.
    pub id: u16,
    path: PathBuf,
    fields: Vec<(String, Field)>,
}

impl EventFormat {
    /// Reads the description of `system/name` below `tracefs`.
    ///
    /// # Errors
    /// When it is missing (the kernel has no such event) or unreadable, or is not a description.
    pub fn load(tracefs: &Path, event: &str) -> Result<Self, FormatError> {
        let path = tracefs.join("events").join(event).join("format");
        Self::parse(&read(&path)?, path)
    }

    fn parse(text: &str, path: PathBuf) -> Result<Self, FormatError> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:")?.trim().parse().ok());
        match id {
            Some(id) => Ok(Self { id, path, fields: fields(text) }),
            None => Err(FormatError::Unusable { path, what: "ID line".into() }),
        }
    }

    /// The field of this name.
    ///
    /// # Errors
    /// When this kernel's event has no such field.
    pub fn field(&self, name: &str) -> Result<Field, FormatError> {
        self.optional(name)
            .ok_or_else(|| FormatError::Unusable {
                path: self.path.clone(), what: format!("field “{name}”")
            })
    }

    /// The field of this name, if this kernel's event has it.
    #[must_use]
    pub fn optional(&self, name: &str) -> Option<Field> {
        find(&self.fields, name)
    }
}

/// The layout of a ring-buffer page, from `events/header_page`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLayout {
    /// The time of the first event.
    pub timestamp: Field,
    /// How much of the page holds events; its high bits are flags.
    pub commit: Field,
    /// Where the events begin.
    pub data: usize,
    /// Bytes in a whole page, header included: what one read of `trace_pipe_raw` returns.
    pub size: usize,
}

impl PageLayout {
    /// Reads the layout below `tracefs`.
    ///
    /// # Errors
    /// When it cannot be read, or lacks one of the three fields.
    pub fn load(tracefs: &Path) -> Result<Self, FormatError> {
        let path = tracefs.join("events/header_page");
        Self::parse(&read(&path)?, path)
    }

    fn parse(text: &str, path: PathBuf) -> Result<Self, FormatError> {
        let all = fields(text);
        match (find(&all, "timestamp"), find(&all, "commit"), find(&all, "data")) {
            (Some(timestamp), Some(commit), Some(data)) => {
                Ok(Self { timestamp, commit, data: data.offset, size: data.offset + data.size })
            }
            _ => Err(FormatError::Unusable { path, what: "timestamp, commit and data fields".into() }),
        }
    }
}

/// Reads a whole description. Some of these files, `header_page` among them, answer only the first read, so that has to
/// ask for more than any of them holds.
fn read(path: &Path) -> Result<String, FormatError> {
    let failed = |source| FormatError::Read { path: path.into(), source };
    let mut file = File::open(path).map_err(failed)?;
    let mut bytes = vec![0; 64 << 10];
    let mut length = 0;
    while let Some(rest) = bytes.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match file.read(rest) {
            Ok(0) => break,
            Ok(n) => length += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
    bytes.truncate(length);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn find(fields: &[(String, Field)], name: &str) -> Option<Field> {
    fields.iter().find(|(n, _)| n == name).map(|&(_, field)| field)
}

/// The `field:` lines of a description: a C declaration, then `offset:`, `size:` and `signed:`, all ended by `;`.
fn fields(text: &str) -> Vec<(String, Field)> {
    text.lines().filter_map(|line| parse_field(line.trim())).collect()
}

fn parse_field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.strip_prefix("field:")?.split(';').map(str::trim);
    let declaration = parts.next()?;
    let name = declaration.rsplit([' ', '*']).next()?.split('[').next()?;
    let (mut offset, mut size) = (None, None);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", value)) => offset = value.parse().ok(),
            Some(("size", value)) => size = value.parse().ok(),
            _ => {}
        }
    }
    (!name.is_empty()).then_some(())?;
    Some((name.to_owned(), Field { offset: offset?, size: size? }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ADD: &str = "name: mm_filemap_add_to_page_cache
ID: 600
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:unsigned long i_ino;\toffset:16;\tsize:8;\tsigned:0;
\tfield:dev_t s_dev;\toffset:32;\tsize:4;\tsigned:0;
\tfield:unsigned char order;\toffset:36;\tsize:1;\tsigned:0;
\tfield:__data_loc char[] name;\toffset:40;\tsize:4;\tsigned:0;
\tfield:char comm[16];\toffset:44;\tsize:16;\tsigned:0;

print fmt: \"dev %d:%d\"
";
    const PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;
";

    #[test]
    fn fields_are_found_by_name() {
        let format = EventFormat::parse(ADD, "f".into()).unwrap();
        assert_eq!(format.id, 600);
        assert_eq!(format.field("s_dev").unwrap(), Field { offset: 32, size: 4 });
        assert_eq!(format.field("name").unwrap(), Field { offset: 40, size: 4 });
        assert_eq!(format.field("comm").unwrap(), Field { offset: 44, size: 16 });
        assert!(format.field("pfn").unwrap_err().to_string().contains("pfn"));
    }

    #[test]
    fn a_field_beyond_the_payload_is_absent() {
        let field = EventFormat::parse(ADD, "f".into()).unwrap().field("i_ino").unwrap();
        assert_eq!(field.read(&[0; 23]), None);
        assert_eq!(field.read(&[1; 24]), Some(0x0101_0101_0101_0101));
        assert_eq!(Field { offset: usize::MAX, size: 2 }.read(&[0; 8]), None);
    }

    #[test]
    fn the_page_layout_gives_the_size_of_a_read() {
        let layout = PageLayout::parse(PAGE, "p".into()).unwrap();
        assert_eq!((layout.data, layout.size), (16, 4096));
        assert!(PageLayout::parse("", "p".into()).is_err());
    }

    #[test]
    fn a_text_without_id_is_refused() {
        assert!(EventFormat::parse("format:", "f".into()).unwrap_err().to_string().contains("ID line"));
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in ".*") {
            let _ = EventFormat::parse(&text, "f".into());
            let _ = PageLayout::parse(&text, "p".into());
        }
    }
}
