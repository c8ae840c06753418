//! How long a process waited for drives, from the kernel's delay accounting
//! (Documentation/accounting/delay-accounting.rst, taskstats.rst).
//!
//! Asked for over generic netlink, because `/proc/PID/stat` tells it of the first thread only. The kernel counts only for
//! threads that were made while `kernel.task_delayacct` was on.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use headstart_shared::units::Nanos;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

use crate::roots::Roots;

/// `GENL_ID_CTRL` (`linux/genetlink.h`): the family that knows the others.
const CONTROLLER: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
/// `linux/taskstats.h`.
const TASKSTATS_CMD_GET: u8 = 1;
const TASKSTATS_CMD_ATTR_TGID: u16 = 2;
const TASKSTATS_TYPE_STATS: u16 = 3;
const TASKSTATS_TYPE_AGGR_TGID: u16 = 5;
/// Where `blkio_delay_total` is in `struct taskstats`: the same in all versions, which only append.
const BLKIO_DELAY_TOTAL: usize = 40;
/// `linux/netlink.h`.
const NLM_F_REQUEST: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const NLMSG_HEADER: usize = 16;
const GENL_HEADER: usize = 4;
const NESTED: u16 = 1 << 15;

/// A conversation with the kernel about delays. One a thread.
#[derive(Debug)]
pub struct Delays {
    socket: OwnedFd,
    family: u16,
    sequence: u32,
}

impl Delays {
    /// Begins a conversation.
    ///
    /// # Errors
    /// If the kernel has no taskstats (`CONFIG_TASKSTATS`), or refuses.
    pub fn open() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC;
        let protocol = Some(netlink::GENERIC);
        let socket = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
        rustix::net::connect(&socket, &netlink::SocketAddrNetlink::new(0, 0))?;
        let mut this = Self { socket, family: CONTROLLER, sequence: 0 };
        let answer = this.ask(CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME, b"TASKSTATS\0")?;
        let id = attribute(&answer, CTRL_ATTR_FAMILY_ID).and_then(|id| id.first_chunk());
        this.family = u16::from_ne_bytes(*id.ok_or_else(unexpected)?);
        Ok(this)
    }

    /// How long the threads of a process, those that have ended among them, waited for drives until now.
    ///
    /// # Errors
    /// `ESRCH` if it has ended, `EPERM` without `CAP_NET_ADMIN`.
    pub fn of(&mut self, pid: i32) -> io::Result<Nanos> {
        let answer = self.ask(TASKSTATS_CMD_GET, TASKSTATS_CMD_ATTR_TGID, &pid.to_ne_bytes())?;
        let stats =
            attribute(&answer, TASKSTATS_TYPE_AGGR_TGID).and_then(|all| attribute(all, TASKSTATS_TYPE_STATS));
        let delay = stats.and_then(|stats| stats.get(BLKIO_DELAY_TOTAL..)?.first_chunk());
        Ok(Nanos(u64::from_ne_bytes(*delay.ok_or_else(unexpected)?)))
    }

    /// The attributes of the answer.
    fn ask(&mut self, command: u8, kind: u16, value: &[u8]) -> io::Result<Vec<u8>> {
        self.sequence = self.sequence.wrapping_add(1);
        rustix::net::send(
            &self.socket,
            &request(self.family, self.sequence, command, kind, value),
            SendFlags::empty(),
        )?;
        let mut buffer = vec![0; 8192];
        loop {
            let (length, _) = rustix::net::recv(&self.socket, buffer.as_mut_slice(), RecvFlags::empty())?;
            let message = &buffer[..length.min(buffer.len())];
            // What is left of an earlier question that was given up.
            if word(message, 8) == Some(self.sequence) {
                return answer(message);
            }
        }
    }
}

