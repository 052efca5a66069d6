-- The tables of a cluster's catalog: its shards, its nodes, and which node should own which shard. There are no
-- times in it: every node judges by its own clock. Names are bytes and compare as bytes.
-- Every statement can run again: in MySQL each one commits on its own, so a migration can stop half way.

CREATE TABLE IF NOT EXISTS cluster (
    id TINYINT NOT NULL COMMENT 'always 1',
    cluster BINARY(16) NOT NULL COMMENT 'random, the same in all shards of the cluster',
    shards_version BIGINT NOT NULL COMMENT 'incremented with every change of table shard',
    nodes_version BIGINT NOT NULL COMMENT 'incremented with every change of table node other than a beat',
    assignment_version BIGINT NOT NULL COMMENT 'incremented with every change of table assignment, by compare-and-set',
    last_shard INT UNSIGNED NOT NULL COMMENT 'highest shard.id so far; the next new shard gets a higher one',
    PRIMARY KEY (id)
) ENGINE=InnoDB COMMENT='one row; every change of the catalog other than a beat begins with it';

CREATE TABLE IF NOT EXISTS shard (
    id INT UNSIGNED NOT NULL COMMENT 'number of the shard, as in its own table identity',
    url VARBINARY(700) NOT NULL COMMENT 'where it is, without a password',
    state TINYINT NOT NULL COMMENT '0 active, 1 draining, 2 offline',
    PRIMARY KEY (id),
    UNIQUE KEY url (url)
) ENGINE=InnoDB COMMENT='the shards of the cluster';

CREATE TABLE IF NOT EXISTS node (
    name VARBINARY(100) NOT NULL COMMENT 'name of the node in its configuration',
    incarnation BINARY(16) NOT NULL COMMENT 'random name of the process that joined last under this name',
    peer_address VARBINARY(255) NOT NULL COMMENT 'host:port for other nodes',
    clients_address VARBINARY(255) NOT NULL COMMENT 'host:port for clients',
    http_address VARBINARY(255) NOT NULL COMMENT 'host:port of health, metrics and status',
    program_release VARBINARY(64) NOT NULL COMMENT 'version of the program, as text',
    format INT UNSIGNED NOT NULL COMMENT 'newest stored format that the program can read',
    draining TINYINT NOT NULL COMMENT '1: the node should own no shard',
    beats BIGINT NOT NULL COMMENT 'incremented by the node while it lives; never reset while the row exists',
    servers MEDIUMBLOB NOT NULL COMMENT 'packed: list of the database servers that the node reaches',
    unreachable MEDIUMBLOB NOT NULL COMMENT 'packed: list of the nodes that the node does not reach',
    PRIMARY KEY (name)
) ENGINE=InnoDB COMMENT='the nodes that have joined and not left';

CREATE TABLE IF NOT EXISTS assignment (
    shard INT UNSIGNED NOT NULL COMMENT 'shard.id',
    node VARBINARY(100) NOT NULL COMMENT 'node.name of the node that should own the shard; the node may be gone',
    pinned TINYINT NOT NULL COMMENT '1: an operator chose the node, and it stays while it can',
    PRIMARY KEY (shard)
) ENGINE=InnoDB COMMENT='which node should own which shard; the fence in the shard says which one does';
