//! The cluster: how this program reaches its catalog, and what operators change in it. What a node does in it
//! is in the crate `forebay-membership`.

mod begin;
mod catalog;
mod copy_file;
mod joining;
mod migrate;
mod opening;
mod operate;
mod operate_shards;
mod operator;

pub use begin::begin;
pub use catalog::shard_config;
pub use copy_file::{CopyFile, NoFolder, keep_copy};
pub use joining::JoiningError;
pub use joining::{JoiningNode, Member};
pub use migrate::{CatalogMigrateError, CatalogMigration, ShardMismatch, migrate};
pub use migrate::{make_missing, misplaced};
pub use opening::CatalogShards;
pub use operate::{OperateError, bootstrap, drain_node, pin};
pub use operate_shards::{HoldUp, Servers, ShardsError, add_shard, drain_shard, remove_shard};
pub use operator::Operator;
