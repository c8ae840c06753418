//! Whether the database is sound, and when to look.
//!
//! Looking at all of a large one takes seconds, and the daemon must be there in a fraction of one. So:
//!
//! * one of at most [`WHOLE_UP_TO`] is looked at whole when it is opened;
//! * of a larger one the header, the size and the schema are, and every blob by its checksum when it is read;
//! * upkeep looks at all of it once a week, which others do not wait for;
//! * whoever meets damage leaves a mark beside the database, and with that the next opening looks at all of it, and sets
//!   it aside if it is so.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Duration, Utc};
use headstart_shared::units::Bytes;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::{Store, StoreError};

/// The size up to which a database is looked at whole at each opening: some 10 ms.
pub(super) const WHOLE_UP_TO: Bytes = Bytes(8 << 20);
const EVERY: Duration = Duration::weeks(1);

const LAST: &str = "SELECT at FROM checks WHERE id = 1";
const DONE: &str = "INSERT OR REPLACE INTO checks (id, at) VALUES (1, ?1)";

pub(super) const STATEMENTS: &[&str] = &[LAST, DONE];

impl Store {
    /// Looks at all of the database if that was not done for a week. Gives whether it did.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if it is not sound: then the next opening sets it aside. And what reading it can give.
    pub fn check_weekly(&mut self, now: DateTime<Utc>) -> Result<bool, StoreError> {
        let sql = |e| self.sql(e);
        let last: Option<i64> = self.db.conn.query_row(LAST, [], |row| row.get(0)).optional().map_err(sql)?;
        let last = last.and_then(DateTime::from_timestamp_millis);
        // A date to come is a clock that was set wrong.
        if last.is_some_and(|last| last <= now && now - last < EVERY) {
            return Ok(false);
        }
        if let Some(reason) = flaw(&self.db.conn, "integrity_check").map_err(sql)? {
            suspect(&self.db.path);
            return Err(StoreError::Damaged { path: self.db.path.clone(), reason });
        }
        self.change(|change| change.execute(DONE, params![now.timestamp_millis()]))?;
        Ok(true)
    }
}

/// What is wrong with a database, by one of SQLite's two checks. The quick one leaves out whether the indices hold what
/// the tables do, for which the whole has to be sorted.
pub(super) fn flaw(conn: &Connection, check: &str) -> rusqlite::Result<Option<String>> {
    let verdict: String = conn.query_row(&format!("PRAGMA {check}(1)"), [], |row| row.get(0))?;
    Ok((verdict != "ok").then_some(verdict))
}

/// The mark that damage was met.
fn mark(database: &Path) -> PathBuf {
    database.with_extension("suspect")
}

/// Leaves the mark. Where that is not possible either, the damage is met again.
pub(super) fn suspect(database: &Path) {
    let _ = File::create(mark(database));
}

/// Takes the mark away: it was looked at.
pub(super) fn clear(database: &Path) {
    let _ = fs::remove_file(mark(database));
}

/// Which of SQLite's checks a database needs before it is used: the thorough one if it is marked, the quick one if it is
/// small or shorter than its header says. The last is not damage by itself: after a kill the missing part can be in the log.
pub(super) fn needed(database: &Path, header: &[u8], whole_up_to: Bytes) -> Option<&'static str> {
    if mark(database).exists() {
        return Some("integrity_check");
    }
    let length = fs::metadata(database).map_or(0, |meta| meta.len());
    let log = fs::metadata(database.with_extension("db-wal")).map_or(0, |meta| meta.len());
    let number = |at: usize, bytes: usize| {
        header.get(at..at + bytes).map_or(0, |b| b.iter().fold(0, |n, b| n << 8 | u64::from(*b)))
    };
    // "Database File Format" 1.3: bytes in a page, where 1 stands for 65536, and pages.
    let page = if number(16, 2) == 1 { 1 << 16 } else { number(16, 2) };
    let looked_at = length + log <= whole_up_to.0 || length < page.saturating_mul(number(28, 4));
    looked_at.then_some("quick_check")
}
