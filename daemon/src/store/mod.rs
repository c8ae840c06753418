//! The history: profiles and comparisons, by user and app, in one SQLite database.
//!
//! Invariants: whatever is given out has been verified; a history belongs to a uid, and no call reaches another's; a
//! database that cannot be read is set aside, never deleted, and one damaged entry costs only itself. Writes are
//! transactions, so a kill at any moment leaves the state before or after. Several processes may have it open.

mod activity;
mod apps;
mod blob;
mod check;
mod error;
mod launches;
mod migrations;
mod open;
mod plans;
mod upkeep;

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use headstart_shared::comparison::{self, Comparison};
use headstart_shared::run::AppId;
use headstart_shared::units::Pages;
use rusqlite::{OptionalExtension as _, Transaction, TransactionBehavior, params};
use serde::Serialize;

use crate::profile::Profile;
pub use activity::Activity;
pub use apps::AppRecord;
pub use blob::BlobError;
pub use error::StoreError;
pub use launches::TIMELINES;
pub use plans::StoredPlans;
pub use upkeep::{Removed, Retention};

const PROFILE: &str = "SELECT data FROM profiles JOIN apps ON apps.id = app_id WHERE uid = ?1 AND app = ?2";
const APPS: &str = "SELECT app, runs, files, pages, learned, \
     (SELECT count(*) FROM comparisons WHERE app_id = apps.id) \
     FROM apps LEFT JOIN profiles ON profiles.app_id = apps.id WHERE uid = ?1 ORDER BY app";
const COMPARISONS: &str = "SELECT json FROM comparisons JOIN apps ON apps.id = app_id \
     WHERE uid = ?1 AND app = ?2 ORDER BY began DESC, comparisons.id DESC LIMIT ?3";
const ADD_APP: &str = "INSERT OR IGNORE INTO apps (uid, app) VALUES (?1, ?2)";
const SAVE_PROFILE: &str = "INSERT OR REPLACE INTO profiles (app_id, learned, runs, files, pages, data) \
     SELECT id, ?3, ?4, ?5, ?6, ?7 FROM apps WHERE uid = ?1 AND app = ?2";
const SAVE_COMPARISON: &str = "INSERT INTO comparisons (app_id, began, json) \
     SELECT id, ?3, ?4 FROM apps WHERE uid = ?1 AND app = ?2";
const FORGET: &str = "DELETE FROM apps WHERE uid = ?1 AND (?2 IS NULL OR app = ?2)";
const FORGET_ACTIVITY: &str = "DELETE FROM activity WHERE uid = ?1 AND (?2 IS NULL OR app = ?2)";

/// Every statement, prepared once at opening: a schema that they do not fit is a damaged one.
const STATEMENTS: &[&[&str]] = &[
    &[PROFILE, APPS, COMPARISONS, ADD_APP, SAVE_PROFILE, SAVE_COMPARISON, FORGET, FORGET_ACTIVITY],
    activity::STATEMENTS,
    apps::STATEMENTS,
    check::STATEMENTS,
    launches::STATEMENTS,
    plans::STATEMENTS,
    upkeep::STATEMENTS,
];

/// An open history.
#[derive(Debug)]
pub struct Store {
    db: open::Database,
}

/// What opening a history gives.
#[derive(Debug)]
pub struct Opened {
    /// The history.
    pub store: Store,
    /// Where a damaged one was put, for the caller to say so; the store is then new and empty.
    pub set_aside: Option<PathBuf>,
}

/// What was read, and what of it was damaged and is treated as not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded<T> {
    /// The sound part.
    pub value: T,
    /// In words, for the caller to say so.
    pub damaged: Vec<String>,
}

/// One app of a user's history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AppSummary {
    /// The app.
    pub app: AppId,
    /// Its profile, in figures, if it has one.
    pub profile: Option<ProfileSummary>,
    /// Comparisons stored.
    pub comparisons: u64,
}

