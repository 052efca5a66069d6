//! What must hold in a shard's memory between two batches. Debug builds check it after every batch, so the
//! simulation does too.

use std::collections::HashSet;

use forebay_types::Seq;

use super::{
    OwnedShard,
    in_flight::{InFlight, Planned},
    work::{KeyHash, ShardEnqueue, ShardLease},
};
use crate::planted;

impl OwnedShard {
    /// Checks that every account agrees with what it counts. The error says what does not.
    pub fn check(&self) -> Result<(), String> {
        // A planted bug is for the simulation's checker to find.
        if planted::any() {
            return Ok(());
        }
        self.check_index()?;
        self.leases.check()?;
        self.check_reserved()?;
        self.check_enqueues()
    }

    /// Panics where [`OwnedShard::check`] finds something, in debug builds.
    pub(super) fn debug_check(&self) {
        #[cfg(debug_assertions)]
        if let Err(what) = self.check() {
            panic!("shard {}: {what}", self.id);
        }
    }

    /// Bytes of the index are the sum over all windows, and no window holds an item that is out.
    fn check_index(&self) -> Result<(), String> {
        let is_out = |seq: Seq| self.leases.get(seq).is_some() || self.reserved.contains(&seq);
        let mut bytes = 0;
        for (_, topic) in self.topics.iter() {
            topic.window().check(is_out).map_err(|what| format!("{:?}: {what}", topic.name))?;
            bytes += topic.window().cost();
        }
        match bytes == self.topics.index_bytes() {
            true => Ok(()),
            false => Err(format!("windows hold {bytes} bytes, not {}", self.topics.index_bytes())),
        }
    }

    /// Reserved items are those that wait for a lease or are in the batch that leases them.
    fn check_reserved(&self) -> Result<(), String> {
        let in_flight = self.in_flight.iter().flat_map(|batch: &InFlight| &batch.planned);
        let in_flight = in_flight.filter_map(|planned| match planned {
            Planned::Lease { part, .. } => Some(part),
            _ => None,
        });
        let parts = self.leasing.iter().chain(self.awaiting_bodies.values()).chain(in_flight);
        let out: usize = parts.map(|part: &ShardLease| part.items.len()).sum();
        let topics: usize = self.topics.iter().map(|(_, topic)| topic.reserved).sum();
        match out == self.reserved.len() && topics == out {
            true => Ok(()),
            false => Err(format!(
                "{out} items are on their way to a lease; reserved {}, topics {topics}",
                self.reserved.len()
            )),
        }
    }

    /// Keys in flight and charges are those of the enqueues that wait, are looked up or are in flight.
    fn check_enqueues(&self) -> Result<(), String> {
        let in_flight = self.in_flight.iter().flat_map(|batch| &batch.planned);
        let in_flight = in_flight.filter_map(|planned| match planned {
            Planned::Enqueue { part, .. } => Some(part),
            _ => None,
        });
        let holding: Vec<&ShardEnqueue> =
            self.enqueues.iter().chain(self.keys.looked_up()).chain(in_flight).collect();
        let keys: HashSet<KeyHash> = holding.iter().flat_map(|part| part.keys()).collect();
        if keys.len() != self.keys.in_flight_count() || !keys.iter().all(|key| self.keys.is_held(&[*key])) {
            return Err(format!("{} keys wait, {} are in flight", keys.len(), self.keys.in_flight_count()));
        }
        let charged = holding.into_iter().chain(self.keys.waiting()).map(ShardEnqueue::charge).sum();
        self.budget.check(charged)
    }
}
