//! The keys: what each means, which values it may have, and what of the configuration it is.

use std::fmt::Write as _;
use std::time::Duration;

use headstart_shared::units::Bytes;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Flaw, Problem};
use super::place::Place;
use super::{Config, DAY};
use crate::watch::desktop::near_matches;

/// A key of the file.
pub(super) struct Key {
    /// Its group and name.
    pub(super) name: &'static str,
    /// What it means, for the file: lines without the `#`.
    explained: &'static str,
    /// What values it may have, to be read after "must be".
    pub(super) wanted: &'static str,
    /// Takes a value over; `None` if it cannot have it.
    set: fn(&mut Config, &DeValue) -> Option<()>,
    /// The value as in the file.
    get: fn(&Config) -> String,
}

const SHARE: &str = "a share from 0 to 1";
const SWITCH: &str = "true or false";
const DAYS: &str = "a whole number of days from 1 to 36500";

pub(super) const KEYS: &[Key] = &[
    Key {
        name: "learning.runs",
        explained: "Launches that an app is learned from before it is prefetched: 1 to 20.",
        wanted: "a whole number from 1 to 20",
        set: |config, value| {
            config.learn = whole(value, 1, 20)?.try_into().ok()?;
            Some(())
        },
        get: |config| config.learn.to_string(),
    },
    Key {
        name: "learning.again",
        explained: "The share of prefetched launches that are learned from again, so that what is prefetched follows\n\
                    what the app becomes: 0 to 1. Such launches cost a little more and do not count for a verdict.",
        wanted: SHARE,
        set: |config, value| set(&mut config.shares.record, share(value)),
        get: |config| float(config.shares.record),
    },
    Key {
        name: "comparison.holdout",
        explained: "The share of cold launches that are not prefetched on purpose, to compare with: 0 to 1. With 0 nothing\n\
                    is compared, so nothing can be said of what is gained, and no app is switched off for want of it.",
        wanted: SHARE,
        set: |config, value| set(&mut config.shares.holdout, share(value)),
        get: |config| float(config.shares.holdout),
    },
    Key {
        name: "care.pause_on_battery",
        explained: "Whether nothing is prefetched while the machine runs on battery.",
        wanted: SWITCH,
        set: |config, value| set(&mut config.pause_on_battery, value.as_bool()),
        get: |config| config.pause_on_battery.to_string(),
    },
    Key {
        name: "care.daily_budget",
        explained: "The most that is read ahead in a day, as \"2 GiB\" or a number of bytes; \"none\" for no limit.",
        wanted: "a size such as \"2 GiB\", a number of bytes, or \"none\"",
        set: |config, value| match value.as_str() {
            Some("none") => set(&mut config.daily_budget, Some(None)),
            _ => set(&mut config.daily_budget, size(value).map(Some)),
        },
        get: |config| config.daily_budget.map_or_else(|| "\"none\"".to_owned(), text),
    },
    Key {
        name: "priorities.enabled",
        explained: "Whether priorities of processes may be changed while an app launches. What was found is put back.",
        wanted: SWITCH,
        set: |config, value| set(&mut config.priorities, value.as_bool()),
        get: |config| config.priorities.to_string(),
    },
    Key {
        name: "history.keep_launches_days",
        explained: "How long each launch is kept by itself; older ones become one line a month.",
        wanted: DAYS,
        set: |config, value| set(&mut config.retention.launches, days(value)),
        get: |config| in_days(config.retention.launches),
    },
    Key {
        name: "history.keep_activity_days",
        explained: "How long the list of what was done is kept.",
        wanted: DAYS,
        set: |config, value| set(&mut config.retention.activity, days(value)),
        get: |config| in_days(config.retention.activity),
    },
    Key {
        name: "history.size",
        explained: "The most that the history takes, as \"200 MiB\" or a number of bytes, at least 1 MiB. The oldest goes first.",
        wanted: "a size of at least 1 MiB, such as \"200 MiB\", or a number of bytes",
        set: |config, value| set(&mut config.retention.size, size(value).filter(|size| size.0 >= 1 << 20)),
        get: |config| text(config.retention.size),
    },
];

impl Key {
    fn parts(&self) -> (&'static str, &'static str) {
        self.name.split_once('.').unwrap_or(("", self.name))
    }
}

/// The configuration in a text.
pub(super) fn read(text: &str) -> Result<Config, Flaw> {
    let flaw = |byte: usize, problem| Flaw { place: Place::of(text, byte), problem };
    let table = DeTable::parse(text).map_err(|e| {
        let at = e.span().map_or(text.len(), |span| span.start);
        flaw(at, Problem::Syntax(e.message().to_owned()))
    })?;
    let mut config = Config::default();
    for (group, value) in table.get_ref() {
        let name = group.get_ref().as_ref();
        if !KEYS.iter().any(|key| key.parts().0 == name) {
            return Err(flaw(group.span().start, unknown_group(name, value.get_ref())));
        }
        let Some(keys) = value.get_ref().as_table() else {
            return Err(flaw(group.span().start, Problem::Syntax(format!("[{name}] is a group of keys"))));
        };
        take(&mut config, name, keys).map_err(|(byte, problem)| flaw(byte, problem))?;
    }
    Ok(config)
}

