//! The configuration: one TOML file, every key of which has a default.
//!
//! What is wrong in it is named by line, column and key, with the cure, and then none of it is used: half a
//! configuration is nobody's intention. The keys are one table (`keys.rs`), from which a file is read, written and explained.

mod error;
mod keys;
mod place;

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use headstart_shared::units::Bytes;

use super::launches::decide::Shares;
use crate::profile::atomic;
use crate::store::Retention;
pub use error::{ConfigError, Flaw, Problem};

/// Where it is unless said otherwise.
pub const FILE: &str = "/etc/headstart/config.toml";
/// The longest text that is read, in bytes: the file with every key explained has some 2 KiB.
pub const MAX_LENGTH: u64 = 64 << 10;

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

impl Config {
    /// The configuration in a file; the defaults if there is none.
    ///
    /// # Errors
    /// The file cannot be read, or something in it is wrong.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        match read(path) {
            Ok(text) => Self::from_toml(path, &text),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(source) => Err(ConfigError::Read { path: path.into(), source }),
        }
    }

    /// The configuration in a text. `path` is for messages only. Keys that are not in it have their defaults.
    ///
    /// # Errors
    /// The text is no TOML, or has keys or values that there are not.
    pub fn from_toml(path: &Path, text: &str) -> Result<Self, ConfigError> {
        keys::read(text).map_err(|flaw| ConfigError::Invalid { path: path.into(), flaw })
    }

    /// As a text with every key, each explained.
    #[must_use]
    pub fn to_toml(&self) -> String {
        keys::write(self)
    }

    /// Makes a text the file, as a whole or not at all, once it is found to be right. Gives the configuration in it.
    ///
    /// # Errors
    /// Something in the text is wrong, or the file cannot be written; then it is as before.
    pub fn save(path: &Path, text: &str) -> Result<Self, ConfigError> {
        let config = Self::from_toml(path, text)?;
        let earlier = fs::metadata(path).ok();
        atomic::write(path, text.as_bytes())?;
        if let Some(earlier) = earlier {
            // Who could read it before still can, and nobody else.
            let keep = || -> io::Result<()> {
                std::os::unix::fs::chown(path, Some(earlier.uid()), Some(earlier.gid()))?;
                fs::set_permissions(path, earlier.permissions())
            };
            keep().map_err(|source| ConfigError::Keep { path: path.into(), source })?;
        }
        Ok(config)
    }
}

fn read(path: &Path) -> io::Result<String> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    File::open(path)?.take(MAX_LENGTH + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_LENGTH {
        return Err(io::Error::other(format!("it is longer than {MAX_LENGTH} bytes")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
