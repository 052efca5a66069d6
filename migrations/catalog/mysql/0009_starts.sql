-- When the process of a node was started. Programs that do not know these columns leave what the process before
-- has written, so that they say whose start it is.

ALTER TABLE node ADD COLUMN started_at BIGINT NULL COMMENT 'when the process started_as was started, in microseconds since the Unix epoch';

ALTER TABLE node ADD COLUMN started_as BINARY(16) NULL COMMENT 'the incarnation of that process; another one than node.incarnation: the start is not known';
