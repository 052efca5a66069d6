-- By whose right policies and settings are there, so that one tenant can't take the room of all. Programs that do not know
-- it leave it empty; those rows count among no one's.

ALTER TABLE policy ADD COLUMN root VARBINARY(255) NOT NULL DEFAULT '' COMMENT 'token.root of the token that wrote the row last; empty: an operator did, or it is not known';

ALTER TABLE policy ADD KEY root (root, removed);

ALTER TABLE setting ADD COLUMN root VARBINARY(255) NOT NULL DEFAULT '' COMMENT 'token.root of the token that wrote the row last; empty: an operator did, or it is not known';

ALTER TABLE setting ADD KEY root (root, removed);
