-- The tables of a shard. Times are microseconds since the Unix epoch; names are bytes, compared as bytes.
-- Every statement may be repeated: in MySQL each one commits by itself, so a migration can stop half way.

CREATE TABLE IF NOT EXISTS fence (
    id TINYINT NOT NULL COMMENT 'always 1',
    epoch BIGINT NOT NULL COMMENT 'grows by one at each change of owner',
    incarnation BINARY(16) NOT NULL COMMENT 'random name of the owner',
    batch BIGINT NOT NULL COMMENT 'number of the last committed batch; never starts anew',
    last_seq BIGINT NOT NULL COMMENT 'highest item.seq given out',
    last_topic INT UNSIGNED NOT NULL COMMENT 'highest topic.id given out',
    last_rank_us BIGINT NOT NULL COMMENT 'highest rank given to an item that was ready at once',
    last_time BIGINT NOT NULL COMMENT 'the time of the shard at the last batch that told it',
    PRIMARY KEY (id)
) ENGINE=InnoDB COMMENT='one row; every batch moves it on by compare-and-set as its last statement';
INSERT IGNORE INTO fence VALUES (1, 0, REPEAT(X'00', 16), 0, 0, 0, 0, 0);

CREATE TABLE IF NOT EXISTS topology_history (
    id TINYINT NOT NULL COMMENT 'always 1',
    topologies MEDIUMBLOB NOT NULL COMMENT 'packed: the lists of shards among which keys had their homes, with their times; empty before the first',
    PRIMARY KEY (id)
) ENGINE=InnoDB COMMENT='one row, changed under the fence: which shards there were, and since when';
INSERT IGNORE INTO topology_history VALUES (1, '');

CREATE TABLE IF NOT EXISTS heartbeat (
    id TINYINT NOT NULL COMMENT 'always 1',
    epoch BIGINT NOT NULL COMMENT 'epoch of the owner that renews',
    incarnation BINARY(16) NOT NULL COMMENT 'random name of the owner that renews',
    renewals BIGINT NOT NULL COMMENT 'counts renewals; never starts anew',
    address VARBINARY(255) NOT NULL COMMENT 'host:port of the owner; empty when the shard was given up',
    writer_lock VARBINARY(64) NOT NULL COMMENT 'GET_LOCK name held by the connection that writes',
    heartbeat_lock VARBINARY(64) NOT NULL COMMENT 'GET_LOCK name held by the connection that renews',
    PRIMARY KEY (id)
) ENGINE=InnoDB COMMENT='one row; renewed apart from the batches by the owner';
INSERT IGNORE INTO heartbeat VALUES (1, 0, REPEAT(X'00', 16), 0, '', '', '');

CREATE TABLE IF NOT EXISTS topic (
    id INT UNSIGNED NOT NULL COMMENT 'number of the topic in this shard; never used again',
    namespace VARBINARY(255) NOT NULL COMMENT 'the tenant',
    name VARBINARY(255) NOT NULL COMMENT 'the topic inside the tenant',
    ready BIGINT NOT NULL COMMENT 'items in state ready, leased ones included, as of counted_at',
    scheduled BIGINT NOT NULL COMMENT 'items in state scheduled, as of counted_at',
    dead BIGINT NOT NULL COMMENT 'dead letters, as of counted_at',
    counted_at BIGINT NOT NULL COMMENT 'number of the batch whose counts these are',
    PRIMARY KEY (id)
) ENGINE=InnoDB COMMENT='topics that hold something, or did lately';

CREATE TABLE IF NOT EXISTS count_delta (
    batch BIGINT NOT NULL COMMENT 'number of the batch',
    deltas MEDIUMBLOB NOT NULL COMMENT 'packed list of topic and change of its counts',
    PRIMARY KEY (batch)
) ENGINE=InnoDB COMMENT='changes of counts since the topics were last counted';

