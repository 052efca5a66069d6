//! The tests of the stores, of the engine and of clusters. They are one program, since each is linked with
//! all of it.

mod behind_rows;
mod catalog_locks;
mod changing_shards;
mod contract;
mod fairness;
mod first_come;
mod hundred_nodes;
mod idle_cost;
mod migration_cut;
mod odd_server;
mod odd_shards;
mod other_releases;
mod outage;
mod overdue;
mod pauses;
mod pauses_at_random;
mod payload;
mod per_server;
mod planted;
mod planted_cluster;
mod prepared_statements;
mod proxy;
mod read_ahead;
mod servers;
mod shard_log;
mod sick_shards;
mod simulation;
mod simulation_cluster;
mod tasks;
mod tls;
mod turns;
mod undelivered;
mod ways_out;
mod weights;
