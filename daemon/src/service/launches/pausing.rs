//! Whether prefetching is paused: by a person, until then or until further notice, or for the machine's sake. Pure.

use chrono::{DateTime, Utc};
use headstart_shared::bus::PauseCode;

use crate::service::messages::Pause;

/// What a person said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Person {
    /// Nothing.
    #[default]
    Silent,
    /// Nothing is to be prefetched, until then if that was said.
    Paused(Option<DateTime<Utc>>),
}

impl Person {
    /// The same, with a pause that is over taken away.
    #[must_use]
    pub fn at(self, now: DateTime<Utc>) -> Self {
        match self {
            Self::Paused(Some(until)) if until <= now => Self::Silent,
            other => other,
        }
    }

    /// Whether it is paused, with what the machine's state asks for.
    #[must_use]
    pub fn and(self, machine: Option<PauseCode>) -> Pause {
        match (self, machine) {
            (Self::Paused(until), _) => Pause { reason: PauseCode::ByPerson, until },
            (Self::Silent, Some(reason)) => Pause { reason, until: None },
            (Self::Silent, None) => Pause::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(seconds, 0).unwrap()
    }

    #[test]
    fn a_pause_ends_when_it_was_to_and_one_without_end_does_not() {
        let hour = Person::Paused(Some(at(3600)));
        assert_eq!(hour.at(at(3599)), hour);
        assert_eq!(hour.at(at(3600)), Person::Silent);
        assert_eq!(Person::Paused(None).at(at(9_999_999)), Person::Paused(None));
    }

    #[test]
    fn a_person_goes_before_the_machine() {
        let hour = Person::Paused(Some(at(3600)));
        let by_person = Pause { reason: PauseCode::ByPerson, until: Some(at(3600)) };
        assert_eq!(hour.and(Some(PauseCode::OnBattery)), by_person);
        assert_eq!(Person::Silent.and(Some(PauseCode::OnBattery)).reason, PauseCode::OnBattery);
        assert_eq!(Person::Silent.and(None).reason, PauseCode::NotPaused);
    }
}
