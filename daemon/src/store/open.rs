//! Opening the database: locks, checks, setting aside what is damaged, migrations.
//!
//! Two locks (`flock(2)`) keep processes from each other, beside SQLite's own:
//!
//! * `history.lock` is held exclusively while a process opens, so that only one checks and sets aside at a time;
//! * the folder is held shared by every open store. A damaged database is renamed only by who holds it exclusively:
//!   SQLite removes the `-wal` file by name when it closes, which would otherwise be the new database's.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use rustix::fs::{FlockOperation, RenameFlags, flock, renameat_with};
use rustix::io::Errno;

use headstart_shared::units::Bytes;

use super::migrations::{self, MIGRATIONS};
use super::{StoreError, check};
use crate::profile::atomic::sync_folder;

/// The database's name in its folder.
pub(super) const FILE: &str = "history.db";
const LOCK: &str = "history.lock";
/// How long to wait for another process: in SQLite for one to finish its transaction, here to finish opening.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// A database that is checked and of the newest version.
#[derive(Debug)]
pub(super) struct Database {
    pub(super) conn: Connection,
    pub(super) path: PathBuf,
    /// The shared lock on the folder. Declared after `conn`: it is released when SQLite has closed.
    pub(super) _in_use: Option<File>,
}

/// Opens the database in a folder, making both if they are missing. One of up to `whole_up_to` is looked at whole.
pub(super) fn open(dir: &Path, whole_up_to: Bytes) -> Result<(Database, Option<PathBuf>), StoreError> {
    let failed = |source| StoreError::io(dir, source);
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
    let folder = File::open(dir).map_err(failed)?;
    let lock = private().open(dir.join(LOCK)).map_err(failed)?;
    if !wait_for(&lock, FlockOperation::NonBlockingLockExclusive, PATIENCE).map_err(failed)? {
        return Err(StoreError::Busy { path: dir.into() });
    }
    let path = dir.join(FILE);
    flock(&folder, FlockOperation::LockShared).map_err(|e| failed(e.into()))?;
    let (conn, aside) = match connect(&path, whole_up_to) {
        Err(StoreError::Damaged { .. }) => {
            if !wait_for(&folder, FlockOperation::NonBlockingLockExclusive, PATIENCE / 5).map_err(failed)? {
                return Err(StoreError::InUse { path });
            }
            let aside = set_aside(dir).map_err(failed)?;
            flock(&folder, FlockOperation::LockShared).map_err(|e| failed(e.into()))?;
            check::clear(&path);
            (connect(&path, whole_up_to)?, Some(aside))
        }
        opened => (opened?, None),
    };
    Ok((Database { conn, path, _in_use: Some(folder) }, aside))
}

/// A database that is gone when it is closed.
pub(super) fn in_memory() -> Result<Database, StoreError> {
    let path = PathBuf::from(":memory:");
    let conn = Connection::open_in_memory().map_err(|e| StoreError::sql(&path, e))?;
    let conn = prepare(conn, &path, None)?;
    Ok(Database { conn, path, _in_use: None })
}

fn connect(path: &Path, whole_up_to: Bytes) -> Result<Connection, StoreError> {
    let failed = |source| StoreError::io(path, source);
    // SQLite would make it readable for all, and its companions like it.
    let file = private().open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(failed(io::Error::other("it is no regular file; move it away")));
    }
    let header = refuse_newer(file, path)?;
    let check = check::needed(path, &header, whole_up_to);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags).map_err(|e| StoreError::sql(path, e))?;
    let conn = prepare(conn, path, check)?;
    if check.is_some() {
        check::clear(path);
    }
    Ok(conn)
}

/// Looks at the version in the file itself, since SQLite changes a database already by reading it: it makes files
/// beside it, and moves what they hold into it on closing. The header is described in SQLite's "Database File Format".
/// Gives the header, or nothing where there is none.
fn refuse_newer(mut file: File, path: &Path) -> Result<Vec<u8>, StoreError> {
    let mut header = vec![0; 64];
    match file.read_exact(&mut header) {
        Ok(()) if header.starts_with(b"SQLite format 3\0") => {
            let version = i32::from_be_bytes([header[60], header[61], header[62], header[63]]);
            migrations::check(path, version.into(), MIGRATIONS.len())?;
            Ok(header)
        }
        Ok(()) => Ok(Vec::new()),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(Vec::new()),
        Err(e) => Err(StoreError::io(path, e)),
    }
}

/// Checks a database by one of SQLite's checks; sets up the connection and migrates.
fn prepare(mut conn: Connection, path: &Path, check: Option<&str>) -> Result<Connection, StoreError> {
    let sql = |e| StoreError::sql(path, e);
    conn.busy_timeout(PATIENCE).map_err(sql)?;
    // What turns out damaged or newer is closed as it was found; only what is sound is tidied up on closing.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(sql)?;
    if let Some(check) = check
        && let Some(reason) = check::flaw(&conn, check).map_err(sql)?
    {
        return Err(StoreError::Damaged { path: path.into(), reason });
    }
    migrations::check(path, migrations::version(&conn).map_err(sql)?, MIGRATIONS.len())?;
    conn.pragma_update(None, "journal_mode", "WAL").map_err(sql)?;
    // In WAL mode a power cut can lose the last transactions, but not damage the database.
    conn.pragma_update(None, "synchronous", "NORMAL").map_err(sql)?;
    conn.pragma_update(None, "foreign_keys", true).map_err(sql)?;
    // What is forgotten is overwritten.
    conn.pragma_update(None, "secure_delete", true).map_err(sql)?;
    migrations::migrate(&mut conn, path, MIGRATIONS)?;
    for statement in super::STATEMENTS.iter().copied().flatten() {
        conn.prepare(statement).map_err(|e| StoreError::of_schema(path, e))?;
    }
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false).map_err(sql)?;
    Ok(conn)
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options
}

/// Tries until the lock is there or the time is up.
fn wait_for(file: &File, lock: FlockOperation, patience: Duration) -> io::Result<bool> {
    let began = Instant::now();
    loop {
        match flock(file, lock) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK | Errno::INTR) if began.elapsed() < patience => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(Errno::WOULDBLOCK | Errno::INTR) => return Ok(false),
            Err(e) => return Err(e.into()),
        }
    }
}

/// Renames the database and its companions to a dated name, and gives that of the database. The companions go first:
/// a `-wal` file left alone would be taken for the new database's.
fn set_aside(dir: &Path) -> io::Result<PathBuf> {
    let date = chrono::Utc::now().format("%Y%m%dT%H%M%SZ");
    let mut aside = format!("{FILE}.damaged-{date}");
    let mut number = 1;
    while dir.join(&aside).symlink_metadata().is_ok() {
        number += 1;
        aside = format!("{FILE}.damaged-{date}-{number}");
    }
    for end in ["-wal", "-shm", ""] {
        let (from, to) = (dir.join(format!("{FILE}{end}")), dir.join(format!("{aside}{end}")));
        let here = rustix::fs::CWD;
        match renameat_with(here, &from, here, &to, RenameFlags::NOREPLACE) {
            Ok(()) => {}
            Err(Errno::NOENT) if !end.is_empty() => {}
            Err(e) => return Err(e.into()),
        }
    }
    sync_folder(dir)?;
    Ok(dir.join(aside))
}
