//! Whether an app is prefetched, who said so, and how far it has got.

use serde::{Deserialize, Serialize};

/// What a person chose for an app.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Never prefetched, never learned from; its launches are still timed.
    Off,
    /// Prefetched when it is launched, once it is learned and as long as it gains.
    #[default]
    AtLaunch,
}

/// How far an app has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AppState {
    /// Its launches are being recorded; it is prefetched after a few.
    Learning {
        /// Launches learned from.
        runs: u32,
        /// Launches needed.
        needed: u32,
    },
    /// It is prefetched at launch.
    Prefetching,
    /// A person switched it off.
    SwitchedOff,
    /// Headstart switched it off, because it gained nothing. It is tried again after the app, the kernel or the drive
    /// changes.
    WithoutGain {
        /// It was slower, not merely no faster.
        slower: bool,
    },
    /// Nothing of what it reads is on a drive that may be read ahead from.
    Untouchable,
}
