//! What is known of the apps, in memory: a start must not wait for the database.
//!
//! Of every app the few figures that a decision takes; of those launched last also what there is to carry out, within
//! `ROOM`. What is not in memory is read from the database when it is needed, and then kept.

use std::collections::HashMap;
use std::sync::Arc;

use headstart_shared::policy::{AppState, Policy};
use headstart_shared::run::AppId;

use super::table::Owned;
use crate::observe::temperature::Sample;
use crate::plan::Plan;
use crate::store::{AppRecord, Store, StoreError};

/// Bytes that plans in memory may take, about: those of some fifty large applications.
const ROOM: usize = 4 << 20;

/// What is known of an app.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// What its person chose.
    pub policy: Policy,
    /// How far it has got; `None` if it was never launched.
    pub state: Option<AppState>,
    /// The version of its last launch.
    pub version: Option<u64>,
    /// Whether the last replay found many of its files replaced.
    pub stale: bool,
}

/// What there is to carry out for an app.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// Its plans.
    pub plans: Vec<Plan>,
    /// What to look at to tell how cold a launch is.
    pub sample: Sample,
}

/// The apps of all users.
#[derive(Debug, Default)]
pub struct Apps {
    known: HashMap<Owned, Known>,
    /// The latest used last.
    ready: Vec<(Owned, Arc<Ready>)>,
}

impl Apps {
    /// All apps of the history, and what there is to carry out for those launched last.
    ///
    /// # Errors
    /// The history cannot be read.
    pub fn load(store: &Store) -> Result<Self, StoreError> {
        let mut this = Self::default();
        let mut last: Vec<(Owned, AppRecord)> = Vec::new();
        for uid in store.users()? {
            for record in store.app_records(uid)? {
                let owned = (uid, record.app.clone());
                this.known.insert(owned.clone(), known(&record));
                if record.state == Some(AppState::Prefetching) {
                    last.push((owned, record));
                }
            }
        }
        last.sort_by_key(|(_, record)| std::cmp::Reverse(record.last_launch));
        for (owned, _) in last {
            let Some(ready) = read(store, &owned)? else { continue };
            if this.taken() + size(&ready) > ROOM {
                break;
            }
            this.ready.insert(0, (owned, Arc::new(ready)));
        }
        Ok(this)
    }

    /// Reads an app anew, or all of a user's.
    ///
    /// # Errors
    /// The history cannot be read; what was known is then still known.
    pub fn reload(&mut self, store: &Store, uid: u32, app: Option<&AppId>) -> Result<(), StoreError> {
        let is_meant = |owned: &Owned| owned.0 == uid && app.is_none_or(|app| owned.1 == *app);
        let records = match app {
            Some(app) => store.app_record(uid, app)?.into_iter().collect(),
            None => store.app_records(uid)?,
        };
        let before = std::mem::take(&mut self.known);
        let (meant, others): (HashMap<_, _>, _) = before.into_iter().partition(|(owned, _)| is_meant(owned));
        self.known = others;
        for record in records {
            let owned = (uid, record.app.clone());
            let stale = meant.get(&owned).is_some_and(|known| known.stale);
            self.known.insert(owned, Known { stale, ..known(&record) });
        }
        self.ready.retain(|(owned, _)| !is_meant(owned));
        Ok(())
    }

    /// What is known of an app.
    #[must_use]
    pub fn get(&self, app: &Owned) -> Known {
        self.known.get(app).copied().unwrap_or_default()
    }

    /// Remembers whether many of an app's files were found replaced.
    pub fn set_stale(&mut self, app: &Owned, stale: bool) {
        self.known.entry(app.clone()).or_default().stale = stale;
    }

    /// What there is to carry out for an app; `None` if nothing has been learned.
    ///
    /// # Errors
    /// The history cannot be read.
    pub fn ready(&mut self, store: &Store, app: &Owned) -> Result<Option<Arc<Ready>>, StoreError> {
        let found = match self.ready.iter().position(|(owned, _)| owned == app) {
            Some(at) => self.ready.remove(at).1,
            None => match read(store, app)? {
                Some(ready) => Arc::new(ready),
                None => return Ok(None),
            },
        };
        self.ready.push((app.clone(), Arc::clone(&found)));
        while self.ready.len() > 1 && self.taken() > ROOM {
            self.ready.remove(0);
        }
        Ok(Some(found))
    }

    /// Apps that are prefetched, and those that are learned.
    #[must_use]
    pub fn counts(&self) -> (u32, u32) {
        let count = |is: fn(&AppState) -> bool| {
            let of = self.known.values().filter(|known| known.state.as_ref().is_some_and(is)).count();
            u32::try_from(of).unwrap_or(u32::MAX)
        };
        (count(|s| *s == AppState::Prefetching), count(|s| matches!(s, AppState::Learning { .. })))
    }

    fn taken(&self) -> usize {
        self.ready.iter().map(|(_, ready)| size(ready)).sum()
    }
}

fn known(record: &AppRecord) -> Known {
    Known { policy: record.policy, state: record.state, version: record.version, stale: false }
}

fn read(store: &Store, (uid, app): &Owned) -> Result<Option<Ready>, StoreError> {
    let stored = store.plans(*uid, app)?.value;
    Ok(stored.map(|stored| Ready { plans: stored.plans, sample: Sample::from_bytes(&stored.sample) }))
}

/// Bytes that plans take, about: a path, its structure and its allocation; a step.
fn size(ready: &Ready) -> usize {
    let plan = |plan: &Plan| plan.files.len() * 160 + plan.steps.len() * 48;
    ready.plans.iter().map(plan).sum::<usize>() + 4096
}

#[cfg(test)]
#[path = "apps_tests.rs"]
mod tests;
