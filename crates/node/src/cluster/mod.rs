//! A node's part in a cluster with a catalog: it joins, says that it lives, and learns which shards it is to
//! own.
//!
//! Nothing here must be right for data to be safe: the fence of a shard says who owns it. What is decided
//! here is who *should* own a shard, and how soon.

mod assign;
mod begin;
mod duties;
mod follow;
mod followed;
mod join;
mod joining;
mod membership;
mod migrate;
mod operate;
mod operate_shards;
mod peer_reach;
mod publish;
mod reach;
mod shared;
mod unowned;
mod until_answered;

pub use begin::BeginError;
pub(crate) use begin::{Begun, begin};
pub(crate) use followed::Followed;
pub use join::JoinError;
pub use joining::JoiningError;
pub(crate) use joining::{Joining, Member};
pub use migrate::{CatalogMigrateError, CatalogMigrated, migrate};
pub use operate::{OperateError, drain_node, pin};
pub use operate_shards::{HoldUp, ShardsError, add_shard, drain_shard, remove_shard};
pub use shared::{ClusterState, NodeState, Presence, ShardHome};
