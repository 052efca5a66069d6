//! Decisions of a node from the catalog: which nodes live, and which node should own which shard.
//!
//! Everything here is a value or a function of its arguments: no I/O, no tasks, no clock. Times are
//! [`Monotonic`](forebay_types::Monotonic), as the observing node read them. So the simulation can run it.
//!
//! Nothing that is decided here must be right for data to be safe: the fence of a shard says who owns it.

mod catalog_copy;
mod grey;
mod homes;
mod liveness;
mod observer;
mod plan;
#[cfg(test)]
mod testing;
mod view;

pub use catalog_copy::{Applied, CatalogCopy, Refused};
pub use grey::GreyNodes;
pub use homes::HomeAges;
pub use liveness::Liveness;
pub use observer::{Observer, Surroundings};
pub use plan::{
    FIRST_JOINERS_WAIT, JOINER_WAITS, MOVED_STAYS, MOVES_MAX, Move, NEW_HOME_STAYS, OUTVOTED_AFTER, Reason,
    changes, plan, weight,
};
pub use view::{ClusterView, NodeView, ShardView};
