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
            Some(time) => format!("{}: {time}", words(progress.doing, self.rounds)),
            None => words(progress.doing, self.rounds),
        });
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// What is being done, for people.
fn words(doing: Doing, rounds: u32) -> String {
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
            format!("round {} of {rounds}, {condition}", slot.round)
        }
    }
}

#[cfg(test)]
mod tests {
    use headstart_daemon::measure::schedule::Slot;
    use headstart_shared::units::Nanos;

    use super::*;

    fn timing(condition: Condition, recorded: bool) -> Doing {
        Doing::Timing(Slot { round: 2, condition, recorded })
    }

    #[test]
    fn each_kind_of_start_has_words_of_its_own() {
        let timed = [(Condition::Cold, true), (Condition::Cold, false), (Condition::Prefetched, false)];
        let doing = [Doing::Looking, Doing::Learning, Doing::Checking, timing(Condition::Warm, false)];
        let doing = doing.into_iter().chain(timed.map(|(condition, recorded)| timing(condition, recorded)));
        let all: std::collections::HashSet<_> = doing.map(|doing| words(doing, 5)).collect();
        assert_eq!(all.len(), 7, "{all:?}");
        assert_eq!(words(timing(Condition::Prefetched, false), 5), "round 2 of 5, cold, prefetched");
    }

    #[test]
    fn the_bar_follows_what_is_known_of_the_length() {
        let bar = Bar::new(5);
        let progress = Progress { doing: Doing::Looking, done: 0, total: 18, time: None };
        bar.show(progress);
        bar.show(Progress { done: 3, total: 16, time: Some(Nanos(1_500_000_000)), ..progress });
        assert_eq!((bar.bar.position(), bar.bar.length()), (3, Some(16)));
        assert_eq!(bar.bar.message(), format!("first start, as things are: {}", Nanos(1_500_000_000)));
        bar.clear();
        assert!(bar.bar.is_finished());
    }
}
