//! The whole comparison: learning, rounds, and a last start that is recorded to see what the prefetch was good for.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use headstart_shared::comparison::Comparison;
use headstart_shared::run::{ColdMethod, Milestone};
use headstart_shared::units::Nanos;

use super::cold::ColdError;
use super::prefetch::Choices;
use super::schedule::Slot;
use super::start::{Stage, StartError};
use super::subject::Subject;
use crate::mounts::{Mounts, MountsError};
use crate::profile::Profile;
use crate::recording::Backend;
use crate::roots::Roots;
use crate::watch::milestone::settled::Quiet;
use crate::watch::milestone::{Goal, Outcome, has_display};
use crate::watch::session::Session;

mod account;
mod work;

use work::Work;

/// What a start is timed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// What suits: the first window of an application, the end of a command.
    Auto,
    /// The given milestone.
    Milestone(Milestone),
}

/// How to compare.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Rounds.
    pub rounds: u32,
    /// Runs that a profile has to rest on before it is measured.
    pub learn: u32,
    /// How cold is made.
    pub cold: ColdMethod,
    /// What a start is timed to.
    pub until: Until,
    /// How long one start may take.
    pub timeout: Duration,
    /// How long a program is left alone after its milestone.
    pub linger: Duration,
    /// How plans are made.
    pub choices: Choices,
    /// How runs are recorded.
    pub backend: Backend,
    /// Also time cold starts that are recorded.
    pub time_recording: bool,
    /// Count commands that fail.
    pub ignore_failure: bool,
}

/// What a comparison is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// The first start, with the caches as they were found.
    Looking,
    /// A cold start that is recorded.
    Learning,
    /// A start that is timed.
    Timing(Slot),
    /// A prefetched start that is recorded.
    Checking,
}

/// What is told while a comparison goes on.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// What is being done, or was.
    pub doing: Doing,
    /// Starts done so far.
    pub done: u32,
    /// Starts in all, as far as is known.
    pub total: u32,
    /// The time of the start, once it is over and counts.
    pub time: Option<Nanos>,
}

/// Sees the progress.
pub type Observer<'a> = dyn FnMut(Progress) + 'a;

/// No comparison can be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// The first start could not be made.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Caches cannot be emptied.
    #[error(transparent)]
    Cold(#[from] ColdError),
    /// The table of mounts cannot be read.
    #[error(transparent)]
    Mounts(#[from] MountsError),
    /// The first start went wrong.
    #[error("{name}: {outcome}{cure}")]
    Outcome {
        /// What was started.
        name: String,
        /// What came of it.
        outcome: Outcome,
        /// What to do about it; begins on a new line.
        cure: &'static str,
    },
    /// The command fails.
    #[error(
        "{name} ends with {status}; see that it succeeds, or count it all the same with --ignore-failure"
    )]
    Failed {
        /// The command.
        name: String,
        /// How it ended.
        status: std::process::ExitStatus,
    },
    /// Not one timed start counts.
    #[error("no start of {name} counts; the first: {reason}")]
    NoneCounts {
        /// What was started.
        name: String,
        /// Why the first one does not count.
        reason: String,
    },
    /// There is nothing to read ahead.
    #[error("{name} reads nothing that could be read ahead: {why}")]
    Nothing {
        /// What was started.
        name: String,
        /// What became of what it touched.
        why: String,
    },
}

/// What came of a comparison.
#[derive(Debug)]
pub struct Compared {
    /// The result; without runs if it was stopped before one was timed.
    pub comparison: Comparison,
    /// The profile as it is now.
    pub profile: Profile,
    /// Whether it was stopped early.
    pub cancelled: bool,
}

/// Compares the starts of `subject`, going on from `known` if there is a profile.
///
/// # Errors
/// When nothing can be measured. What goes wrong with a single start later is in the result.
pub fn compare(
    subject: &Subject,
    session: &Session,
    known: Option<Profile>,
    options: &Options,
    roots: &Roots,
    cancel: &AtomicBool,
    observer: &mut Observer<'_>,
) -> Result<Compared, CompareError> {
    let stage = Stage {
        subject,
        session,
        goal: goal(options.until, subject, session),
        deadline: options.timeout,
        linger: options.linger,
        roots,
        cancel,
    };
    Work::new(stage, options, Mounts::of(roots, None)?, observer).run(known)
}

fn goal(until: Until, subject: &Subject, session: &Session) -> Goal {
    match until {
        Until::Milestone(Milestone::Settled) => Goal::Settled(Quiet::default()),
        Until::Milestone(Milestone::Exit) => Goal::Exit,
        Until::Milestone(_) => Goal::Window,
        // A command may be a graphical program all the same: its first start will show.
        Until::Auto if has_display(session) => Goal::Window,
        Until::Auto if subject.desktop => Goal::Settled(Quiet::default()),
        Until::Auto => Goal::Exit,
    }
}
