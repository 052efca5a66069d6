-- Who has changed what, and tokens. ../mysql/0004_audit.sql documents the columns.

CREATE TABLE audit (
    id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    principal BLOB NOT NULL CHECK (length(principal) <= 255),
    principal_kind INTEGER NOT NULL,
    token_id BLOB NOT NULL CHECK (length(token_id) <= 12),
    peer BLOB NOT NULL CHECK (length(peer) <= 64),
    method BLOB NOT NULL CHECK (length(method) <= 64),
    namespace BLOB NOT NULL CHECK (length(namespace) <= 255),
    target BLOB NOT NULL CHECK (length(target) <= 255),
    reason BLOB NOT NULL CHECK (length(reason) <= 1024),
    summary BLOB NOT NULL CHECK (length(summary) <= 1024),
    outcome INTEGER NOT NULL,
    failure BLOB NOT NULL CHECK (length(failure) <= 64),
    operation_id BLOB NOT NULL CHECK (length(operation_id) <= 32),
    node BLOB NOT NULL CHECK (length(node) <= 100)
) WITHOUT ROWID;

CREATE INDEX audit_namespace ON audit (namespace, id);

CREATE TABLE token (
    id BLOB NOT NULL PRIMARY KEY CHECK (length(id) <= 12),
    namespace BLOB NOT NULL CHECK (length(namespace) <= 255),
    name BLOB NOT NULL CHECK (length(name) <= 200),
    secret BLOB NOT NULL CHECK (length(secret) = 32),
    older_secret BLOB CHECK (length(older_secret) = 32),
    grants BLOB NOT NULL CHECK (length(grants) <= 4096),
    made_by BLOB NOT NULL CHECK (length(made_by) <= 255),
    made_at INTEGER NOT NULL,
    ends_at INTEGER,
    overlap_ends_at INTEGER,
    revoked_at INTEGER,
    last_used_at INTEGER,
    is_admin INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX token_namespace ON token (namespace, id);

ALTER TABLE cluster ADD COLUMN tokens_version INTEGER NOT NULL DEFAULT 1;
