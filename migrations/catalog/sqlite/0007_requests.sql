-- Calls that were made under an id of their caller's. ../mysql/0007_requests.sql documents the columns.

CREATE TABLE request (
    id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 32),
    digest BLOB NOT NULL CHECK (length(digest) = 32),
    begun_at INTEGER NOT NULL,
    answer BLOB
) WITHOUT ROWID;

CREATE INDEX request_begun ON request (begun_at);
