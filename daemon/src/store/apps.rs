//! What is done about each app, and what has come of it.

use chrono::{DateTime, Utc};
use headstart_shared::policy::{AppState, Policy};
use headstart_shared::run::AppId;
use headstart_shared::verdict::Verdict;
use rusqlite::{OptionalExtension as _, Row, params};
use serde::de::DeserializeOwned;

use super::{ADD_APP, ProfileSummary, Store, StoreError};

const RECORDS: &str = "SELECT app, runs, files, pages, learned, policy, state, circumstances, verdict, \
     launches, hot, last_launch, version FROM apps LEFT JOIN profiles ON profiles.app_id = apps.id \
     WHERE uid = ?1 ORDER BY app";
const RECORD: &str = "SELECT app, runs, files, pages, learned, policy, state, circumstances, verdict, \
     launches, hot, last_launch, version FROM apps LEFT JOIN profiles ON profiles.app_id = apps.id \
     WHERE uid = ?1 AND app = ?2";
const SET_POLICY: &str = "UPDATE apps SET policy = ?3 WHERE uid = ?1 AND app = ?2";
const SET_STATE: &str = "UPDATE apps SET state = ?3, circumstances = ?4 WHERE uid = ?1 AND app = ?2";
const SET_VERDICT: &str = "UPDATE apps SET verdict = ?3 WHERE uid = ?1 AND app = ?2";
const ADD_HOT: &str = "UPDATE apps SET hot = hot + 1 WHERE uid = ?1 AND app = ?2";
const RESTART: &str = "UPDATE apps SET verdict = NULL, \
     counts_from = (SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'launches') \
     WHERE uid = ?1 AND app = ?2";
const USERS: &str = "SELECT DISTINCT uid FROM apps ORDER BY uid";

pub(super) const STATEMENTS: &[&str] =
    &[RECORDS, RECORD, SET_POLICY, SET_STATE, SET_VERDICT, ADD_HOT, RESTART, USERS];

/// An app of a user's, without what is large.
#[derive(Clone, Debug, PartialEq)]
pub struct AppRecord {
    /// The app.
    pub app: AppId,
    /// What its person chose.
    pub policy: Policy,
    /// How far it has got; `None` if it was never launched since the daemon is here.
    pub state: Option<AppState>,
    /// A hash of what the state depends on: executable, kernel and drive. When it is another, an app that was given up is
    /// tried again.
    pub circumstances: Option<u64>,
    /// The claim, as of its last launch.
    pub verdict: Option<Verdict>,
    /// Launches seen.
    pub launches: u64,
    /// Hot starts seen.
    pub hot: u64,
    /// When it was last launched.
    pub last_launch: Option<DateTime<Utc>>,
    /// [`headstart_shared::launch::Launch::version`] of the last launch.
    pub version: Option<u64>,
    /// Its profile in figures.
    pub profile: Option<ProfileSummary>,
}

impl Store {
    /// A user's apps, by ID.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn app_records(&self, uid: u32) -> Result<Vec<AppRecord>, StoreError> {
        let sql = |e| self.sql(e);
        let mut statement = self.db.conn.prepare_cached(RECORDS).map_err(sql)?;
        let rows = statement.query_map([uid], record).map_err(sql)?;
        rows.collect::<Result<_, _>>().map_err(sql)
    }

    /// One app of a user's.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn app_record(&self, uid: u32, app: &AppId) -> Result<Option<AppRecord>, StoreError> {
        let sql = |e| self.sql(e);
        let mut statement = self.db.conn.prepare_cached(RECORD).map_err(sql)?;
        statement.query_row(params![uid, app.0], record).optional().map_err(sql)
    }

    /// The users that have apps.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn users(&self) -> Result<Vec<u32>, StoreError> {
        let sql = |e| self.sql(e);
        let mut statement = self.db.conn.prepare_cached(USERS).map_err(sql)?;
        let rows = statement.query_map([], |row| row.get(0)).map_err(sql)?;
        rows.collect::<Result<_, _>>().map_err(sql)
    }

    /// Remembers what a person chose.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn set_policy(&mut self, uid: u32, app: &AppId, policy: Policy) -> Result<(), StoreError> {
        let policy = json(&policy);
        self.set(uid, app, |change| change.execute(SET_POLICY, params![uid, app.0, policy]))
    }

    /// Remembers how far an app has got, and under what circumstances ([`AppRecord::circumstances`]).
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn set_state(
        &mut self,
        uid: u32,
        app: &AppId,
        state: AppState,
        circumstances: u64,
    ) -> Result<(), StoreError> {
        let state = json(&state);
        self.set(uid, app, |change| {
            change.execute(SET_STATE, params![uid, app.0, state, circumstances.cast_signed()])
        })
    }

    /// Remembers the claim about an app.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn save_verdict(&mut self, uid: u32, app: &AppId, verdict: &Verdict) -> Result<(), StoreError> {
        let verdict = json(verdict);
        self.set(uid, app, |change| change.execute(SET_VERDICT, params![uid, app.0, verdict]))
    }

    /// From now on only launches to come count for the claim about an app.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn restart_verdict(&mut self, uid: u32, app: &AppId) -> Result<(), StoreError> {
        self.set(uid, app, |change| change.execute(RESTART, params![uid, app.0]))
    }

    /// Counts a hot start.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn record_hot(&mut self, uid: u32, app: &AppId) -> Result<(), StoreError> {
        self.set(uid, app, |change| change.execute(ADD_HOT, params![uid, app.0]))
    }

    fn set(
        &mut self,
        uid: u32,
        app: &AppId,
        work: impl FnOnce(&rusqlite::Transaction) -> rusqlite::Result<usize>,
    ) -> Result<(), StoreError> {
        self.change(|change| {
            change.execute(ADD_APP, params![uid, app.0])?;
            work(change).map(drop)
        })
    }
}

/// A word or a small structure of the vocabulary; what these are made of always has a JSON form.
fn json(value: &impl serde::Serialize) -> Option<String> {
    serde_json::to_string(value).ok()
}

/// What is damaged in a row is treated as not known: it is no reason to show nothing.
fn record(row: &Row) -> rusqlite::Result<AppRecord> {
    let profile = super::summary(row)?;
    Ok(AppRecord {
        app: profile.0,
        profile: profile.1,
        policy: word(row, 5)?.unwrap_or_default(),
        state: word(row, 6)?,
        circumstances: number(row, 7)?.map(i64::cast_unsigned),
        verdict: word(row, 8)?,
        launches: number(row, 9)?.unwrap_or_default().cast_unsigned(),
        hot: number(row, 10)?.unwrap_or_default().cast_unsigned(),
        last_launch: number(row, 11)?.and_then(DateTime::from_timestamp_millis),
        version: number(row, 12)?.map(i64::cast_unsigned),
    })
}

fn number(row: &Row, at: usize) -> rusqlite::Result<Option<i64>> {
    Ok(row.get_ref(at)?.as_i64().ok())
}

fn word<T: DeserializeOwned>(row: &Row, at: usize) -> rusqlite::Result<Option<T>> {
    Ok(row.get_ref(at)?.as_str().ok().and_then(|text| serde_json::from_str(text).ok()))
}
