-- The tables of a shard. Times are microseconds since the Unix epoch. Names are bytes and compare as bytes.
-- Every statement can run again: in MySQL each one commits on its own, so a migration can stop half way.

CREATE TABLE IF NOT EXISTS fence (
    id TINYINT NOT NULL COMMENT 'always 1',
    epoch BIGINT NOT NULL COMMENT 'incremented at each change of owner',
    incarnation BINARY(16) NOT NULL COMMENT 'random name of the owner',
    batch BIGINT NOT NULL COMMENT 'number of the last committed batch; never reset',
    last_seq BIGINT NOT NULL COMMENT 'highest item.seq given out',
    last_topic INT UNSIGNED NOT NULL COMMENT 'highest topic.id given out',
    last_rank_us BIGINT NOT NULL COMMENT 'highest rank of an item that was ready when stored',
    last_time BIGINT NOT NULL COMMENT 'the shard''s time as of the last batch that recorded it',
    PRIMARY KEY (id)
) ENGINE=InnoDB COMMENT='one row; the last statement of every batch advances it by compare-and-set';
INSERT IGNORE INTO fence VALUES (1, 0, REPEAT(X'00', 16), 0, 0, 0, 0, 0);

CREATE TABLE IF NOT EXISTS identity (
    id TINYINT NOT NULL COMMENT 'always 1',
    shard INT UNSIGNED NOT NULL COMMENT 'the number of this shard in the configuration',
    cluster BINARY(16) NOT NULL COMMENT 'random, the same in all shards of one queue',
    PRIMARY KEY (id)
) ENGINE=InnoDB COMMENT='one row, written by the first migration: which shard this is';

CREATE TABLE IF NOT EXISTS topology_history (
    id TINYINT NOT NULL COMMENT 'always 1',
    topologies MEDIUMBLOB NOT NULL COMMENT 'packed: past and present shard sets used to route dedupe keys; empty at first',
    PRIMARY KEY (id)
) ENGINE=InnoDB COMMENT='one row, changed by batches: which shards existed, and since when';
INSERT IGNORE INTO topology_history VALUES (1, '');

CREATE TABLE IF NOT EXISTS heartbeat (
    id TINYINT NOT NULL COMMENT 'always 1',
    epoch BIGINT NOT NULL COMMENT 'epoch of the owner',
    incarnation BINARY(16) NOT NULL COMMENT 'random name of the owner',
    renewals BIGINT NOT NULL COMMENT 'number of renewals; never reset',
    address VARBINARY(255) NOT NULL COMMENT 'host:port of the owner; empty before the first owner and after a release',
    lease_ms INT UNSIGNED NOT NULL COMMENT 'how long the owner may be silent before it counts as gone, in milliseconds',
    successor VARBINARY(255) NOT NULL COMMENT 'host:port of the node that a released shard was handed to; empty: anybody may take it over',
    writer_lock VARBINARY(64) NOT NULL COMMENT 'name of the GET_LOCK lock that the writing connection holds',
    PRIMARY KEY (id)
) ENGINE=InnoDB COMMENT='one row; the owner renews it independently of its batches';
INSERT IGNORE INTO heartbeat VALUES (1, 0, REPEAT(X'00', 16), 0, '', 0, '', '');

CREATE TABLE IF NOT EXISTS probe (
    id TINYINT NOT NULL COMMENT 'always 1',
    probes BIGINT NOT NULL COMMENT 'how often a candidate has tried whether the server commits',
    PRIMARY KEY (id)
) ENGINE=InnoDB COMMENT='one row; a candidate writes it before it takes over a shard that was not released';
INSERT IGNORE INTO probe VALUES (1, 0);

CREATE TABLE IF NOT EXISTS topic (
    id INT UNSIGNED NOT NULL COMMENT 'number of the topic in this shard; never reused',
    namespace VARBINARY(255) NOT NULL COMMENT 'the tenant',
    name VARBINARY(255) NOT NULL COMMENT 'name of the topic within the tenant',
    ready BIGINT NOT NULL COMMENT 'items in state ready, leased ones included, as of counted_at',
    scheduled BIGINT NOT NULL COMMENT 'items in state scheduled, as of counted_at',
    dead BIGINT NOT NULL COMMENT 'dead letters, as of counted_at',
    counted_at BIGINT NOT NULL COMMENT 'number of the batch as of which the counts are exact',
    PRIMARY KEY (id)
) ENGINE=InnoDB COMMENT='topics with items or dead letters, or recently with items';

