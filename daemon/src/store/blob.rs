//! A profile as bytes: `HSPF`, the format as one byte, the CRC-32 of the rest (little-endian), the profile in postcard.
//!
//! Compact, since a start writes it each time: one file costs its path and some 30 bytes, a range 5 to 12. Decoding
//! allocates no more than in proportion to the bytes given, and what comes out has been verified.

use crate::profile::{InvalidProfile, Profile};

const MAGIC: &[u8; 4] = b"HSPF";
const FORMAT: u8 = 1;
const HEADER: usize = MAGIC.len() + 1 + 4;

/// Why a stored profile is of no use.
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
    let payload = postcard::to_stdvec(profile)?;
    let mut bytes = Vec::with_capacity(HEADER + payload.len());
    bytes.extend_from_slice(MAGIC);
    bytes.push(FORMAT);
    bytes.extend_from_slice(&crc32fast::hash(&payload).to_le_bytes());
    bytes.extend_from_slice(&payload);
    Ok(bytes)
}

/// The profile in these bytes, verified.
pub(super) fn decode(bytes: &[u8]) -> Result<Profile, BlobError> {
    let (header, payload) = bytes.split_at_checked(HEADER).ok_or(BlobError::Damaged)?;
    let (magic, rest) = header.split_at(MAGIC.len());
    let [format, crc @ ..] = rest else { return Err(BlobError::Damaged) };
    if magic != MAGIC {
        return Err(BlobError::Damaged);
    }
    if *format != FORMAT {
        return Err(BlobError::Format(*format));
    }
    if crc != crc32fast::hash(payload).to_le_bytes() {
        return Err(BlobError::Damaged);
    }
    let (profile, left): (Profile, &[u8]) = postcard::take_from_bytes(payload)?;
    if !left.is_empty() {
        return Err(BlobError::Damaged);
    }
    profile.verify()?;
    Ok(profile)
}
