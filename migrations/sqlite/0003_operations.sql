-- This shard's parts of operations over many items.

CREATE TABLE operation (
    id BLOB NOT NULL PRIMARY KEY,
    spec BLOB NOT NULL,
    as_of INTEGER NOT NULL,
    as_of_time INTEGER NOT NULL,
    as_of_batch INTEGER NOT NULL,
    position BLOB NOT NULL,
    scanned INTEGER NOT NULL,
    matched INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    ended_at INTEGER
) WITHOUT ROWID;
