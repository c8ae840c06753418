//! What is done about one launch. Pure.
//!
//! The lot comes after everything else is known, so that both arms differ in nothing but it: a launch that would not be
//! prefetched anyway, because it is warm or prefetching is paused, is in neither.

use headstart_shared::launch::{Arm, Temperature};
use headstart_shared::policy::{AppState, Policy};

/// What is known of a launch when it begins.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each a condition of its own")]
pub struct Situation {
    /// What its person chose for the app.
    pub policy: Policy,
    /// How far the app has got.
    pub state: AppState,
    /// How cold it is.
    pub temperature: Temperature,
    /// Whether there are plans to carry out.
    pub planned: bool,
    /// Whether prefetching is paused.
    pub paused: bool,
    /// Whether files of the app were replaced since it was last learned from.
    pub upgraded: bool,
    /// Whether the recorder is ready.
    pub recorder: bool,
}

/// Numbers drawn for one launch, each from 0 to below 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lots {
    /// Decides about holding out.
    pub holdout: f64,
    /// Decides about recording.
    pub record: f64,
}

/// Shares of launches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    /// Of cold launches that are held out.
    pub holdout: f64,
    /// Of prefetched launches that are recorded, so that a profile follows what the app becomes.
    pub record: f64,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Prefetch, hold out or leave alone.
    pub arm: Arm,
    /// Whether to record.
    pub record: bool,
}

/// Decides.
#[must_use]
pub fn decide(situation: &Situation, lots: Lots, shares: Shares) -> Decision {
    let arm = arm(situation, lots.holdout < shares.holdout);
    Decision { arm, record: situation.recorder && record(situation, arm, lots.record < shares.record) }
}

fn arm(situation: &Situation, held_out: bool) -> Arm {
    let prefetched = situation.policy == Policy::AtLaunch
        && situation.state == AppState::Prefetching
        && situation.planned
        && !situation.paused
        && situation.temperature != Temperature::Warm;
    match (prefetched, situation.temperature) {
        (false, _) => Arm::Off,
        (true, Temperature::Cold) if held_out => Arm::HeldOut,
        (true, _) => Arm::Prefetched,
    }
}

fn record(situation: &Situation, arm: Arm, drawn: bool) -> bool {
    if situation.policy == Policy::Off {
        return false;
    }
    match (situation.state, arm) {
        // A held-out launch is there to be compared with: recording would cost it something.
        (_, Arm::HeldOut) => false,
        (AppState::Learning { .. }, _) => true,
        (AppState::Prefetching, _) => situation.upgraded || drawn,
        (AppState::SwitchedOff | AppState::WithoutGain { .. } | AppState::Untouchable, _) => {
            situation.upgraded
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SITUATION: Situation = Situation {
        policy: Policy::AtLaunch,
        state: AppState::Prefetching,
        temperature: Temperature::Cold,
        planned: true,
        paused: false,
        upgraded: false,
        recorder: true,
    };
    const SHARES: Shares = Shares { holdout: 0.125, record: 0.1 };

    fn decided(situation: Situation, holdout: f64, record: f64) -> (Arm, bool) {
        let Decision { arm, record } = decide(&situation, Lots { holdout, record }, SHARES);
        (arm, record)
    }

    #[test]
    fn a_cold_launch_of_a_learned_app_is_prefetched_or_held_out_by_lot() {
        assert_eq!(decided(SITUATION, 0.5, 0.5), (Arm::Prefetched, false));
        assert_eq!(decided(SITUATION, 0.124, 0.5), (Arm::HeldOut, false));
        assert_eq!(decided(SITUATION, 0.125, 0.05), (Arm::Prefetched, true));
    }

    #[test]
    fn a_held_out_launch_is_never_recorded() {
        assert_eq!(decided(SITUATION, 0.0, 0.0), (Arm::HeldOut, false));
        assert_eq!(decided(Situation { upgraded: true, ..SITUATION }, 0.0, 0.0), (Arm::HeldOut, false));
    }

    #[test]
    fn only_cold_launches_are_held_out_and_warm_ones_need_nothing() {
        let lukewarm = Situation { temperature: Temperature::Lukewarm, ..SITUATION };
        let warm = Situation { temperature: Temperature::Warm, ..SITUATION };
        let unknown = Situation { temperature: Temperature::Unknown, ..SITUATION };
        assert_eq!(decided(lukewarm, 0.0, 0.5).0, Arm::Prefetched);
        assert_eq!(decided(unknown, 0.0, 0.5).0, Arm::Prefetched);
        assert_eq!(decided(warm, 0.0, 0.5).0, Arm::Off);
    }

    #[test]
    fn nothing_is_prefetched_when_paused_unplanned_switched_off_or_not_yet_learned() {
        let learning = AppState::Learning { runs: 1, needed: 3 };
        let gave_up = AppState::WithoutGain { slower: false };
        for other in [
            Situation { paused: true, ..SITUATION },
            Situation { planned: false, ..SITUATION },
            Situation { policy: Policy::Off, ..SITUATION },
            Situation { state: learning, ..SITUATION },
            Situation { state: gave_up, ..SITUATION },
        ] {
            assert_eq!(decided(other, 0.0, 0.5).0, Arm::Off, "{other:?}");
        }
    }

    #[test]
    fn what_is_being_learned_is_recorded_and_what_a_person_switched_off_never() {
        let learning =
            Situation { state: AppState::Learning { runs: 0, needed: 3 }, planned: false, ..SITUATION };
        assert_eq!(decided(learning, 0.5, 0.9), (Arm::Off, true));
        assert_eq!(decided(Situation { recorder: false, ..learning }, 0.5, 0.9), (Arm::Off, false));
        assert_eq!(decided(Situation { policy: Policy::Off, ..learning }, 0.5, 0.0), (Arm::Off, false));
    }

    #[test]
    fn an_upgrade_is_learned_from_whatever_the_lot() {
        assert_eq!(decided(Situation { upgraded: true, ..SITUATION }, 0.5, 0.9), (Arm::Prefetched, true));
        let gave_up =
            Situation { state: AppState::WithoutGain { slower: true }, upgraded: true, ..SITUATION };
        assert_eq!(decided(gave_up, 0.5, 0.9), (Arm::Off, true));
    }
}
