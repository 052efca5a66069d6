//! The remains of a shard that was lost.

use super::{
    OwnedShard,
    fair_queue::FairQueue,
    in_flight::Planned,
    lost_topics::LostTopics,
    work::{ChangeRequest, OrderRequest, SettleRequest, ShardEnqueue, ShardLease, Work},
};

/// Something that waited for a shard that was lost.
pub(crate) enum LostWork {
    /// The batch in flight was to do it.
    InFlight(Planned),
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
            Self::InFlight(Planned::Enqueue { part, .. }) | Self::Enqueue(part) => part.items.len(),
            _ => 1,
        }
    }
}

/// The remains of a shard that was lost, but for its topics.
pub(crate) struct Abandoned {
    /// The fence's epoch.
    pub epoch: u64,
    /// The work that waited for it, in the order in which it is answered.
    pub work: Box<dyn Iterator<Item = LostWork> + Send>,
}

impl OwnedShard {
    /// The shard is lost. Returns everything that waited for it, and its topics, which leave the node's
    /// directory in slices. There may be much of both, so it is not even gathered here.
    pub fn abandon(mut self) -> (Abandoned, LostTopics) {
        let in_flight = self.in_flight.take().map(|batch| batch.planned).unwrap_or_default();
        let settles = work_of(self.settles).chain(self.locates.take());
        let leases = work_of(self.leasing).chain(self.awaiting_bodies.into_values());
        let (waiting, looked_up) = (self.keys.take_waiting(), self.keys.take_lookups());
        let enqueues = work_of(self.enqueues).chain(waiting).chain(looked_up);
        let work = in_flight.into_iter().map(LostWork::InFlight);
        let work = work.chain(settles.map(LostWork::Settle));
        let orders = self.operations.take_orders().into_iter().map(LostWork::Order);
        let changes = self.changes.take().into_iter().map(LostWork::Change);
        let work = work.chain(orders).chain(changes);
        let work = work.chain(leases.map(LostWork::Lease)).chain(enqueues.map(LostWork::Enqueue));
        let abandoned = Abandoned { epoch: self.tenure.epoch, work: Box::new(work) };
        (abandoned, LostTopics::new(self.topics, self.leases))
    }
}

/// Everything that waits in a queue, one by one.
pub(super) fn work_of<T: Work>(mut queue: FairQueue<T>) -> impl Iterator<Item = T> {
    std::iter::from_fn(move || queue.pop(|_| true)).map(|turn| turn.work)
}
