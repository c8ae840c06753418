//! Values as bytes: four letters that say of what kind, the format as one byte, the CRC-32 of the rest (little-endian),
//! the value in postcard.
//!
//! Compact, since a start writes them each time: one file of a profile costs its path and some 30 bytes, a range 5 to 12.
//! Decoding allocates no more than in proportion to the bytes given; what comes out of [`decode`] has been verified.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::profile::{InvalidProfile, Profile};

/// What a blob is of. A new format of one gets a new number; what has an old one is then converted or left out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    magic: [u8; 4],
    format: u8,
}

const PROFILE: Kind = Kind { magic: *b"HSPF", format: 1 };
pub(super) const LAUNCH: Kind = Kind { magic: *b"HSLN", format: 1 };
pub(super) const TIMELINE: Kind = Kind { magic: *b"HSTL", format: 1 };
pub(super) const PLANS: Kind = Kind { magic: *b"HSPL", format: 1 };

const HEADER: usize = 4 + 1 + 4;

/// Why a stored value is of no use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlobError {
    /// It is not one at all, or its checksum does not fit.
    #[error("its bytes are damaged")]
    Damaged,
    /// Another version of Headstart wrote it.
    #[error("it has format {0}, which this Headstart does not read")]
    Format(u8),
    /// It cannot be turned into bytes or back.
    #[error("it cannot be decoded: {0}")]
    Code(#[from] postcard::Error),
    /// It breaks an invariant.
    #[error("it is invalid: {0}")]
    Invalid(#[from] InvalidProfile),
}

/// The bytes of a valid profile.
pub(super) fn encode(profile: &Profile) -> Result<Vec<u8>, BlobError> {
    profile.verify()?;
    pack(PROFILE, profile)
}

/// The profile in these bytes, verified.
pub(super) fn decode(bytes: &[u8]) -> Result<Profile, BlobError> {
    let profile: Profile = unpack(PROFILE, bytes)?;
    profile.verify()?;
    Ok(profile)
}

/// The bytes of a value.
pub(super) fn pack(kind: Kind, value: &impl Serialize) -> Result<Vec<u8>, BlobError> {
    let payload = postcard::to_stdvec(value)?;
    let mut bytes = Vec::with_capacity(HEADER + payload.len());
    bytes.extend_from_slice(&kind.magic);
    bytes.push(kind.format);
    bytes.extend_from_slice(&crc32fast::hash(&payload).to_le_bytes());
    bytes.extend_from_slice(&payload);
    Ok(bytes)
}

/// The value in these bytes.
pub(super) fn unpack<T: DeserializeOwned>(kind: Kind, bytes: &[u8]) -> Result<T, BlobError> {
    let (header, payload) = bytes.split_at_checked(HEADER).ok_or(BlobError::Damaged)?;
    let (magic, rest) = header.split_at(kind.magic.len());
    let [format, crc @ ..] = rest else { return Err(BlobError::Damaged) };
    if magic != kind.magic {
        return Err(BlobError::Damaged);
    }
    if *format != kind.format {
        return Err(BlobError::Format(*format));
    }
    if crc != crc32fast::hash(payload).to_le_bytes() {
        return Err(BlobError::Damaged);
    }
    let (value, left): (T, &[u8]) = postcard::take_from_bytes(payload)?;
    if left.is_empty() { Ok(value) } else { Err(BlobError::Damaged) }
}
