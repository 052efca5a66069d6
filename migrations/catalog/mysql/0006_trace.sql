-- The trace of a call that is written down. Programs that do not know it leave it empty.

ALTER TABLE audit ADD COLUMN trace_id VARBINARY(32) NOT NULL DEFAULT '' COMMENT 'the trace of which the call is part, 32 hexadecimal digits; empty: none';
