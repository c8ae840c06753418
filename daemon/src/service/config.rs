//! The configuration: one TOML file, every key of which has a default.

use std::time::Duration;

use headstart_shared::units::Bytes;

use super::launches::decide::Shares;
use crate::store::Retention;

/// The configuration in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Launches that an app is learned from before it is prefetched.
    pub learn: u32,
    /// Shares of launches that are held out or recorded.
    pub shares: Shares,
    /// Whether nothing is prefetched on battery.
    pub pause_on_battery: bool,
    /// The most that is read ahead in a day.
    pub daily_budget: Option<Bytes>,
    /// Whether priorities may be changed during a launch.
    pub priorities: bool,
    /// How long what is kept.
    pub retention: Retention,
}

const DAY: Duration = Duration::from_hours(24);
const MIB: u64 = 1 << 20;

impl Default for Config {
    fn default() -> Self {
        Self {
            learn: 3,
            shares: Shares { holdout: 0.125, record: 0.1 },
            pause_on_battery: false,
            daily_budget: None,
            priorities: true,
            retention: Retention { launches: DAY * 365 * 2, activity: DAY * 90, size: Bytes(200 * MIB) },
        }
    }
}
