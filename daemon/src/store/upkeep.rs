//! Keeping the history small: old launches become one line a month, and what is over the limit goes, the oldest first.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Datelike as _, Utc};
use headstart_shared::launch::{Arm, Launch};
use headstart_shared::run::{AppId, Milestone};
use headstart_shared::stats;
use headstart_shared::units::Bytes;
use rusqlite::{Transaction, params};

use super::launches::{arm_number, launches_in};
use super::{Store, StoreError, activity};

const OLD: &str =
    "SELECT launches.id, CAST(app_id AS TEXT), data FROM launches WHERE began < ?1 ORDER BY began LIMIT ?2";
const OLDEST: &str = "SELECT launches.id, CAST(app_id AS TEXT), data FROM launches ORDER BY id LIMIT ?1";
const REMOVE: &str = "DELETE FROM launches WHERE id = ?1";
const ROLL_UP: &str = "INSERT INTO months (app_id, month, arm, milestone, launches, low, median, high) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO UPDATE SET \
     low = (low * launches + excluded.low * excluded.launches) / (launches + excluded.launches), \
     median = (median * launches + excluded.median * excluded.launches) / (launches + excluded.launches), \
     high = (high * launches + excluded.high * excluded.launches) / (launches + excluded.launches), \
     launches = launches + excluded.launches";
const OLD_ACTIVITY: &str = "DELETE FROM activity WHERE at < ?1";
const OLD_READS: &str = "DELETE FROM reads WHERE day < ?1";
const SIZE: &str = "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, \
     pragma_freelist_count, pragma_page_size";

pub(super) const STATEMENTS: &[&str] = &[OLD, OLDEST, REMOVE, ROLL_UP, OLD_ACTIVITY, OLD_READS, SIZE];

/// Launches rolled up in one transaction: others wait no longer than these take.
const PORTION: u32 = 2_000;

/// How long what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Each launch by itself.
    pub launches: Duration,
    /// What the daemon did.
    pub activity: Duration,
    /// The whole history, at most.
    pub size: Bytes,
}

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Launches that became part of a month.
    pub launches: u64,
    /// Entries of what the daemon did.
    pub activity: u64,
}

impl Store {
    /// Removes what is too old or too much, and looks at all of the database once a week ([`Store::check_weekly`]).
    ///
    /// # Errors
    /// The database cannot be written, or is damaged; what was not removed then is the next time.
    pub fn maintain(&mut self, now: DateTime<Utc>, retention: &Retention) -> Result<Removed, StoreError> {
        let before =
            |span: Duration| now - chrono::Duration::from_std(span).unwrap_or(chrono::Duration::MAX / 4);
        self.check_weekly(now)?;
        let mut removed = Removed::default();
        let (launches, activity) = (before(retention.launches), before(retention.activity));
        loop {
            let old = self.change(|change| {
                let old = launches_in(change, OLD, params![launches.timestamp_millis(), PORTION])?;
                roll_up(change, &old)?;
                Ok(old.len() as u64)
            })?;
            removed.launches += old;
            if old < u64::from(PORTION) {
                break;
            }
        }
        while self.used()? > retention.size {
            let oldest = self.change(|change| {
                let oldest = launches_in(change, OLDEST, params![PORTION])?;
                roll_up(change, &oldest)?;
                Ok(oldest.len() as u64)
            })?;
            removed.launches += oldest;
            if oldest == 0 {
                break;
            }
        }
        removed.activity = self.change(|change| {
            change.execute(OLD_READS, [activity::number(activity.date_naive())])?;
            change.execute(OLD_ACTIVITY, [activity.timestamp_millis()])
        })? as u64;
        Ok(removed)
    }

    /// The bytes that the history takes, without what is free in its file.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn used(&self) -> Result<Bytes, StoreError> {
        let sql = |e| self.sql(e);
        let mut statement = self.db.conn.prepare_cached(SIZE).map_err(sql)?;
        let bytes: i64 = statement.query_row([], |row| row.get(0)).map_err(sql)?;
        Ok(Bytes(bytes.unsigned_abs()))
    }
}

type Month = (i64, i64, i64, i64);

/// Makes launches part of their months. The `app` of these launches is the number of its row.
fn roll_up(change: &Transaction, launches: &[Launch]) -> rusqlite::Result<()> {
    let mut months: BTreeMap<Month, Vec<f64>> = BTreeMap::new();
    for launch in launches {
        let AppId(app) = &launch.app;
        let month = i64::from(launch.began.year()) * 100 + i64::from(launch.began.month());
        if let (Ok(app), Some((milestone, time))) = (app.parse(), time(launch)) {
            months.entry((app, month, arm_number(launch.arm), milestone)).or_default().push(time);
        }
        change.execute(REMOVE, [launch.id.cast_signed()])?;
    }
    for ((app, month, arm, milestone), times) in months {
        let at = |p| stats::quantile(&times, p).map_or(0, nanos);
        let count = i64::try_from(times.len()).unwrap_or(i64::MAX);
        change.execute(ROLL_UP, params![app, month, arm, milestone, count, at(0.25), at(0.5), at(0.75)])?;
    }
    Ok(())
}

/// What a launch is told by: only those that count, so that a month is what a verdict was made from, or would be.
fn time(launch: &Launch) -> Option<(i64, f64)> {
    let tells = launch.counts() || launch.arm == Arm::Off && launch.exclusions.is_empty();
    if !tells {
        return None;
    }
    let milestones = [Milestone::FirstWindow, Milestone::Exit, Milestone::Settled];
    (1..).zip(milestones).find_map(|(number, m)| Some((number, launch.time_to(m)?.as_secs_f64())))
}

#[expect(clippy::cast_possible_truncation, reason = "times of launches are far below 292 years")]
fn nanos(seconds: f64) -> i64 {
    (seconds * 1e9) as i64
}
