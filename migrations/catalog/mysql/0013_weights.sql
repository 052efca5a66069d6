-- Weights of topics and namespaces. Programs that do not know them leave them as they are.

ALTER TABLE setting ADD COLUMN weight BIGINT NULL COMMENT 'turns among the topics of a prefix; of a namespace: among namespaces; NULL: 1';
