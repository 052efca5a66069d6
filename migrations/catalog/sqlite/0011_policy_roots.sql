-- By whose right policies and settings are there. ../mysql/0011_policy_roots.sql documents the columns.

ALTER TABLE policy ADD COLUMN root BLOB NOT NULL DEFAULT x'' CHECK (length(root) <= 255);

CREATE INDEX policy_root ON policy (root, removed);

ALTER TABLE setting ADD COLUMN root BLOB NOT NULL DEFAULT x'' CHECK (length(root) <= 255);

CREATE INDEX setting_root ON setting (root, removed);
