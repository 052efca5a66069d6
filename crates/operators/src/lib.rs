//! Calls of operators: looks at all nodes, pauses and settings, changes of shards and nodes.
#![doc = include_str!("../README.md")]

pub mod calls;
pub mod cluster;
pub mod gather;
pub mod policies;
pub mod shard_reports;
pub mod shards;
pub mod status_cache;
