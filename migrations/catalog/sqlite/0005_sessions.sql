-- Sessions of browsers. ../mysql/0005_sessions.sql documents the columns.

CREATE TABLE session (
    id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 32),
    token_id BLOB NOT NULL CHECK (length(token_id) <= 12),
    secret BLOB NOT NULL CHECK (length(secret) = 32),
    made_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX session_token ON session (token_id, used_at);

CREATE INDEX session_used ON session (used_at);
