//! The cluster with a catalog: how this program reaches it, and what operators change in it. What a node does
//! in it is in the crate `forebay-membership`.

mod alone;
mod begin;
mod catalog;
mod joining;
mod migrate;
mod opening;
mod operate;
mod operate_shards;
mod operator;

pub(crate) use alone::alone;
pub(crate) use begin::begin;
pub(crate) use catalog::shard_config;
pub use joining::JoiningError;
pub(crate) use joining::{Joining, Member};
pub use migrate::{CatalogMigrateError, CatalogMigrated, migrate};
pub(crate) use opening::CatalogShards;
pub use operate::{OperateError, bootstrap, drain_node, pin};
pub use operate_shards::{HoldUp, Servers, ShardsError, add_shard, drain_shard, remove_shard};
pub(crate) use operator::Operator;
