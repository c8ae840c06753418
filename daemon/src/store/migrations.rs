//! The database's versions. `PRAGMA user_version` counts the migrations that were carried out.
//!
//! To change the schema, append a text to [`MIGRATIONS`]; never edit one that was released. Each runs in a transaction
//! together with its version number, so a kill leaves the version before or the one after. Two processes that open at
//! the same time find each other by the transaction's write lock, and the second has nothing left to do.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use super::StoreError;

/// The SQL texts, from version 0 (an empty file) on.
pub(super) const MIGRATIONS: &[&str] = &[include_str!("schema_1.sql"), include_str!("schema_2.sql")];

/// A version number that no release will reach: the number itself is damaged.
const ABSURD: i64 = 10_000;

/// Refuses a version that is newer than the program, and one that cannot be.
pub(super) fn check(path: &Path, found: i64, known: usize) -> Result<usize, StoreError> {
    match usize::try_from(found) {
        Ok(version) if version <= known => Ok(version),
        Ok(_) if found < ABSURD => Err(StoreError::Newer { path: path.into(), found, known }),
        _ => Err(StoreError::Damaged { path: path.into(), reason: format!("its version is {found}") }),
    }
}

/// Brings a database to the newest version.
pub(super) fn migrate(conn: &mut Connection, path: &Path, migrations: &[&str]) -> Result<(), StoreError> {
    let sql = |e| StoreError::of_schema(path, e);
    loop {
        if check(path, version(conn).map_err(sql)?, migrations.len())? == migrations.len() {
            return Ok(());
        }
        let change = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sql)?;
        // Only now is it sure that nobody else is at it.
        let done = check(path, version(&change).map_err(sql)?, migrations.len())?;
        if let Some(text) = migrations.get(done) {
            change.execute_batch(text).map_err(sql)?;
            change
                .pragma_update(None, "user_version", i64::try_from(done + 1).unwrap_or(i64::MAX))
                .map_err(sql)?;
            change.commit().map_err(sql)?;
        }
    }
}

pub(super) fn version(conn: &Connection) -> rusqlite::Result<i64> {
    conn.pragma_query_value(None, "user_version", |row| row.get(0))
}
