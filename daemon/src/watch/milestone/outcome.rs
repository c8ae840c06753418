//! How a start came out.

use std::fmt;
use std::process::ExitStatus;

use headstart_shared::run::Milestone;
use headstart_shared::text::clean;
use headstart_shared::units::Nanos;

/// How a start came out.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It reached the milestone.
    Reached {
        /// Which.
        milestone: Milestone,
        /// When, since exec.
        at: Nanos,
        /// How that is known.
        by: Evidence,
    },
    /// It ended before.
    ExitedEarly {
        /// How the program ended.
        status: ExitStatus,
        /// When, since exec.
        after: Nanos,
        /// The end of what it wrote.
        last_words: String,
        /// What was seen and did not count.
        notes: Vec<String>,
    },
    /// It passed the request on to an instance that ran already: a hot start, which never counts.
    HandedOver {
        /// To which.
        to: HandedTo,
    },
    /// The milestone did not come in time.
    TooLate {
        /// Which.
        milestone: Milestone,
        /// How long was waited, since exec.
        after: Nanos,
        /// Whether any process of the run is still there.
        running: bool,
        /// The end of what it wrote.
        last_words: String,
        /// What was seen and did not count.
        notes: Vec<String>,
    },
    /// Stopped by the person.
    Cancelled,
}

/// How a milestone is known to be reached.
#[derive(Clone, Debug, PartialEq)]
pub enum Evidence {
    /// A window of the X server.
    Window {
        /// Its number.
        id: u32,
        /// Its title.
        title: String,
        /// How it is known to be the run's.
        by: Ownership,
    },
    /// The compositor's list of windows.
    Toplevel {
        /// The application ID that matched.
        app_id: String,
    },
    /// The program's own log of the Wayland protocol. It was written to while the start ran.
    ProtocolLog,
    /// The program's end.
    Exit(ExitStatus),
    /// Quiet.
    Quiet,
}

/// How a window is known to be the run's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// It belongs to a process of the run.
    Process,
    /// It is new and has the application's class.
    Class,
}

/// An instance that ran already.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HandedTo {
    /// Its process, if known.
    pub pid: Option<i32>,
    /// The title of a window of it; empty if unknown.
    pub window: String,
}

impl fmt::Display for HandedTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.pid, self.window.as_str()) {
            (Some(pid), "") => write!(f, "process {pid}"),
            (Some(pid), title) => write!(f, "process {pid} (window {title:?})"),
            (None, title) => write!(f, "window {title:?}"),
        }
    }
}

impl fmt::Display for Outcome {
    /// A sentence without a full stop, with the cure where there is one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reached { milestone, at, .. } => write!(f, "{milestone} after {at}"),
            Self::ExitedEarly { status, after, last_words, notes } => {
                write!(f, "it ended after {after} ({status}) before the start was over")?;
                details(f, last_words, notes)
            }
            Self::HandedOver { to } => {
                write!(f, "it handed over to an instance that runs already: {to}; close that first")
            }
            Self::TooLate { milestone, after, running, last_words, notes } => {
                let state = if *running { "it still runs" } else { "it has ended" };
                let missing = match milestone {
                    Milestone::FirstWindow => "it showed no window",
                    Milestone::Exit => "it did not end",
                    _ => "it did not come to rest",
                };
                write!(f, "{missing} within {after}; {state}")?;
                details(f, last_words, notes)
            }
            Self::Cancelled => f.write_str("stopped"),
        }
    }
}

fn details(f: &mut fmt::Formatter<'_>, last_words: &str, notes: &[String]) -> fmt::Result {
    for note in notes {
        write!(f, "; {note}")?;
    }
    // The last lines say what went wrong; a screenful of warnings before them does not.
    // They come from outside, and must not command the terminal.
    let lines: Vec<String> = last_words.lines().map(clean).collect();
    let last = &lines[lines.len().saturating_sub(8)..];
    if last.is_empty() { Ok(()) } else { write!(f, "; its last words:\n{}", last.join("\n")) }
}
