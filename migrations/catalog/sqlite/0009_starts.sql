-- When the process of a node was started. ../mysql/0009_starts.sql documents the columns.

ALTER TABLE node ADD COLUMN started_at INTEGER;

ALTER TABLE node ADD COLUMN started_as BLOB CHECK (length(started_as) = 16);