/// Takes over the keys of a group. Gives the byte where something is wrong, and what.
fn take(config: &mut Config, group: &str, keys: &DeTable) -> Result<(), (usize, Problem)> {
    for (name, value) in keys {
        let full = format!("{group}.{}", name.get_ref());
        let Some(key) = KEYS.iter().find(|key| key.name == full) else {
            return Err((name.span().start, unknown_key(full)));
        };
        let wrong = || Problem::Value { key: key.name, found: found(value), wanted: key.wanted };
        (key.set)(config, value.get_ref()).ok_or_else(|| (value.span().start, wrong()))?;
    }
    Ok(())
}

fn unknown_group(name: &str, value: &DeValue) -> Problem {
    // A key without its group is the likeliest slip.
    if !value.is_table() {
        return unknown_key(name.to_owned());
    }
    let near = near_matches(name, KEYS.iter().map(|key| key.parts().0));
    Problem::UnknownGroup { name: name.to_owned(), suggestion: near.into_iter().next() }
}

fn unknown_key(full: String) -> Problem {
    let name = full.rsplit('.').next().unwrap_or(&full);
    let exact = KEYS.iter().find(|key| key.parts().1 == name).map(|key| key.name.to_owned());
    let near = || near_matches(&full, KEYS.iter().map(|key| key.name)).into_iter().next();
    Problem::UnknownKey { suggestion: exact.or_else(near), name: full }
}

/// A value as a message shows it.
fn found(value: &Spanned<DeValue>) -> String {
    match value.get_ref() {
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(switch) => switch.to_string(),
        DeValue::Datetime(date) => date.to_string(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a group".to_owned(),
    }
}

/// The file with every key.
pub(super) fn write(config: &Config) -> String {
    let mut text = "# The configuration of Headstart. A key that is missing has its default.\n\
                    # After a change: systemctl reload headstart\n"
        .to_owned();
    let mut group = "";
    for key in KEYS {
        let (of, name) = key.parts();
        if of == group {
            text.push('\n');
        } else {
            let _ = writeln!(text, "\n[{of}]");
            group = of;
        }
        for line in key.explained.lines() {
            let _ = writeln!(text, "# {line}");
        }
        let _ = writeln!(text, "{name} = {}", (key.get)(config));
    }
    text
}

fn set<T>(place: &mut T, value: Option<T>) -> Option<()> {
    *place = value?;
    Some(())
}

fn whole(value: &DeValue, low: u64, high: u64) -> Option<u64> {
    let number = value.as_integer()?;
    let number = u64::from_str_radix(number.as_str(), number.radix()).ok()?;
    (low..=high).contains(&number).then_some(number)
}

fn share(value: &DeValue) -> Option<f64> {
    let text = value
        .as_float()
        .map(toml::de::DeFloat::as_str)
        .or_else(|| value.as_integer().map(toml::de::DeInteger::as_str))?;
    text.parse().ok().filter(|share| (0.0..=1.0).contains(share))
}

fn days(value: &DeValue) -> Option<Duration> {
    Some(DAY * u32::try_from(whole(value, 1, 36_500)?).ok()?)
}

const UNITS: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// `"2 GiB"`, `"1.5 GiB"`, or a number of bytes.
fn size(value: &DeValue) -> Option<Bytes> {
    let Some(text) = value.as_str() else { return whole(value, 0, i64::MAX.unsigned_abs()).map(Bytes) };
    let (number, unit) =
        UNITS.iter().find_map(|&(name, unit)| Some((text.strip_suffix(name)?.trim_end(), unit)))?;
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    match number.parse::<u64>() {
        Ok(number) => number.checked_mul(unit).filter(|&bytes| bytes <= i64::MAX.unsigned_abs()).map(Bytes),
        Err(_) => parts_of(number.parse().ok()?, unit),
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a part of a unit need not be exact to the byte, and is checked to be in range"
)]
fn parts_of(number: f64, unit: u64) -> Option<Bytes> {
    let bytes = number * unit as f64;
    (0.0..1e18).contains(&bytes).then(|| Bytes(bytes.round() as u64))
}

/// The largest unit that leaves nothing over: what is written is read as exactly the same.
fn text(size: Bytes) -> String {
    match UNITS.iter().find(|&&(_, unit)| size.0 >= unit && size.0.is_multiple_of(unit)) {
        Some(&(name, unit)) if unit > 1 => format!("\"{} {name}\"", size.0 / unit),
        _ => size.0.to_string(),
    }
}

/// With a point, as TOML has it.
fn float(number: f64) -> String {
    format!("{number:?}")
}

fn in_days(span: Duration) -> String {
    (span.as_secs() / DAY.as_secs()).to_string()
}
