//! What the daemon did, and how much it read.

use chrono::{DateTime, Datelike as _, NaiveDate, Utc};
use headstart_shared::run::AppId;
use headstart_shared::units::Bytes;
use rusqlite::params;

use super::{Store, StoreError};

const ADD: &str =
    "INSERT INTO activity (uid, at, kind, app, launch, count, detail) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
const LIST: &str = "SELECT id, at, kind, app, launch, count, detail FROM activity \
     WHERE (uid IS NULL OR uid = ?1) AND id < ?2 ORDER BY id DESC LIMIT ?3";
const ADD_READ: &str = "INSERT INTO reads (day, drive, bytes) VALUES (?1, ?2, ?3) \
     ON CONFLICT (day, drive) DO UPDATE SET bytes = bytes + excluded.bytes";
const READ_ON: &str = "SELECT coalesce(sum(bytes), 0) FROM reads WHERE day = ?1";

pub(super) const STATEMENTS: &[&str] = &[ADD, LIST, ADD_READ, READ_ON];

/// Something that the daemon did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activity {
    /// Its number; 0 before it is stored.
    pub id: u64,
    /// When.
    pub at: DateTime<Utc>,
    /// What: a number of [`headstart_shared::bus::ActivityCode`].
    pub kind: u32,
    /// The app that it is about.
    pub app: Option<AppId>,
    /// The launch that it is about.
    pub launch: Option<u64>,
    /// How many, where it counts something.
    pub count: Option<u64>,
    /// A file, a line, a system's message.
    pub detail: Option<String>,
}

impl Store {
    /// Remembers something that was done: for `uid`, or without one to the machine. Gives its number.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn add_activity(&mut self, uid: Option<u32>, activity: &Activity) -> Result<u64, StoreError> {
        let Activity { at, kind, app, launch, count, detail, .. } = activity;
        let (launch, count) = (launch.map(u64::cast_signed), count.map(u64::cast_signed));
        let values =
            params![uid, at.timestamp_millis(), kind, app.as_ref().map(|a| &a.0), launch, count, detail];
        self.change(|change| {
            change.execute(ADD, values)?;
            Ok(change.last_insert_rowid().cast_unsigned())
        })
    }

    /// What was done for a user and to the machine, the latest first: `limit` at most, with numbers below `before`.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn activity(&self, uid: u32, before: Option<u64>, limit: u32) -> Result<Vec<Activity>, StoreError> {
        let sql = |e| self.sql(e);
        let before = before.and_then(|id| i64::try_from(id).ok()).unwrap_or(i64::MAX);
        let mut statement = self.db.conn.prepare_cached(LIST).map_err(sql)?;
        let rows = statement.query_map(params![uid, before, limit], activity).map_err(sql)?;
        rows.collect::<Result<_, _>>().map_err(sql)
    }

    /// Adds to what was read ahead from a drive on a day.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn add_read(&mut self, day: NaiveDate, drive: &str, bytes: Bytes) -> Result<(), StoreError> {
        let bytes = i64::try_from(bytes.0).unwrap_or(i64::MAX);
        self.change(|change| change.execute(ADD_READ, params![number(day), drive, bytes]))?;
        Ok(())
    }

    /// What was read ahead on a day from all drives.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn read_on(&self, day: NaiveDate) -> Result<Bytes, StoreError> {
        let sql = |e| self.sql(e);
        let mut statement = self.db.conn.prepare_cached(READ_ON).map_err(sql)?;
        let bytes: i64 = statement.query_row([number(day)], |row| row.get(0)).map_err(sql)?;
        Ok(Bytes(bytes.unsigned_abs()))
    }
}

/// A day as the database has it: 20261130.
pub(super) fn number(day: NaiveDate) -> i64 {
    i64::from(day.year()) * 10_000 + i64::from(day.month()) * 100 + i64::from(day.day())
}

fn activity(row: &rusqlite::Row) -> rusqlite::Result<Activity> {
    let unsigned = |at| row.get::<_, Option<i64>>(at).map(|n| n.map(i64::cast_unsigned));
    Ok(Activity {
        id: unsigned(0)?.unwrap_or_default(),
        at: DateTime::from_timestamp_millis(row.get(1)?).unwrap_or_default(),
        kind: row.get(2)?,
        app: row.get::<_, Option<String>>(3)?.map(AppId),
        launch: unsigned(4)?,
        count: unsigned(5)?,
        detail: row.get(6)?,
    })
}
