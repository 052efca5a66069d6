-- The trace of a call that is written down. ../mysql/0006_trace.sql documents the column.

ALTER TABLE audit ADD COLUMN trace_id BLOB NOT NULL DEFAULT x'' CHECK (length(trace_id) <= 32);
