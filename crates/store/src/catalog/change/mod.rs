//! The changes of a catalog. Each begins with the cluster's row, which all of them lock: so they come one
//! after the other, and none waits for another in a circle.

mod assignment;
mod named_rows;
mod nodes;
mod policies;
mod remove_policies;
mod settings;
mod shards;

pub(super) use assignment::Assign;
pub(super) use nodes::{Join, Leave, SendBeat, SetDraining};
pub(super) use policies::PutPolicy;
pub(super) use remove_policies::RemovePolicies;
pub(super) use settings::{PutAllSettings, PutSettings};
pub(super) use shards::{AddShard, RemoveShard, SetShardState, SetShardUrl};
