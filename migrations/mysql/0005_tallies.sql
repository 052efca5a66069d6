-- What has become of a topic's items and deliveries so far. It is stored with the counts, and folded with them.

ALTER TABLE topic ADD COLUMN tally BLOB NULL COMMENT 'packed: since when, and how many were enqueued, acked, consumed, failed, returned, dead-lettered, as of counted_at; NULL: none';
ALTER TABLE count_delta ADD COLUMN tallies MEDIUMBLOB NULL COMMENT 'packed: time of the batch, list of topics and what became of their items; NULL: nothing';
