-- Daily use: what is done about each app, its launches, and what the daemon did.
--
-- Moments are milliseconds since 1970, UTC. `policy`, `state` and `verdict` are JSON as headstart-shared has them; NULL is
-- not known. Numbers of 64 bits without a sign are stored with the same bits.
ALTER TABLE apps ADD COLUMN policy TEXT;
ALTER TABLE apps ADD COLUMN state TEXT;
ALTER TABLE apps ADD COLUMN circumstances INTEGER;
ALTER TABLE apps ADD COLUMN verdict TEXT;
ALTER TABLE apps ADD COLUMN launches INTEGER NOT NULL DEFAULT 0;
ALTER TABLE apps ADD COLUMN hot INTEGER NOT NULL DEFAULT 0;
ALTER TABLE apps ADD COLUMN last_launch INTEGER;
ALTER TABLE apps ADD COLUMN version INTEGER;
-- Launches with lower numbers do not count for the verdict any more.
ALTER TABLE apps ADD COLUMN counts_from INTEGER NOT NULL DEFAULT 0;

-- A number is never given twice. `arm` is 1 prefetched, 2 held out, 3 off; `counts` is whether it takes part in the verdict;
-- `data` is as src/store/blob.rs says.
CREATE TABLE launches (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    app_id INTEGER NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    began  INTEGER NOT NULL,
    arm    INTEGER NOT NULL,
    counts INTEGER NOT NULL,
    data   BLOB    NOT NULL
) STRICT;
CREATE INDEX launches_by_app ON launches (app_id, id);
CREATE INDEX launches_counted ON launches (app_id, arm, id) WHERE counts = 1;
CREATE INDEX launches_by_date ON launches (began);

CREATE TABLE timelines (
    launch_id INTEGER PRIMARY KEY REFERENCES launches (id) ON DELETE CASCADE,
    data      BLOB    NOT NULL
) STRICT;

-- What is left of launches that were too old to keep: of each month (as 202611) and arm how many there were, and the
-- quartiles of their times, in nanoseconds, to the milestone (1 first window, 2 exit, 3 settled).
CREATE TABLE months (
    app_id    INTEGER NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    month     INTEGER NOT NULL,
    arm       INTEGER NOT NULL,
    milestone INTEGER NOT NULL,
    launches  INTEGER NOT NULL,
    low       INTEGER NOT NULL,
    median    INTEGER NOT NULL,
    high      INTEGER NOT NULL,
    PRIMARY KEY (app_id, month, arm, milestone)
) STRICT, WITHOUT ROWID;

-- `layout` tells which mounts and drives the plans are for; `sample` is what to look at to tell how cold a launch is.
CREATE TABLE plans (
    app_id INTEGER PRIMARY KEY REFERENCES apps (id) ON DELETE CASCADE,
    layout INTEGER NOT NULL,
    data   BLOB    NOT NULL,
    sample BLOB    NOT NULL
) STRICT;

-- Without a uid it is about the machine, and for everybody.
CREATE TABLE activity (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    uid    INTEGER,
    at     INTEGER NOT NULL,
    kind   INTEGER NOT NULL,
    app    TEXT,
    launch INTEGER,
    count  INTEGER,
    detail TEXT
) STRICT;
CREATE INDEX activity_by_app ON activity (uid, app);

-- Bytes read ahead on a day (as 20261130, UTC).
CREATE TABLE reads (
    day   INTEGER NOT NULL,
    drive TEXT    NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (day, drive)
) STRICT, WITHOUT ROWID;

-- When all of the database was last looked at: one row.
CREATE TABLE checks (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL
) STRICT;
