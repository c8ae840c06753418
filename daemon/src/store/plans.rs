//! Plans, made when an app was last learned from, so that a launch has nothing left to work out.

use headstart_shared::run::AppId;
use rusqlite::{OptionalExtension as _, params};

use super::{ADD_APP, Loaded, Store, StoreError, blob};
use crate::plan::Plan;

const SAVE: &str = "INSERT OR REPLACE INTO plans (app_id, layout, data, sample) \
     SELECT id, ?3, ?4, ?5 FROM apps WHERE uid = ?1 AND app = ?2";
const LOAD: &str = "SELECT layout, data, sample FROM plans JOIN apps ON apps.id = app_id \
     WHERE uid = ?1 AND app = ?2";

pub(super) const STATEMENTS: &[&str] = &[SAVE, LOAD];

/// Plans as they are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPlans {
    /// Which mounts and drives they are for.
    pub layout: u64,
    /// One a drive.
    pub plans: Vec<Plan>,
    /// What to look at to tell how cold a launch is, as bytes of whoever looks.
    pub sample: Vec<u8>,
}

impl Store {
    /// Stores an app's plans in place of the last ones.
    ///
    /// # Errors
    /// The database cannot be written; then the last ones are still there.
    pub fn save_plans(&mut self, uid: u32, app: &AppId, plans: &StoredPlans) -> Result<(), StoreError> {
        let refused = |source| StoreError::Launch { app: app.0.clone(), source };
        let data = blob::pack(blob::PLANS, &plans.plans).map_err(refused)?;
        self.change(|change| {
            change.execute(ADD_APP, params![uid, app.0])?;
            change.execute(SAVE, params![uid, app.0, plans.layout.cast_signed(), data, plans.sample])
        })?;
        Ok(())
    }

    /// An app's plans.
    ///
    /// # Errors
    /// The database cannot be read. That the plans are damaged is no error; they are treated as absent.
    pub fn plans(&self, uid: u32, app: &AppId) -> Result<Loaded<Option<StoredPlans>>, StoreError> {
        let sql = |e| self.sql(e);
        let mut statement = self.db.conn.prepare_cached(LOAD).map_err(sql)?;
        let row = |row: &rusqlite::Row| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let found: Option<(i64, Vec<u8>, Vec<u8>)> =
            statement.query_row(params![uid, app.0], row).optional().map_err(sql)?;
        let Some((layout, data, sample)) = found else { return Ok(Loaded::default()) };
        Ok(match blob::unpack(blob::PLANS, &data) {
            Ok(plans) => {
                let plans = StoredPlans { layout: layout.cast_unsigned(), plans, sample };
                Loaded { value: Some(plans), damaged: Vec::new() }
            }
            Err(e) => Loaded { value: None, damaged: vec![format!("the plans of {app} are made anew: {e}")] },
        })
    }
}
