//! One profile as one file that a person can share, read and compare.
//!
//! ```text
//! headstart-profile 1 page-size=4096 length=431 crc32=0a1b2c3d
//! {"profile":{"app":"org.gnome.gedit","runs":5}}
//! {"device":{"filesystem":1234,"major":8,"minor":1,"ranges":[[8,16,1000000,31]]}}
//! {"file":{"path":"/usr/bin/gedit","filesystem":1234,"inode":5,"size":70000,"mtime":1,"earlier":0,"ranges":[[0,12,2000000,31]]}}
//! ```
//!
//! The first line tells what follows: the format, the page size, and the length and checksum of the rest. The checksum
//! (CRC-32) also covers the first line up to itself. Then one line of JSON for each device and file, in the profile's
//! order, so that `diff` shows which files two profiles disagree on, and `jq` reads it. A range is `[first page, page
//! after the last, nanoseconds from the start to the first need, history]`; paths are written as [`crate::path_text`] says.
//!
//! JSON because people compare and check what they are given to read ahead as root; it is about twice the size of a
//! compact form, which does not matter for one file. The store is compact. A checksum guards against damage, not
//! against intent: what passes is checked by [`Profile::verify`] like everything from outside.

mod text;

use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::atomic::{self, WriteError};
use super::verify::at_most;
use super::{InvalidProfile, Profile};

/// The format that this code writes. What is newer is refused.
pub const FORMAT: u32 = 1;
/// The largest file read, in bytes: far beyond what the limits on files and ranges leave room for in practice.
pub const MAX_LENGTH: usize = 64 << 20;

/// Of that, what may follow the first line.
const MAX_BODY: usize = MAX_LENGTH - 1024;

const MAGIC: &str = "headstart-profile ";

/// Why a profile file could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExchangeError {
    /// The file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The profile in memory is not valid, so nothing was written.
    #[error("the profile cannot be exported: {0}; forget it and learn it anew")]
    Unfit(#[source] InvalidProfile),
    /// The file could not be read.
    #[error("cannot read {path:?}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The kernel's word.
        source: io::Error,
    },
    /// A folder, pipe or device.
    #[error("{path:?} is no regular file: give a file written by 'export'")]
    NotAFile {
        /// The file.
        path: PathBuf,
    },
    /// Something else altogether.
    #[error("{path:?} is not a Headstart profile: give a file written by 'export'")]
    NotAProfile {
        /// The file.
        path: PathBuf,
    },
    /// Larger than any profile.
    #[error("{path:?} is larger than any profile ({MAX_LENGTH} bytes): give a file written by 'export'")]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The end is missing.
    #[error("{path:?} is cut short: {what}; copy it again from where it came from")]
    CutShort {
        /// The file.
        path: PathBuf,
        /// What is there of it.
        what: String,
    },
    /// Not what was exported.
    #[error(
        "{path:?} was altered since it was exported: {what}; copy it again from where it came from, unedited"
    )]
    Altered {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        what: &'static str,
    },
    /// From a newer Headstart.
    #[error(
        "{path:?} has format {format}, this Headstart reads up to {FORMAT}: update Headstart, or export it with an older one"
    )]
    TooNew {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u32,
    },
    /// From a machine with another page size.
    #[error(
        "{path:?} was learned with pages of {theirs} bytes, this kernel has {ours}: learn the app on this machine"
    )]
    PageSize {
        /// The file.
        path: PathBuf,
        /// The file's page size in bytes.
        theirs: u64,
        /// This kernel's.
        ours: u64,
    },
    /// Whole, but not something that Headstart writes.
    #[error("line {line} of {path:?} is not one that Headstart writes ({flaw}): do not use this file")]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What the JSON reader says.
        flaw: String,
    },
    /// Whole, but not a profile that could have been learned.
    #[error("{path:?} holds values that no start can have ({source}): do not use this file")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The values.
        source: InvalidProfile,
    },
}

/// Writes a profile to a file, whole or not at all.
///
/// # Errors
/// The profile is not valid, or the file cannot be written; then nothing is left behind.
pub fn export(profile: &Profile, path: &Path) -> Result<(), ExchangeError> {
    Ok(atomic::write(path, &encode(profile)?)?)
}

/// Reads a profile from a file. Only regular files are read, so a pipe or device cannot make it hang.
///
/// # Errors
/// The file cannot be read, or is not a valid profile for pages of `page_size` bytes.
pub fn import(path: &Path, page_size: u64) -> Result<Profile, ExchangeError> {
    let failed = |source| ExchangeError::Read { path: path.into(), source };
    let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(ExchangeError::NotAFile { path: path.into() });
    }
    let mut bytes = Vec::new();
    file.take(MAX_LENGTH as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    decode(&bytes, path, page_size)
}