/// A netlink message with one attribute.
fn request(family: u16, sequence: u32, command: u8, kind: u16, value: &[u8]) -> Vec<u8> {
    let attribute = 4 + value.len();
    let length = NLMSG_HEADER + GENL_HEADER + attribute.next_multiple_of(4);
    let mut message = Vec::with_capacity(length);
    message.extend(u32::try_from(length).unwrap_or_default().to_ne_bytes());
    message.extend(family.to_ne_bytes());
    message.extend(NLM_F_REQUEST.to_ne_bytes());
    message.extend(sequence.to_ne_bytes());
    message.extend([0; 4]);
    message.extend([command, 1, 0, 0]);
    message.extend(u16::try_from(attribute).unwrap_or_default().to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(value);
    message.resize(length, 0);
    message
}

/// The attributes of a message, or the error that it is.
fn answer(message: &[u8]) -> io::Result<Vec<u8>> {
    let kind = message.get(4..6).and_then(|kind| kind.first_chunk()).map(|kind| u16::from_ne_bytes(*kind));
    if kind == Some(NLMSG_ERROR) {
        let errno = word(message, NLMSG_HEADER).map(u32::cast_signed).ok_or_else(unexpected)?;
        return Err(io::Error::from_raw_os_error(errno.saturating_neg()));
    }
    message.get(NLMSG_HEADER + GENL_HEADER..).map(<[u8]>::to_vec).ok_or_else(unexpected)
}

/// The value of the first attribute of this kind.
fn attribute(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16::from_ne_bytes(*attributes.first_chunk()?));
        let kind = u16::from_ne_bytes(*attributes.get(2..)?.first_chunk()?) & !NESTED;
        let value = attributes.get(4..length)?;
        if kind == wanted {
            return Some(value);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

fn word(message: &[u8], at: usize) -> Option<u32> {
    message.get(at..)?.first_chunk().map(|word| u32::from_ne_bytes(*word))
}

fn unexpected() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the kernel's answer about delays is not as documented")
}

/// Turns delay accounting on, and off again when it is dropped if it was off before.
#[derive(Debug)]
pub struct Accounting {
    switch: PathBuf,
    was_off: bool,
}

impl Accounting {
    /// Turns it on, if it is not.
    ///
    /// # Errors
    /// If the kernel has no such switch (before Linux 5.14 it is on or off for good), or refuses.
    pub fn on(roots: &Roots) -> io::Result<Self> {
        let switch = roots.proc.join("sys/kernel/task_delayacct");
        let was_off = is_off(&switch)?;
        if was_off {
            fs::write(&switch, "1")?;
        }
        Ok(Self { switch, was_off })
    }
}

impl Drop for Accounting {
    fn drop(&mut self) {
        if self.was_off {
            // It costs next to nothing; that it cannot be put back harms nobody.
            let _ = fs::write(&self.switch, "0");
        }
    }
}

fn is_off(switch: &Path) -> io::Result<bool> {
    Ok(fs::read_to_string(switch)?.trim() == "0")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::loop_images::skip;

    #[test]
    fn attributes_are_found_and_cut_ones_are_not() {
        let mut attributes = Vec::new();
        for (kind, value) in [(7_u16, &b"ab"[..]), (NESTED | 5, b"abcdefgh")] {
            attributes.extend(u16::try_from(4 + value.len()).unwrap().to_ne_bytes());
            attributes.extend(kind.to_ne_bytes());
            attributes.extend(value);
            attributes.resize(attributes.len().next_multiple_of(4), 0);
        }
        assert_eq!(attribute(&attributes, 5), Some(&b"abcdefgh"[..]));
        assert_eq!(attribute(&attributes, 7), Some(&b"ab"[..]));
        assert_eq!(attribute(&attributes, 9), None);
        assert_eq!(attribute(&attributes[..attributes.len() - 1], 5), None);
        assert_eq!(attribute(&[0, 0, 0, 0], 1), None, "a length of nothing leads nowhere");
    }

    #[test]
    fn the_kernel_tells_how_long_a_process_waited() {
        let own = i32::try_from(std::process::id()).unwrap();
        let mut delays = match Delays::open() {
            Ok(delays) => delays,
            Err(error) => return skip(&format!("taskstats: {error}")),
        };
        match delays.of(own) {
            Ok(waited) => assert!(waited.0 < 3_600_000_000_000, "{waited:?}"),
            Err(error) => return skip(&format!("taskstats: {error}")),
        }
        let gone = delays.of(i32::MAX - 1).unwrap_err();
        assert_eq!(gone.raw_os_error(), Some(rustix::io::Errno::SRCH.raw_os_error()));
    }

    #[test]
    fn the_switch_is_put_back_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let switch = dir.path().join("sys/kernel/task_delayacct");
        fs::create_dir_all(switch.parent().unwrap()).unwrap();
        let roots = Roots { proc: dir.path().into(), ..Roots::default() };
        for before in ["0\n", "1\n"] {
            fs::write(&switch, before).unwrap();
            let accounting = Accounting::on(&roots).unwrap();
            assert_eq!(fs::read_to_string(&switch).unwrap().trim(), "1");
            drop(accounting);
            assert_eq!(fs::read_to_string(&switch).unwrap().trim(), before.trim());
        }
    }
}
