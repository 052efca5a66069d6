-- Which token made a token, so that what descends from it can be revoked with it, and calls that were refused since their
-- caller had no right to them. Programs that do not know these leave them at their defaults. To them a refused call is a failed one.

ALTER TABLE token ADD COLUMN made_by_id VARBINARY(12) NOT NULL DEFAULT '' COMMENT 'token.id of the token that made this one; empty: none did, or it is not known';

ALTER TABLE audit ADD COLUMN denied TINYINT NOT NULL DEFAULT 0 COMMENT '1: the caller had no right to the call, so it was not made; outcome is 2 then';
