-- The tables of a catalog in SQLite. ../mysql/0001_first.sql documents the columns.

CREATE TABLE cluster (
    id INTEGER PRIMARY KEY,
    cluster BLOB NOT NULL,
    shards_version INTEGER NOT NULL,
    nodes_version INTEGER NOT NULL,
    assignment_version INTEGER NOT NULL,
    last_shard INTEGER NOT NULL
);

-- The size limits are those of MySQL's types.
CREATE TABLE shard (
    id INTEGER PRIMARY KEY,
    url BLOB NOT NULL UNIQUE CHECK (length(url) <= 700),
    state INTEGER NOT NULL
);

CREATE TABLE node (
    name BLOB PRIMARY KEY CHECK (length(name) <= 100),
    incarnation BLOB NOT NULL,
    peer_address BLOB NOT NULL CHECK (length(peer_address) <= 255),
    clients_address BLOB NOT NULL CHECK (length(clients_address) <= 255),
    http_address BLOB NOT NULL CHECK (length(http_address) <= 255),
    program_release BLOB NOT NULL CHECK (length(program_release) <= 64),
    format INTEGER NOT NULL,
    draining INTEGER NOT NULL,
    beats INTEGER NOT NULL,
    servers BLOB NOT NULL CHECK (length(servers) < 16777216),
    unreachable BLOB NOT NULL CHECK (length(unreachable) < 16777216)
) WITHOUT ROWID;

CREATE TABLE assignment (
    shard INTEGER PRIMARY KEY,
    node BLOB NOT NULL CHECK (length(node) <= 100),
    pinned INTEGER NOT NULL
);