/// A stored profile in figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ProfileSummary {
    /// Runs it was learned from.
    pub runs: u32,
    /// Files in it.
    pub files: u64,
    /// Pages of file content in it.
    pub pages: Pages,
    /// When it was last saved.
    pub learned: DateTime<Utc>,
}

impl Store {
    /// Opens the history in a folder; makes the folder (for its owner only) and the database if they are missing, sets
    /// a damaged database aside, and brings an older one to the newest version.
    ///
    /// # Errors
    /// The folder cannot be used, the database is newer than this program, or someone else keeps it locked.
    pub fn open(dir: &Path) -> Result<Opened, StoreError> {
        let (db, set_aside) = open::open(dir, check::WHOLE_UP_TO)?;
        Ok(Opened { store: Self { db }, set_aside })
    }

    /// A history that is gone when it is dropped, for where none can be written.
    ///
    /// # Errors
    /// SQLite's, for want of memory.
    pub fn in_memory() -> Result<Self, StoreError> {
        Ok(Self { db: open::in_memory()? })
    }

    /// The database file, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.db.path
    }

    /// The profile of an app.
    ///
    /// # Errors
    /// The database cannot be read. That the profile alone is damaged is no error; it is treated as absent.
    pub fn profile(&self, uid: u32, app: &AppId) -> Result<Loaded<Option<Profile>>, StoreError> {
        let sql = |e| self.sql(e);
        let mut statement = self.db.conn.prepare_cached(PROFILE).map_err(sql)?;
        let data = statement
            .query_row(params![uid, app.0], |row| Ok(row.get_ref(0)?.as_bytes().map(<[u8]>::to_vec)))
            .optional()
            .map_err(sql)?
            .map(Result::unwrap_or_default);
        let reason = match data.as_deref().map(blob::decode) {
            None => return Ok(Loaded::default()),
            Some(Ok(profile)) if profile.app == *app => {
                return Ok(Loaded { value: Some(profile), damaged: Vec::new() });
            }
            Some(Ok(_)) => "it is another app's".to_owned(),
            Some(Err(e)) => e.to_string(),
        };
        let damaged = vec![format!("the profile of {app} is not used, {reason}; it is learned anew")];
        Ok(Loaded { value: None, damaged })
    }

    /// Stores a profile in place of the app's last one.
    ///
    /// # Errors
    /// The profile is not valid, or the database cannot be written; then the last one is still there.
    pub fn save_profile(&mut self, uid: u32, profile: &Profile) -> Result<(), StoreError> {
        let app = &profile.app.0;
        let data =
            blob::encode(profile).map_err(|source| StoreError::Profile { app: app.clone(), source })?;
        let pages = i64::try_from(profile.pages().0).unwrap_or(i64::MAX);
        let files = i64::try_from(profile.files.len()).unwrap_or(i64::MAX);
        let learned = Utc::now().timestamp_millis();
        self.change(|change| {
            change.execute(ADD_APP, params![uid, app])?;
            change.execute(SAVE_PROFILE, params![uid, app, learned, profile.runs, files, pages, data])
        })?;
        Ok(())
    }

    /// Forgets an app, or all of a user's apps: profiles, plans, launches, comparisons, and what was done for them. The space is overwritten. Gives the number of
    /// apps forgotten.
    ///
    /// # Errors
    /// The database cannot be written; then nothing is forgotten.
    pub fn forget(&mut self, uid: u32, app: Option<&AppId>) -> Result<usize, StoreError> {
        let forgotten = self.change(|change| {
            change.execute(FORGET_ACTIVITY, params![uid, app.map(|a| &a.0)])?;
            change.execute(FORGET, params![uid, app.map(|a| &a.0)])
        })?;
        // The log still holds what was overwritten; while others read, it is emptied by whoever closes last.
        let emptied = self.db.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        emptied.map_err(|e| self.sql(e))?;
        Ok(forgotten)
    }

    /// A user's apps, by name.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn apps(&self, uid: u32) -> Result<Vec<AppSummary>, StoreError> {
        let sql = |e| self.sql(e);
        let mut statement = self.db.conn.prepare_cached(APPS).map_err(sql)?;
        let rows = statement.query_map([uid], with_comparisons).map_err(sql)?;
        rows.collect::<Result<_, _>>().map_err(sql)
    }

    /// Stores a comparison.
    ///
    /// # Errors
    /// The database cannot be written; then nothing is stored.
    pub fn save_comparison(&mut self, uid: u32, comparison: &Comparison) -> Result<(), StoreError> {
        let app = &comparison.app.0;
        let json = serde_json::to_string(comparison)
            .map_err(|source| StoreError::Comparison { app: app.clone(), source })?;
        let began = comparison.began.timestamp_millis();
        self.change(|change| {
            change.execute(ADD_APP, params![uid, app])?;
            change.execute(SAVE_COMPARISON, params![uid, app, began, json])
        })?;
        Ok(())
    }

    /// An app's latest comparisons, the latest first, `limit` at most.
    ///
    /// # Errors
    /// The database cannot be read. That one comparison is damaged is no error; it is left out.
    pub fn comparisons(
        &self,
        uid: u32,
        app: &AppId,
        limit: u32,
    ) -> Result<Loaded<Vec<Comparison>>, StoreError> {
        let sql = |e| self.sql(e);
        let mut statement = self.db.conn.prepare_cached(COMPARISONS).map_err(sql)?;
        let mut rows = statement.query(params![uid, app.0, limit]).map_err(sql)?;
        let mut loaded = Loaded { value: Vec::new(), damaged: Vec::new() };
        while let Some(row) = rows.next().map_err(sql)? {
            let json = row.get_ref(0).map_err(sql)?.as_bytes().unwrap_or_default();
            let left_out = |why| format!("a comparison of {app} is left out: {why}");
            match serde_json::from_slice::<Comparison>(json) {
                Ok(c) if c.format <= comparison::FORMAT => loaded.value.push(c),
                Ok(c) => {
                    loaded.damaged.push(left_out(format!("it has format {}; update Headstart", c.format)));
                }
                Err(e) => loaded.damaged.push(left_out(format!("it is damaged ({e})"))),
            }
        }
        Ok(loaded)
    }

    /// Carries out a change whole or not at all. Begins as a writer, so that the wait for other writers is at the
    /// beginning, where SQLite waits instead of failing.
    fn change<T>(&mut self, work: impl FnOnce(&Transaction) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let carry_out = |conn: &mut rusqlite::Connection| {
            let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = work(&change)?;
            change.commit()?;
            Ok(done)
        };
        carry_out(&mut self.db.conn).map_err(|e| self.sql(e))
    }

    fn sql(&self, source: rusqlite::Error) -> StoreError {
        let error = StoreError::sql(&self.db.path, source);
        if matches!(error, StoreError::Damaged { .. }) {
            check::suspect(&self.db.path);
        }
        error
    }
}

/// The ID and the profile's figures from the first five columns of a row. Values of another type than the schema's are
/// damage, and no reason to show nothing.
fn summary(row: &rusqlite::Row) -> rusqlite::Result<(AppId, Option<ProfileSummary>)> {
    let number = |at| row.get_ref(at).map(|value| value.as_i64().ok());
    let count = |at| number(at).map(|n| n.and_then(|n| u64::try_from(n).ok()).unwrap_or(0));
    let app = String::from_utf8_lossy(row.get_ref(0)?.as_bytes().unwrap_or_default()).into_owned();
    let learned = number(4)?;
    let profile = match learned.and_then(DateTime::from_timestamp_millis) {
        Some(learned) => Some(ProfileSummary {
            runs: u32::try_from(count(1)?).unwrap_or(u32::MAX),
            files: count(2)?,
            pages: Pages(count(3)?),
            learned,
        }),
        None => None,
    };
    Ok((AppId(app), profile))
}

fn with_comparisons(row: &rusqlite::Row) -> rusqlite::Result<AppSummary> {
    let (app, profile) = summary(row)?;
    let comparisons = row.get_ref(5)?.as_i64().ok().and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
    Ok(AppSummary { app, profile, comparisons })
}

#[cfg(test)]
mod tests;
