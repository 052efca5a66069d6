-- Calls that were made under an id of their caller's, and what was answered. Programs that do not know them make a
-- repeated call again, as before.

CREATE TABLE IF NOT EXISTS request (
    id BINARY(32) NOT NULL COMMENT 'SHA-256 of the caller and the request id',
    digest BINARY(32) NOT NULL COMMENT 'SHA-256 of the method and the request',
    begun_at BIGINT NOT NULL COMMENT 'when the first call began, in microseconds since the Unix epoch',
    answer MEDIUMBLOB NULL COMMENT 'the encoded answer; empty: one with a secret, which is not kept; NULL: not known yet',
    PRIMARY KEY (id),
    KEY begun (begun_at)
) ENGINE=InnoDB COMMENT='calls for operators that were made under a request id';
