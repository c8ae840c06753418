//! How an app's state moves on after a launch. Pure.
//!
//! ```text
//!              learned, and there is              slower, or no gain though
//!              something to read ahead            one would have shown
//! Learning ──────────────────────────> Prefetching ──────────────────> WithoutGain
//!    │  ^                                                                    │
//!    │  └────────────────────────────────────────────────────────────────────┘
//!    v  learned, but nothing to read       the app, the kernel or the drive changed
//! Untouchable
//! ```
//!
//! `SwitchedOff` is a person's, and only a person ends it.

use headstart_shared::policy::{AppState, Policy};

/// What is known after a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct After {
    /// What the app's person chose.
    pub policy: Policy,
    /// Launches that its profile was learned from.
    pub learned: u32,
    /// Launches that are needed.
    pub needed: u32,
    /// Whether its plans read anything.
    pub plans_read: bool,
    /// That it is to be given up; whether because it was slower.
    pub give_up: Option<bool>,
    /// Whether the app, the kernel or the drive is another than when it was given up.
    pub changed: bool,
}

/// The state after a launch.
#[must_use]
pub fn advance(state: AppState, after: &After) -> AppState {
    if after.policy == Policy::Off {
        return AppState::SwitchedOff;
    }
    match state {
        AppState::Prefetching => match after.give_up {
            Some(slower) => AppState::WithoutGain { slower },
            None if after.plans_read => AppState::Prefetching,
            None => learned(after),
        },
        AppState::WithoutGain { slower } if !after.changed => AppState::WithoutGain { slower },
        AppState::WithoutGain { .. }
        | AppState::Learning { .. }
        | AppState::Untouchable
        | AppState::SwitchedOff => learned(after),
    }
}

/// The state of an app by what has been learned of it.
fn learned(after: &After) -> AppState {
    match (after.learned >= after.needed, after.plans_read) {
        (false, _) => AppState::Learning { runs: after.learned, needed: after.needed },
        (true, true) => AppState::Prefetching,
        (true, false) => AppState::Untouchable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AFTER: After = After {
        policy: Policy::AtLaunch,
        learned: 3,
        needed: 3,
        plans_read: true,
        give_up: None,
        changed: false,
    };
    const LEARNING: AppState = AppState::Learning { runs: 2, needed: 3 };
    const GAVE_UP: AppState = AppState::WithoutGain { slower: false };

    #[test]
    fn an_app_is_prefetched_once_it_is_learned_and_has_something_to_read() {
        assert_eq!(advance(LEARNING, &After { learned: 2, ..AFTER }), LEARNING);
        assert_eq!(advance(LEARNING, &AFTER), AppState::Prefetching);
        assert_eq!(advance(LEARNING, &After { plans_read: false, ..AFTER }), AppState::Untouchable);
        assert_eq!(advance(AppState::Untouchable, &AFTER), AppState::Prefetching);
    }

    #[test]
    fn an_app_without_a_gain_is_given_up_until_something_changes() {
        let gave_up = advance(AppState::Prefetching, &After { give_up: Some(true), ..AFTER });
        assert_eq!(gave_up, AppState::WithoutGain { slower: true });
        assert_eq!(advance(GAVE_UP, &AFTER), GAVE_UP);
        assert_eq!(advance(GAVE_UP, &After { changed: true, ..AFTER }), AppState::Prefetching);
        assert_eq!(
            advance(GAVE_UP, &After { changed: true, learned: 0, ..AFTER }),
            AppState::Learning { runs: 0, needed: 3 }
        );
    }

    #[test]
    fn what_a_person_switched_off_stays_off() {
        for state in [LEARNING, GAVE_UP, AppState::Prefetching] {
            assert_eq!(advance(state, &After { policy: Policy::Off, ..AFTER }), AppState::SwitchedOff);
        }
        assert_eq!(advance(AppState::SwitchedOff, &AFTER), AppState::Prefetching);
    }

    #[test]
    fn a_profile_that_has_become_empty_is_learned_or_left_alone() {
        let emptied = After { plans_read: false, ..AFTER };
        assert_eq!(advance(AppState::Prefetching, &emptied), AppState::Untouchable);
        assert_eq!(
            advance(AppState::Prefetching, &After { learned: 1, ..emptied }),
            AppState::Learning { runs: 1, needed: 3 }
        );
    }
}
