-- Policies of topics and namespaces. ../mysql/0002_policies.sql documents the columns.

CREATE TABLE policy (
    namespace BLOB NOT NULL CHECK (length(namespace) <= 200),
    topic BLOB NOT NULL CHECK (length(topic) <= 200),
    version INTEGER NOT NULL,
    removed INTEGER NOT NULL,
    enqueue_paused_by BLOB CHECK (length(enqueue_paused_by) <= 200),
    enqueue_paused_at INTEGER,
    enqueue_paused_until INTEGER,
    enqueue_paused_note BLOB CHECK (length(enqueue_paused_note) <= 1024),
    dequeue_paused_by BLOB CHECK (length(dequeue_paused_by) <= 200),
    dequeue_paused_at INTEGER,
    dequeue_paused_until INTEGER,
    dequeue_paused_note BLOB CHECK (length(dequeue_paused_note) <= 1024),
    PRIMARY KEY (namespace, topic)
) WITHOUT ROWID;

CREATE INDEX policy_version ON policy (version);

CREATE INDEX policy_removed ON policy (removed, version);

ALTER TABLE cluster ADD COLUMN policies_version INTEGER NOT NULL DEFAULT 1;

ALTER TABLE cluster ADD COLUMN policies_floor INTEGER NOT NULL DEFAULT 0;
