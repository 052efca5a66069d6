-- Weights of topics and namespaces. ../mysql/0013_weights.sql documents the column.

ALTER TABLE setting ADD COLUMN weight INTEGER;