CREATE TABLE IF NOT EXISTS count_delta (
    batch BIGINT NOT NULL COMMENT 'number of the batch',
    deltas MEDIUMBLOB NOT NULL COMMENT 'packed: list of topics and changes of their counts',
    PRIMARY KEY (batch)
) ENGINE=InnoDB COMMENT='changes of counts since they were last folded into topic';

CREATE TABLE IF NOT EXISTS item (
    seq BIGINT NOT NULL COMMENT 'number of the item in this shard; increases with time',
    topic INT UNSIGNED NOT NULL COMMENT 'topic.id',
    state TINYINT NOT NULL COMMENT '0 ready (also while leased, see lease), 1 scheduled',
    priority INT NOT NULL COMMENT 'the smaller number is delivered first',
    rank_us BIGINT NOT NULL COMMENT 'when the item became or becomes ready; order within a priority',
    deliveries INT UNSIGNED NOT NULL COMMENT 'deliveries so far, without one in progress, see lease',
    failures INT UNSIGNED NOT NULL COMMENT 'failed deliveries so far',
    attributes BLOB NOT NULL COMMENT 'packed: enqueue time, expiry, lease duration, attempts, policy, size, headers; never changes',
    metadata BLOB NOT NULL COMMENT 'opaque bytes; a nack may replace them',
    payload MEDIUMBLOB NOT NULL COMMENT 'opaque bytes',
    PRIMARY KEY (seq),
    KEY delivery (topic, state, priority, rank_us)
) ENGINE=InnoDB COMMENT='items, in order of creation';

CREATE TABLE IF NOT EXISTS schedule (
    deliver_at BIGINT NOT NULL COMMENT 'when the item becomes ready; equals its rank_us',
    seq BIGINT NOT NULL COMMENT 'item.seq',
    PRIMARY KEY (deliver_at, seq)
) ENGINE=InnoDB COMMENT='items in state scheduled, by due time';

CREATE TABLE IF NOT EXISTS expiry (
    expires_at BIGINT NOT NULL COMMENT 'when the item expires',
    seq BIGINT NOT NULL COMMENT 'item.seq',
    PRIMARY KEY (expires_at, seq)
) ENGINE=InnoDB COMMENT='items with a time to live, by expiry';

CREATE TABLE IF NOT EXISTS lease (
    id BIGINT NOT NULL COMMENT 'number of the batch in which these deliveries began',
    entries MEDIUMBLOB NOT NULL COMMENT 'packed: list of deliveries',
    PRIMARY KEY (id)
) ENGINE=InnoDB COMMENT='the lease log: one row for all deliveries of a batch';

CREATE TABLE IF NOT EXISTS lease_open (
    id BIGINT NOT NULL COMMENT 'lease.id',
    open_bits BLOB NOT NULL COMMENT 'one bit for each delivery, lowest first: 1 is still open',
    PRIMARY KEY (id)
) ENGINE=InnoDB COMMENT='lease rows that are partly closed; without a row here all deliveries are open';

CREATE TABLE IF NOT EXISTS dead_letter (
    seq BIGINT NOT NULL COMMENT 'item.seq of the former item',
    topic INT UNSIGNED NOT NULL COMMENT 'topic.id',
    priority INT NOT NULL COMMENT 'priority of the former item',
    deliveries INT UNSIGNED NOT NULL COMMENT 'total deliveries',
    failures INT UNSIGNED NOT NULL COMMENT 'total failed deliveries',
    reason VARBINARY(64) NOT NULL COMMENT 'nacked, lease ended or dead-lettered',
    last_error BLOB NOT NULL COMMENT 'error text of the last nack; may be empty',
    died_at BIGINT NOT NULL COMMENT 'when the item became a dead letter',
    expires_at BIGINT NOT NULL COMMENT 'when it is deleted; 9223372036854775807: never',
    attributes BLOB NOT NULL COMMENT 'attributes of the former item',
    metadata BLOB NOT NULL COMMENT 'metadata, perhaps replaced by the last nack',
    payload MEDIUMBLOB NOT NULL COMMENT 'payload of the former item',
    PRIMARY KEY (seq),
    KEY retention (expires_at)
) ENGINE=InnoDB COMMENT='items that failed too often or were rejected';

CREATE TABLE IF NOT EXISTS checkpoint (
    sweep VARBINARY(32) NOT NULL COMMENT 'name of the sweep',
    at BIGINT NOT NULL COMMENT 'its table has no live row before this time',
    PRIMARY KEY (sweep)
) ENGINE=InnoDB COMMENT='where each sweep continues';
