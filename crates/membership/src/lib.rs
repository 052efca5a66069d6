//! A node's part in a cluster with a catalog: it joins, says that it lives, and learns which shards it is to
//! own.
//!
//! It does no I/O of its own, and starts no task elsewhere than with the engine's
//! [`Tasks`](forebay_engine::Tasks). The catalog is behind [`Catalog`](forebay_store::Catalog), the way to
//! other nodes behind [`ClusterLinks`], and the way to shards behind [`OpenShards`]. So the simulation can
//! run it.
//!
//! Nothing here must be right for data to be safe: the fence of a shard says who owns it. What is decided
//! here is who *should* own a shard, and how soon.

mod assign;
mod begin;
mod cluster_task;
mod duties;
mod follow;
mod followed;
mod join;
mod leave;
mod links;
mod member;
mod opening;
mod peer_reach;
#[cfg(not(feature = "planted-bugs"))]
mod planted;
#[cfg(feature = "planted-bugs")]
pub mod planted;
mod publish;
mod reach;
mod ready;
mod rival;
mod shared;
mod unowned;
mod until_answered;

pub use begin::{BeginError, Begun, begin};
pub use cluster_task::ClusterTask;
pub use followed::Followed;
pub use join::JoinError;
pub use links::ClusterLinks;
pub use member::Membership;
pub use opening::OpenShards;
pub use ready::is_ready_for;
pub use shared::{ClusterState, NodeState, Presence, ShardHome};
