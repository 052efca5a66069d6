-- Which call gave a token its secret. ../mysql/0012_rotations.sql documents the column.

ALTER TABLE token ADD COLUMN rotation BLOB CHECK (length(rotation) = 32);
