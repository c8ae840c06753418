//! Launches and their timelines.

use headstart_shared::launch::{Arm, Launch, Timeline};
use headstart_shared::run::AppId;
use headstart_shared::verdict::{self, Verdict};
use rusqlite::{OptionalExtension as _, Row, Transaction, params};

use super::{ADD_APP, Loaded, Store, StoreError, blob};

const ADD: &str = "INSERT INTO launches (app_id, began, arm, counts, data) \
     SELECT id, ?3, ?4, ?5, ?6 FROM apps WHERE uid = ?1 AND app = ?2";
const SEEN: &str = "UPDATE apps SET launches = launches + 1, last_launch = ?3, version = ?4 \
     WHERE uid = ?1 AND app = ?2";
const ADD_TIMELINE: &str = "INSERT INTO timelines (launch_id, data) VALUES (?1, ?2)";
/// Timelines beyond the newest few of an app.
const DROP_TIMELINES: &str = "DELETE FROM timelines WHERE launch_id IN \
     (SELECT launch_id FROM timelines JOIN launches ON launches.id = launch_id \
      JOIN apps ON apps.id = launches.app_id WHERE uid = ?1 AND app = ?2 \
      ORDER BY launch_id DESC LIMIT -1 OFFSET ?3)";
const OF_USER: &str = "SELECT launches.id, app, data FROM launches JOIN apps ON apps.id = app_id \
     WHERE uid = ?1 AND launches.id < ?2 ORDER BY launches.id DESC LIMIT ?3";
const OF_APP: &str = "SELECT launches.id, app, data FROM launches JOIN apps ON apps.id = app_id \
     WHERE uid = ?1 AND app = ?4 AND launches.id < ?2 ORDER BY launches.id DESC LIMIT ?3";
const ONE: &str = "SELECT launches.id, app, data FROM launches JOIN apps ON apps.id = app_id \
     WHERE uid = ?1 AND launches.id = ?2";
const COUNTED: &str = "SELECT launches.id, app, data FROM launches JOIN apps ON apps.id = app_id \
     WHERE uid = ?1 AND app = ?2 AND counts = 1 AND arm = ?3 AND launches.id >= counts_from \
     ORDER BY launches.id DESC LIMIT ?4";
const TIMELINE: &str = "SELECT timelines.data FROM timelines JOIN launches ON launches.id = launch_id \
     JOIN apps ON apps.id = launches.app_id WHERE uid = ?1 AND launch_id = ?2";
const WITH_TIMELINE: &str = "SELECT launch_id FROM timelines JOIN launches ON launches.id = launch_id \
     JOIN apps ON apps.id = launches.app_id WHERE uid = ?1";

pub(super) const STATEMENTS: &[&str] =
    &[ADD, SEEN, ADD_TIMELINE, DROP_TIMELINES, OF_USER, OF_APP, ONE, COUNTED, TIMELINE, WITH_TIMELINE];

/// Timelines kept of each app: the newest.
pub const TIMELINES: u32 = 10;

/// An arm as a number in the database.
pub(super) fn arm_number(arm: Arm) -> i64 {
    match arm {
        Arm::Prefetched => 1,
        Arm::HeldOut => 2,
        Arm::Off => 3,
    }
}

impl Store {
    /// Stores a launch and counts it, with its timeline if it has one. Gives the launch's number.
    ///
    /// # Errors
    /// The database cannot be written; then nothing is stored.
    pub fn record_launch(
        &mut self,
        uid: u32,
        launch: &Launch,
        timeline: Option<&Timeline>,
    ) -> Result<u64, StoreError> {
        let app = &launch.app.0;
        let refused = |source| StoreError::Launch { app: app.clone(), source };
        let data = blob::pack(blob::LAUNCH, launch).map_err(refused)?;
        let timeline = timeline.map(|t| blob::pack(blob::TIMELINE, t)).transpose().map_err(refused)?;
        let began = launch.began.timestamp_millis();
        self.change(|change| {
            change.execute(ADD_APP, params![uid, app])?;
            change.execute(ADD, params![uid, app, began, arm_number(launch.arm), launch.counts(), data])?;
            let id = change.last_insert_rowid();
            change.execute(SEEN, params![uid, app, began, launch.version.cast_signed()])?;
            if let Some(timeline) = timeline {
                change.execute(ADD_TIMELINE, params![id, timeline])?;
                change.execute(DROP_TIMELINES, params![uid, app, TIMELINES])?;
            }
            Ok(id.cast_unsigned())
        })
    }

