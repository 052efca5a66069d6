-- Settings of topics and namespaces. They have a table of their own: a program that does not know them replaces whole rows
-- of policy, and removes those without a pause. So it goes on as before, and takes no settings away.

CREATE TABLE IF NOT EXISTS setting (
    namespace VARBINARY(200) NOT NULL COMMENT 'the tenant',
    topic VARBINARY(200) NOT NULL COMMENT 'the topic; empty: the namespace itself, with all of its topics',
    version BIGINT NOT NULL COMMENT 'cluster.policies_version as of the last change of the row',
    removed TINYINT NOT NULL COMMENT '1: there is nothing in it any more; the row stays for a while so that nodes learn of that',
    default_lease BIGINT NULL COMMENT 'the lease of an item that names none, in microseconds; NULL: not set',
    default_max_attempts BIGINT NULL COMMENT 'so many deliveries may fail of an item that names no number; NULL: not set',
    retry_delay BIGINT NULL COMMENT 'how long an item waits after a failed delivery, in microseconds; 0: not at all; NULL: not set',
    dead_letter_retention BIGINT NULL COMMENT 'how long dead letters are kept, in microseconds; 0: for ever; NULL: not set',
    dedupe_window BIGINT NULL COMMENT 'how long dedupe keys are remembered, in microseconds; of namespaces alone; NULL: not set',
    PRIMARY KEY (namespace, topic),
    KEY version (version),
    KEY removed (removed, version)
) ENGINE=InnoDB COMMENT='what is set for the items of topics and namespaces';