CREATE TABLE IF NOT EXISTS item (
    seq BIGINT NOT NULL COMMENT 'number of the item in this shard; grows with time',
    topic INT UNSIGNED NOT NULL COMMENT 'topic.id',
    state TINYINT NOT NULL COMMENT '0 ready (leased if the lease log says so), 1 scheduled',
    priority INT NOT NULL COMMENT 'the smaller number goes first',
    rank_us BIGINT NOT NULL COMMENT 'when the item became or becomes ready; orders inside a priority',
    deliveries INT UNSIGNED NOT NULL COMMENT 'deliveries so far; kept in the lease log while leased',
    failures INT UNSIGNED NOT NULL COMMENT 'failed deliveries so far',
    attributes BLOB NOT NULL COMMENT 'packed: when it was enqueued, when it expires, lease duration, attempts, policy, size, headers; never changed',
    metadata BLOB NOT NULL COMMENT 'bytes beside the payload; a nack may replace them',
    payload MEDIUMBLOB NOT NULL COMMENT 'what the queue carries',
    PRIMARY KEY (seq),
    KEY delivery (topic, state, priority, rank_us)
) ENGINE=InnoDB COMMENT='the items, in order of their making';

CREATE TABLE IF NOT EXISTS schedule (
    deliver_at BIGINT NOT NULL COMMENT 'when the item becomes ready; its rank_us',
    seq BIGINT NOT NULL COMMENT 'item.seq',
    PRIMARY KEY (deliver_at, seq)
) ENGINE=InnoDB COMMENT='items in state scheduled, by time';

CREATE TABLE IF NOT EXISTS expiry (
    expires_at BIGINT NOT NULL COMMENT 'when the item expires',
    seq BIGINT NOT NULL COMMENT 'item.seq',
    PRIMARY KEY (expires_at, seq)
) ENGINE=InnoDB COMMENT='items with a time to live, by its end';

CREATE TABLE IF NOT EXISTS lease (
    id BIGINT NOT NULL COMMENT 'number of the batch that began these deliveries',
    entries MEDIUMBLOB NOT NULL COMMENT 'packed list of deliveries',
    PRIMARY KEY (id)
) ENGINE=InnoDB COMMENT='the lease log: deliveries that began together';

CREATE TABLE IF NOT EXISTS lease_open (
    id BIGINT NOT NULL COMMENT 'lease.id',
    open_bits BLOB NOT NULL COMMENT 'one bit a delivery, lowest first: 1 is still open',
    PRIMARY KEY (id)
) ENGINE=InnoDB COMMENT='rows of the lease log some of whose deliveries ended; without a row here all are open';

CREATE TABLE IF NOT EXISTS dead_letter (
    seq BIGINT NOT NULL COMMENT 'item.seq, as it was',
    topic INT UNSIGNED NOT NULL COMMENT 'topic.id',
    priority INT NOT NULL COMMENT 'as the item had it',
    deliveries INT UNSIGNED NOT NULL COMMENT 'deliveries in all',
    failures INT UNSIGNED NOT NULL COMMENT 'failed deliveries in all',
    reason VARBINARY(64) NOT NULL COMMENT 'nacked, lease ended or dead-lettered',
    last_error BLOB NOT NULL COMMENT 'what the last nack said',
    died_at BIGINT NOT NULL COMMENT 'when the item gave up',
    attributes BLOB NOT NULL COMMENT 'as the item had them',
    metadata BLOB NOT NULL COMMENT 'as the last nack left them',
    payload MEDIUMBLOB NOT NULL COMMENT 'as the item had it',
    PRIMARY KEY (seq)
) ENGINE=InnoDB COMMENT='items that gave up';

CREATE TABLE IF NOT EXISTS checkpoint (
    sweep VARBINARY(32) NOT NULL COMMENT 'name of the sweep',
    at BIGINT NOT NULL COMMENT 'no live row of its table lies before this time',
    PRIMARY KEY (sweep)
) ENGINE=InnoDB COMMENT='where each sweep goes on';