    /// A user's launches, of one app or of all, the latest first: `limit` at most, with numbers below `before`.
    ///
    /// # Errors
    /// The database cannot be read. That a launch is damaged is no error; it is left out.
    pub fn launches(
        &self,
        uid: u32,
        app: Option<&AppId>,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Loaded<Vec<Launch>>, StoreError> {
        let before = before.and_then(|id| i64::try_from(id).ok()).unwrap_or(i64::MAX);
        match app {
            Some(app) => self.read_launches(OF_APP, params![uid, before, limit, app.0]),
            None => self.read_launches(OF_USER, params![uid, before, limit]),
        }
    }

    /// One launch of a user's.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn launch(&self, uid: u32, id: u64) -> Result<Loaded<Option<Launch>>, StoreError> {
        let Loaded { value, damaged } = self.read_launches(ONE, params![uid, id.cast_signed()])?;
        Ok(Loaded { value: value.into_iter().next(), damaged })
    }

    /// The latest launches that count for the verdict, the latest first, `each` of each arm at most.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn counted(&self, uid: u32, app: &AppId, each: u32) -> Result<Vec<Launch>, StoreError> {
        let mut all = Vec::new();
        for arm in [Arm::Prefetched, Arm::HeldOut] {
            all.extend(self.read_launches(COUNTED, params![uid, app.0, arm_number(arm), each])?.value);
        }
        all.sort_by_key(|launch| std::cmp::Reverse(launch.id));
        Ok(all)
    }

    /// Judges an app anew by its counted launches, and remembers the verdict with the app: listing apps is then no work.
    ///
    /// # Errors
    /// The database cannot be read or written.
    pub fn judge(&mut self, uid: u32, app: &AppId) -> Result<Verdict, StoreError> {
        let each = u32::try_from(verdict::WINDOW).unwrap_or(u32::MAX);
        let verdict = verdict::of_launches(&self.counted(uid, app, each)?);
        self.save_verdict(uid, app, &verdict)?;
        Ok(verdict)
    }

    /// The timeline of a user's launch, if it is still kept.
    ///
    /// # Errors
    /// The database cannot be read. That the timeline is damaged is no error; it is treated as absent.
    pub fn timeline(&self, uid: u32, id: u64) -> Result<Loaded<Option<Timeline>>, StoreError> {
        let sql = |e| self.sql(e);
        let mut statement = self.db.conn.prepare_cached(TIMELINE).map_err(sql)?;
        let data: Option<Vec<u8>> =
            statement.query_row(params![uid, id.cast_signed()], |row| row.get(0)).optional().map_err(sql)?;
        let Some(data) = data else { return Ok(Loaded::default()) };
        Ok(match blob::unpack::<Timeline>(blob::TIMELINE, &data) {
            Ok(mut timeline) => {
                timeline.launch.id = id;
                Loaded { value: Some(timeline), damaged: Vec::new() }
            }
            Err(e) => {
                Loaded { value: None, damaged: vec![format!("the timeline of launch {id} is left out: {e}")] }
            }
        })
    }

    /// The numbers of a user's launches whose timelines are kept.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn with_timeline(&self, uid: u32) -> Result<std::collections::BTreeSet<u64>, StoreError> {
        let sql = |e| self.sql(e);
        let mut statement = self.db.conn.prepare_cached(WITH_TIMELINE).map_err(sql)?;
        let rows =
            statement.query_map([uid], |row| row.get::<_, i64>(0).map(i64::cast_unsigned)).map_err(sql)?;
        rows.collect::<Result<_, _>>().map_err(sql)
    }

    fn read_launches(
        &self,
        query: &str,
        parameters: &[&dyn rusqlite::ToSql],
    ) -> Result<Loaded<Vec<Launch>>, StoreError> {
        let sql = |e| self.sql(e);
        let mut statement = self.db.conn.prepare_cached(query).map_err(sql)?;
        let mut rows = statement.query(parameters).map_err(sql)?;
        let mut loaded = Loaded { value: Vec::new(), damaged: Vec::new() };
        while let Some(row) = rows.next().map_err(sql)? {
            let id: i64 = row.get(0).map_err(sql)?;
            match launch(row, id).map_err(sql)? {
                Ok(launch) => loaded.value.push(launch),
                Err(e) => loaded.damaged.push(format!("launch {id} is left out: {e}")),
            }
        }
        Ok(loaded)
    }
}

/// A launch from its row. Its number and app are the row's.
fn launch(row: &Row, id: i64) -> rusqlite::Result<Result<Launch, blob::BlobError>> {
    let app: String = row.get(1)?;
    let data = row.get_ref(2)?.as_bytes().unwrap_or_default();
    Ok(blob::unpack::<Launch>(blob::LAUNCH, data).map(|launch| Launch {
        id: id.cast_unsigned(),
        app: AppId(app),
        ..launch
    }))
}

/// For other parts of the store: the launches of a query in a transaction, with the damaged ones left out.
pub(super) fn launches_in(
    change: &Transaction,
    query: &str,
    parameters: &[&dyn rusqlite::ToSql],
) -> rusqlite::Result<Vec<Launch>> {
    let mut statement = change.prepare_cached(query)?;
    let mut rows = statement.query(parameters)?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        all.extend(launch(row, id)?);
    }
    Ok(all)
}
