//! A node's part in a cluster with a catalog.
#![doc = include_str!("../README.md")]

mod assign;
mod begin;
mod cluster_task;
mod duties;
mod enter;
mod follow;
mod followed;
mod join;
mod leave;
mod links;
mod living;
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

pub use begin::{BeginError, InitialCatalog, begin};
pub use cluster_task::ClusterTask;
pub use followed::EngineShards;
pub use join::JoinError;
pub use links::ClusterLinks;
pub use living::living_nodes;
pub use member::Membership;
pub use opening::OpenShards;
pub use ready::is_ready_for;
pub use shared::{ClusterState, NodeState, Presence, ShardHome};
