-- This shard's parts of operations over many items.

CREATE TABLE IF NOT EXISTS operation (
    id BINARY(16) NOT NULL COMMENT 'the same in all shards',
    spec BLOB NOT NULL COMMENT 'packed: kind, topic, filter, shards, who, why, rate, whether it is cancelled',
    as_of BIGINT NOT NULL COMMENT 'highest item.seq when it began here: no later item is touched',
    as_of_time BIGINT NOT NULL COMMENT 'when it began here: no item that died later is touched',
    as_of_batch BIGINT NOT NULL COMMENT 'last batch before it began here: no later delivery is touched',
    position VARBINARY(64) NOT NULL COMMENT 'packed: where it continues',
    scanned BIGINT NOT NULL COMMENT 'items that were looked at',
    matched BIGINT NOT NULL COMMENT 'those of them that passed the filter',
    changed BIGINT NOT NULL COMMENT 'those of them that were changed',
    skipped BIGINT NOT NULL COMMENT 'those that did not fit any more',
    failed BIGINT NOT NULL COMMENT 'those that could not be changed',
    ended_at BIGINT NULL COMMENT 'when it ended here; NULL: it has not',
    PRIMARY KEY (id)
) ENGINE=InnoDB COMMENT='this shard''s parts of operations; written with their effects';
