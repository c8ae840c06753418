-- The first schema. A history belongs to the user whose starts it is of.
CREATE TABLE apps (
    id  INTEGER PRIMARY KEY,
    uid INTEGER NOT NULL,
    app TEXT    NOT NULL,
    UNIQUE (uid, app)
) STRICT;

-- `learned` and `began` are milliseconds since 1970, UTC. `data` is as src/store/blob.rs says; the figures beside it
-- are there so that a list of apps needs no decoding.
CREATE TABLE profiles (
    app_id  INTEGER PRIMARY KEY REFERENCES apps (id) ON DELETE CASCADE,
    learned INTEGER NOT NULL,
    runs    INTEGER NOT NULL,
    files   INTEGER NOT NULL,
    pages   INTEGER NOT NULL,
    data    BLOB    NOT NULL
) STRICT;

CREATE TABLE comparisons (
    id     INTEGER PRIMARY KEY,
    app_id INTEGER NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    began  INTEGER NOT NULL,
    json   TEXT    NOT NULL
) STRICT;

CREATE INDEX comparisons_by_app ON comparisons (app_id, began);
