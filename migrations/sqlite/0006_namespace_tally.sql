-- ../mysql/0006_namespace_tally.sql documents the columns.

CREATE TABLE namespace_tally (
    namespace BLOB NOT NULL PRIMARY KEY,
    tally BLOB,
    deleted_through INTEGER NOT NULL,
    changed_in INTEGER NOT NULL
) WITHOUT ROWID;
