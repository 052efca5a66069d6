-- Who has changed what, and tokens. Programs that do not know them go on as before.

CREATE TABLE IF NOT EXISTS audit (
    id BINARY(16) NOT NULL COMMENT '8 bytes of the time of the call in microseconds since the Unix epoch, then 8 random ones',
    principal VARBINARY(255) NOT NULL COMMENT 'name of the token, or of the certificate; empty: nobody is known',
    principal_kind TINYINT NOT NULL COMMENT '0 nobody is known, 1 token, 2 certificate, 3 operator at the catalog itself',
    token_id VARBINARY(12) NOT NULL COMMENT 'token.id of the caller; empty: it has none',
    peer VARBINARY(64) NOT NULL COMMENT 'host:port from which the call came; empty: it is not known',
    method VARBINARY(64) NOT NULL COMMENT 'the call, as in PauseTopic',
    namespace VARBINARY(255) NOT NULL COMMENT 'the tenant that the call names; empty: none',
    target VARBINARY(255) NOT NULL COMMENT 'the topic, item, operation, token, node or shard; may be empty',
    reason VARBINARY(1024) NOT NULL COMMENT 'why, in the words of the caller; may be empty',
    summary VARBINARY(1024) NOT NULL COMMENT 'the other fields of the request, without payloads and secrets',
    outcome TINYINT NOT NULL COMMENT '0 intended: nothing is known of its end, 1 done, 2 failed',
    failure VARBINARY(64) NOT NULL COMMENT 'the reason of the error, if it failed',
    operation_id VARBINARY(32) NOT NULL COMMENT 'the operation that the call began; empty: none',
    node VARBINARY(100) NOT NULL COMMENT 'name of the node that took the call',
    PRIMARY KEY (id),
    KEY namespace (namespace, id)
) ENGINE=InnoDB COMMENT='calls that change something or show payloads; rows are added, and their outcome is written once';

CREATE TABLE IF NOT EXISTS token (
    id VARBINARY(12) NOT NULL COMMENT 'names the token; no secret',
    namespace VARBINARY(255) NOT NULL COMMENT 'all grants lie in it: a namespace, the beginning of names and *, or * for all',
    name VARBINARY(200) NOT NULL COMMENT 'for people',
    secret BINARY(32) NOT NULL COMMENT 'SHA-256 of its newest secret',
    older_secret VARBINARY(32) NULL COMMENT 'SHA-256 of the secret before, which holds until overlap_ends; NULL: there is none',
    grants VARBINARY(4096) NOT NULL COMMENT 'what its holder may do, as in a:produce,consume, with blanks between them',
    made_by VARBINARY(255) NOT NULL COMMENT 'who made it',
    made_at BIGINT NOT NULL COMMENT 'when it was made, in microseconds since the Unix epoch',
    ends_at BIGINT NULL COMMENT 'from when on it is of no use, in microseconds since the Unix epoch; NULL: never',
    overlap_ends_at BIGINT NULL COMMENT 'until when the older secret holds, in microseconds since the Unix epoch',
    revoked_at BIGINT NULL COMMENT 'since when it is of no use, in microseconds since the Unix epoch; NULL: it is not revoked',
    last_used_at BIGINT NULL COMMENT 'the hour in which it was last used, in microseconds since the Unix epoch; NULL: not yet',
    is_admin TINYINT NOT NULL COMMENT '1: its grants contain the right admin in all namespaces',
    PRIMARY KEY (id),
    KEY namespace (namespace, id)
) ENGINE=InnoDB COMMENT='credentials of callers';

ALTER TABLE cluster ADD COLUMN tokens_version BIGINT NOT NULL DEFAULT 1 COMMENT 'incremented with every change of table token other than last_used_at';
