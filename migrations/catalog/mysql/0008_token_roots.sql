-- From whom a token descends, so that a tenant can't take all there may be. Programs that do not know it leave it
-- empty; those tokens count among no one's.

ALTER TABLE token ADD COLUMN root VARBINARY(255) NOT NULL DEFAULT '' COMMENT 'token.id of the token, made by an operator, from which this one descends, or another holder of rights; empty: not known';

ALTER TABLE token ADD KEY root (root);
