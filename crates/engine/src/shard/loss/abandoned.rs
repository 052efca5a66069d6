//! The remains of a shard that was lost.

use crate::shard::{
    commit::in_flight::PlannedAction,
    work::{ChangeRequest, OrderRequest, SettleRequest, ShardEnqueue, ShardLease},
};

/// Something that waited for a shard that was lost.
pub(crate) enum LostWork {
    /// The batch in flight was to do it.
    InFlight(PlannedAction),
    /// A settlement that waited for a batch, or for an item's location.
    Settle(SettleRequest),
    /// A lease that waited.
    Lease(ShardLease),
    /// Items that waited for a batch, or for a key.
    Enqueue(ShardEnqueue),
    /// An order that waited.
    Order(OrderRequest),
    /// A change of an item that waited.
    Change(ChangeRequest),
}

impl LostWork {
    /// Members of calls that it answers, about.
    pub fn members(&self) -> usize {
        match self {
            Self::InFlight(PlannedAction::Enqueue { part, .. }) | Self::Enqueue(part) => part.items.len(),
            _ => 1,
        }
    }
}

/// The remains of a shard that was lost, but for its topics.
pub(crate) struct LostShardWork {
    /// The fence's epoch.
    pub epoch: u64,
    /// The work that waited for it, in the order in which it is answered.
    pub work: Box<dyn Iterator<Item = LostWork> + Send>,
}
