//! For the tests of the launches.

use chrono::DateTime;
use headstart_shared::launch::{Arm, Launch, Temperature, Usage};
use headstart_shared::run::AppId;

/// A launch that has just begun.
pub(super) fn launch(app: &str) -> Launch {
    Launch {
        id: 0,
        app: AppId(app.into()),
        began: DateTime::from_timestamp(1_700_000_000, 123_456_789).unwrap(),
        arm: Arm::Off,
        temperature: Temperature::Unknown,
        cached: None,
        milestones: Vec::new(),
        exclusions: Vec::new(),
        usage: Usage::default(),
        read_ahead: None,
        version: 0,
        recorded: false,
        tuned: false,
    }
}
