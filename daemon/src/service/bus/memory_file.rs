//! Large answers: files in memory that nobody can change any more.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

/// A sealed file (`memfd_create(2)`) of these bytes, to be read from its beginning.
pub(super) fn sealed(name: &str, bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.write_all(bytes)?;
    file.rewind()?;
    let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    fcntl_add_seals(&file, seals)?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn it_is_read_whole_and_written_by_nobody() {
        let mut file = File::from(sealed("test", b"{}").expect("made"));
        let mut text = String::new();
        file.read_to_string(&mut text).expect("read");
        assert_eq!(text, "{}");
        file.write_all(b"more").expect_err("it cannot grow");
        file.rewind().expect("rewound");
        file.write_all(b"[").expect_err("it cannot change");
        file.set_len(0).expect_err("it cannot shrink");
    }
}
