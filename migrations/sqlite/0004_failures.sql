-- ../mysql/0004_failures.sql documents the columns.

ALTER TABLE item ADD COLUMN last_failures BLOB;
ALTER TABLE dead_letter ADD COLUMN last_failures BLOB;
