//! What the service says to whoever looks after the machine: lines on standard error.
//!
//! Under the journal each begins with its level as `sd-daemon(3)` has it; a person at a terminal sees the plain text.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::sync::OnceLock;

use rustix::fs::fstat;

/// How much a line matters, as in `syslog(3)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Something does not work.
    Error = 3,
    /// Something works less well, or will not for long.
    Warning = 4,
    /// Good to know later.
    Info = 6,
}

/// Says something.
pub fn log(level: Level, text: impl Display) {
    static JOURNAL: OnceLock<bool> = OnceLock::new();
    let journal = *JOURNAL.get_or_init(|| to_journal(std::env::var("JOURNAL_STREAM").ok().as_deref()));
    // Nobody is left to be told that this failed.
    let _ = io::stderr().lock().write_all(lines(journal, level, &text.to_string()).as_bytes());
}

/// Whether standard error is the stream that systemd says leads to the journal: device and inode.
fn to_journal(stream: Option<&str>) -> bool {
    let Ok(stat) = fstat(io::stderr()) else { return false };
    stream == Some(format!("{}:{}", stat.st_dev, stat.st_ino).as_str())
}

fn lines(journal: bool, level: Level, text: &str) -> String {
    let prefix = if journal { format!("<{}>", level as u8) } else { "headstartd: ".to_owned() };
    let mut lines = String::with_capacity(text.len() + prefix.len() + 1);
    for line in text.lines() {
        lines.extend([prefix.as_str(), line, "\n"]);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_its_level_in_the_journal_and_none_elsewhere() {
        assert_eq!(lines(true, Level::Warning, "one\ntwo"), "<4>one\n<4>two\n");
        assert_eq!(lines(false, Level::Error, "one"), "headstartd: one\n");
    }

    #[test]
    fn only_the_stream_that_is_named_is_the_journal() {
        let stat = fstat(io::stderr()).expect("it is open");
        let own = format!("{}:{}", stat.st_dev, stat.st_ino);
        assert!(to_journal(Some(&own)));
        assert!(!to_journal(Some(&format!("{own}0"))) && !to_journal(None));
    }
}
