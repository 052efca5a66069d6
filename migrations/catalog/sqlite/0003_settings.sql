-- Settings of topics and namespaces. ../mysql/0003_settings.sql documents the columns.

CREATE TABLE setting (
    namespace BLOB NOT NULL CHECK (length(namespace) <= 200),
    topic BLOB NOT NULL CHECK (length(topic) <= 200),
    version INTEGER NOT NULL,
    removed INTEGER NOT NULL,
    default_lease INTEGER,
    default_max_attempts INTEGER,
    retry_delay INTEGER,
    dead_letter_retention INTEGER,
    dedupe_window INTEGER,
    PRIMARY KEY (namespace, topic)
) WITHOUT ROWID;

CREATE INDEX setting_version ON setting (version);

CREATE INDEX setting_removed ON setting (removed, version);
