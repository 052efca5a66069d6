-- Which token made a token, and calls that were refused. ../mysql/0010_denials.sql documents the columns.

ALTER TABLE token ADD COLUMN made_by_id BLOB NOT NULL DEFAULT x'' CHECK (length(made_by_id) <= 12);

ALTER TABLE audit ADD COLUMN denied INTEGER NOT NULL DEFAULT 0;
