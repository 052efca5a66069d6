-- Policies: what operators and tenants want of topics and namespaces. Programs that do not know them go on as before.

CREATE TABLE IF NOT EXISTS policy (
    namespace VARBINARY(200) NOT NULL COMMENT 'the tenant',
    topic VARBINARY(200) NOT NULL COMMENT 'the topic; empty: the namespace itself, with all of its topics',
    version BIGINT NOT NULL COMMENT 'cluster.policies_version as of the last change of the row',
    removed TINYINT NOT NULL COMMENT '1: there is nothing in it any more; the row stays for a while so that nodes learn of that',
    enqueue_paused_by VARBINARY(200) NULL COMMENT 'who paused enqueue; NULL: it is not paused',
    enqueue_paused_at BIGINT NULL COMMENT 'since when enqueue is paused, in microseconds since the Unix epoch',
    enqueue_paused_until BIGINT NULL COMMENT 'when the pause of enqueue ends, in microseconds since the Unix epoch; NULL: it has no end',
    enqueue_paused_note VARBINARY(1024) NULL COMMENT 'why enqueue is paused, for people',
    dequeue_paused_by VARBINARY(200) NULL COMMENT 'who paused dequeue; NULL: it is not paused',
    dequeue_paused_at BIGINT NULL COMMENT 'since when dequeue is paused, in microseconds since the Unix epoch',
    dequeue_paused_until BIGINT NULL COMMENT 'when the pause of dequeue ends, in microseconds since the Unix epoch; NULL: it has no end',
    dequeue_paused_note VARBINARY(1024) NULL COMMENT 'why dequeue is paused, for people',
    PRIMARY KEY (namespace, topic),
    KEY version (version),
    KEY removed (removed, version)
) ENGINE=InnoDB COMMENT='what is wanted of topics and namespaces';

ALTER TABLE cluster ADD COLUMN policies_version BIGINT NOT NULL DEFAULT 1 COMMENT 'incremented with every change of table policy';

ALTER TABLE cluster ADD COLUMN policies_floor BIGINT NOT NULL DEFAULT 0 COMMENT 'highest policy.version of a removed row that is deleted; who knows an older version reads all rows';
