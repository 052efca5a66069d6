-- Sessions of browsers. Programs that do not know them go on as before; to their pages a browser shows nothing.

CREATE TABLE IF NOT EXISTS session (
    id BINARY(32) NOT NULL COMMENT 'SHA-256 of the 256 random bits in the cookie',
    token_id VARBINARY(12) NOT NULL COMMENT 'token.id of the token that was shown at the login; it may be one of a file',
    secret BINARY(32) NOT NULL COMMENT 'SHA-256 of the secret that was shown: the session ends with it',
    made_at BIGINT NOT NULL COMMENT 'when the login was, in microseconds since the Unix epoch',
    used_at BIGINT NOT NULL COMMENT 'when it was last used, to the minute, in microseconds since the Unix epoch',
    PRIMARY KEY (id),
    KEY token (token_id, used_at),
    KEY used (used_at)
) ENGINE=InnoDB COMMENT='who is logged in to the pages of the HTTP ports';
