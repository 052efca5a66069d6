//! Decisions of a node from the catalog: which nodes live, and which node should own which shard.
#![doc = include_str!("../README.md")]

mod catalog_copy;
mod grey;
mod homes;
mod liveness;
mod observer;
mod plan;
#[cfg(test)]
mod testing;
mod view;

pub use catalog_copy::{ApplyOutcome, CatalogCopy, CopyRefusal};
pub use grey::GreyNodes;
pub use homes::HomeAges;
pub use liveness::Liveness;
pub use observer::{Observer, Surroundings};
pub use plan::{
    FIRST_JOINERS_WAIT, JOINER_WAITS, MOVED_STAYS, MOVES_MAX, Move, NEW_HOME_STAYS, OUTVOTED_AFTER, Reason,
    changes, plan, weight,
};
pub use view::{ClusterView, NodeView, ShardView};
