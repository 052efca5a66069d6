-- The tables of a shard in SQLite. ../mysql/0001_first.sql documents the columns.

CREATE TABLE fence (
    id INTEGER PRIMARY KEY,
    epoch INTEGER NOT NULL,
    incarnation BLOB NOT NULL,
    batch INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    last_topic INTEGER NOT NULL,
    last_rank_us INTEGER NOT NULL,
    last_time INTEGER NOT NULL
);
INSERT INTO fence VALUES (1, 0, zeroblob(16), 0, 0, 0, 0, 0);

CREATE TABLE identity (
    id INTEGER PRIMARY KEY,
    shard INTEGER NOT NULL,
    cluster BLOB NOT NULL
);

CREATE TABLE topology_history (
    id INTEGER PRIMARY KEY,
    topologies BLOB NOT NULL
);
INSERT INTO topology_history VALUES (1, X'');

CREATE TABLE heartbeat (
    id INTEGER PRIMARY KEY,
    epoch INTEGER NOT NULL,
    incarnation BLOB NOT NULL,
    renewals INTEGER NOT NULL,
    address BLOB NOT NULL,
    lease_ms INTEGER NOT NULL,
    successor BLOB NOT NULL
);
INSERT INTO heartbeat VALUES (1, 0, zeroblob(16), 0, X'', 0, X'');

CREATE TABLE topic (
    id INTEGER PRIMARY KEY,
    namespace BLOB NOT NULL,
    name BLOB NOT NULL,
    ready INTEGER NOT NULL,
    scheduled INTEGER NOT NULL,
    dead INTEGER NOT NULL,
    counted_at INTEGER NOT NULL
);

CREATE TABLE count_delta (
    batch INTEGER PRIMARY KEY,
    deltas BLOB NOT NULL
);

-- The size limits are those of MySQL's types.
CREATE TABLE item (
    seq INTEGER PRIMARY KEY,
    topic INTEGER NOT NULL,
    state INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    rank_us INTEGER NOT NULL,
    deliveries INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    attributes BLOB NOT NULL CHECK (length(attributes) < 65536),
    metadata BLOB NOT NULL CHECK (length(metadata) < 65536),
    payload BLOB NOT NULL CHECK (length(payload) < 16777216)
);
CREATE INDEX delivery ON item (topic, state, priority, rank_us, seq);

CREATE TABLE schedule (
    deliver_at INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (deliver_at, seq)
) WITHOUT ROWID;

CREATE TABLE expiry (
    expires_at INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (expires_at, seq)
) WITHOUT ROWID;

CREATE TABLE lease (
    id INTEGER PRIMARY KEY,
    entries BLOB NOT NULL
);

CREATE TABLE lease_open (
    id INTEGER PRIMARY KEY,
    open_bits BLOB NOT NULL
);

CREATE TABLE dead_letter (
    seq INTEGER PRIMARY KEY,
    topic INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    deliveries INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    reason BLOB NOT NULL,
    last_error BLOB NOT NULL CHECK (length(last_error) < 65536),
    died_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    attributes BLOB NOT NULL,
    metadata BLOB NOT NULL CHECK (length(metadata) < 65536),
    payload BLOB NOT NULL
);
CREATE INDEX retention ON dead_letter (expires_at, seq);

CREATE TABLE checkpoint (
    sweep BLOB NOT NULL PRIMARY KEY,
    at INTEGER NOT NULL
) WITHOUT ROWID;
