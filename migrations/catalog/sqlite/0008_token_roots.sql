-- From whom a token descends. ../mysql/0008_token_roots.sql documents the column.

ALTER TABLE token ADD COLUMN root BLOB NOT NULL DEFAULT x'' CHECK (length(root) <= 255);

CREATE INDEX token_root ON token (root);