/// The bytes of a profile file.
///
/// # Errors
/// The profile is not valid.
pub fn encode(profile: &Profile) -> Result<Vec<u8>, ExchangeError> {
    profile.verify().map_err(ExchangeError::Unfit)?;
    let body = text::write(profile);
    at_most("bytes", body.len(), MAX_BODY).map_err(ExchangeError::Unfit)?;
    let header = Header { page_size: profile.page_size, length: body.len() as u64 };
    let mut bytes = header.render(&body).into_bytes();
    bytes.extend_from_slice(body.as_bytes());
    Ok(bytes)
}

/// The profile in the bytes of a profile file; `path` is the name that errors give it.
///
/// # Errors
/// The bytes are not a valid profile for pages of `page_size` bytes.
pub fn decode(bytes: &[u8], path: &Path, page_size: u64) -> Result<Profile, ExchangeError> {
    if bytes.len() > MAX_LENGTH {
        return Err(ExchangeError::TooLarge { path: path.into() });
    }
    let altered = |what| ExchangeError::Altered { path: path.into(), what };
    let (line, body) = split_header(bytes, path)?;
    let header = Header::parse(line, path)?;
    let found = body.len() as u64;
    if found < header.length {
        let what = format!("{found} of {} bytes after its first line are there", header.length);
        return Err(ExchangeError::CutShort { path: path.into(), what });
    }
    if found > header.length {
        return Err(altered("there is more than was exported"));
    }
    let body = str::from_utf8(body).map_err(|_| altered("it is not text any more"))?;
    // Written anew, the first line must come out the same: this checks the checksum and every character before it.
    if header.render(body).as_bytes() != [line.as_bytes(), b"\n"].concat() {
        return Err(altered("the checksum does not fit"));
    }
    if header.page_size != page_size {
        return Err(ExchangeError::PageSize { path: path.into(), theirs: header.page_size, ours: page_size });
    }
    let profile = text::read(body, page_size).map_err(|flaw| match flaw {
        text::Flaw::Line(line, flaw) => ExchangeError::Line { path: path.into(), line: line + 2, flaw },
        text::Flaw::NoProfile => altered("the line about the app is missing"),
    })?;
    profile.verify().map_err(|source| ExchangeError::Invalid { path: path.into(), source })?;
    Ok(profile)
}

/// The first line without its end, and everything after it.
fn split_header<'a>(bytes: &'a [u8], path: &Path) -> Result<(&'a str, &'a [u8]), ExchangeError> {
    const LONGEST: usize = 120;
    let start = &bytes[..bytes.len().min(MAGIC.len())];
    if !MAGIC.as_bytes().starts_with(start) {
        return Err(ExchangeError::NotAProfile { path: path.into() });
    }
    match bytes.iter().take(LONGEST).position(|b| *b == b'\n') {
        Some(end) => match str::from_utf8(&bytes[..end]) {
            Ok(line) => Ok((line, &bytes[end + 1..])),
            Err(_) => Err(ExchangeError::Altered { path: path.into(), what: "the first line is not text" }),
        },
        None if bytes.len() < LONGEST => {
            let what = "not even its first line is whole".into();
            Err(ExchangeError::CutShort { path: path.into(), what })
        }
        None => Err(ExchangeError::Altered { path: path.into(), what: "the first line has no end" }),
    }
}

struct Header {
    page_size: u64,
    length: u64,
}

impl Header {
    fn render(&self, body: &str) -> String {
        let start = format!("{MAGIC}{FORMAT} page-size={} length={}", self.page_size, self.length);
        let mut crc = crc32fast::Hasher::new();
        crc.update(start.as_bytes());
        crc.update(body.as_bytes());
        format!("{start} crc32={:08x}\n", crc.finalize())
    }

    /// Reads no more than is needed to say what is wrong; the checksum decides about the rest.
    fn parse(line: &str, path: &Path) -> Result<Self, ExchangeError> {
        let altered = || ExchangeError::Altered { path: path.into(), what: "the first line is damaged" };
        let mut words = line.strip_prefix(MAGIC).ok_or_else(altered)?.split(' ');
        let format: u32 = words.next().and_then(|w| w.parse().ok()).ok_or_else(altered)?;
        if format > FORMAT {
            return Err(ExchangeError::TooNew { path: path.into(), format });
        }
        let mut number = |name: &str| {
            let value = words.next()?.strip_prefix(name)?.strip_prefix('=')?;
            value.parse::<u64>().ok()
        };
        let page_size = number("page-size").ok_or_else(altered)?;
        let length = number("length").ok_or_else(altered)?;
        Ok(Self { page_size, length })
    }
}

#[cfg(test)]
mod tests;
