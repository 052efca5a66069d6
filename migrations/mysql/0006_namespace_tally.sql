-- What topics counted that are forgotten, by namespace: a namespace's counts never fall.

CREATE TABLE IF NOT EXISTS namespace_tally (
    namespace VARBINARY(255) NOT NULL COMMENT 'the tenant',
    tally BLOB NULL COMMENT 'packed: since when, and how many were enqueued, acked, consumed, failed, returned, dead-lettered in topics that are forgotten; NULL: none',
    deleted_through INT UNSIGNED NOT NULL COMMENT 'highest topic.id when the namespace was last deleted: what these topics counted is not added; 0: it never was',
    changed_in BIGINT NOT NULL COMMENT 'number of the batch that wrote the row',
    PRIMARY KEY (namespace)
) ENGINE=InnoDB COMMENT='what topics counted that are forgotten; written by the batch that forgets them';
