//! The progress bar of a comparison, on standard error.

use std::time::Duration;

use headstart_daemon::measure::compare::{Doing, Progress};
use headstart_shared::run::Condition;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shows progress; on anything but a terminal nothing is shown.
pub(crate) struct Bar {
    bar: ProgressBar,
    rounds: u32,
}

impl Bar {
    /// A bar for a comparison of so many rounds.
    pub(crate) fn new(rounds: u32) -> Self {
        let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{bar:24} {pos}/{len} starts, {elapsed}  {msg}");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, rounds }
    }

    /// Shows how far it is.
    pub(crate) fn show(&self, progress: Progress) {
        self.bar.set_length(progress.total.into());
        self.bar.set_position(progress.done.into());
        self.bar.set_message(match progress.time {
            Some(time) => format!("{}: {time}", self.words(progress.doing)),
            None => self.words(progress.doing),
        });
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn words(&self, doing: Doing) -> String {
        match doing {
            Doing::Looking => "first start, as things are".into(),
            Doing::Learning => "learning from a cold start".into(),
            Doing::Checking => "checking what was used".into(),
            Doing::Timing(slot) => {
                let condition = match (slot.condition, slot.recorded) {
                    (Condition::Cold, true) => "cold, recorded",
                    (Condition::Cold, false) => "cold",
                    (Condition::Prefetched, _) => "cold, prefetched",
                    (Condition::Warm, _) => "warm",
                };
                format!("round {} of {}, {condition}", slot.round, self.rounds)
            }
        }
    }
}
