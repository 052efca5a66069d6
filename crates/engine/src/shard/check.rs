//! Invariants of a shard's memory. Debug builds check them when a batch is built and when it is resolved, so
//! the simulation does too.

use forebay_types::{Namespace, Seq, TopicId};
use rustc_hash::FxHashMap;

use super::{
    OwnedShard,
    commit::in_flight::PlannedAction,
    contents::{leases::tenants::TenantItems, topics::state::TopicState},
    work::{KeyHash, LEASE_BYTES, ShardEnqueue},
};
use crate::planted;

/// Shards with more topics are not checked after each batch.
const CHECKED_TOPICS_MAX: usize = 2_000;

impl OwnedShard {
    /// Checks that every account agrees with what it counts. The error says what does not.
    pub fn check(&self) -> Result<(), String> {
        // A planted bug is for the simulation's checker to find.
        if planted::any() {
            return Ok(());
        }
        self.check_index()?;
        self.contents.leases.check()?;
        self.check_reserved()?;
        self.check_restores()?;
        self.check_topics()?;
        self.check_enqueues()?;
        self.intake.settles.check()?;
        self.intake.leasing.check()?;
        self.intake.restores.check()?;
        self.intake.enqueues.check()?;
        self.upkeep.sweeps.check()?;
        self.upkeep.operations.check()
    }

    /// Panics where [`OwnedShard::check`] finds something, in debug builds. It looks at every topic, so a
    /// test with very many goes without.
    pub(super) fn debug_check(&self) {
        if cfg!(debug_assertions)
            && self.contents.topics.len() <= CHECKED_TOPICS_MAX
            && let Err(what) = self.check()
        {
            panic!("shard {}: {what}", self.id);
        }
    }

    /// Bytes of the index are the sum over all windows, and no window holds an item that is out.
    fn check_index(&self) -> Result<(), String> {
        let is_out =
            |seq: Seq| self.contents.leases.get(seq).is_some() || self.contents.reserved.contains(&seq);
        let mut bytes = 0;
        for (_, topic) in self.contents.topics.iter() {
            topic.window().check(is_out).map_err(|what| format!("{:?}: {what}", topic.name))?;
            bytes += topic.window().cost();
        }
        match bytes == self.contents.topics.index_bytes() {
            true => Ok(()),
            false => Err(format!("windows hold {bytes} bytes, not {}", self.contents.topics.index_bytes())),
        }
    }

    /// Reserved items are those that wait for a lease or are in the batch that leases them.
    fn check_reserved(&self) -> Result<(), String> {
        let in_flight = self.planned().filter_map(|planned| match planned {
            PlannedAction::Lease { part, .. } => Some(part),
            _ => None,
        });
        let leases = self.intake.leasing.iter().chain(self.intake.awaiting_bodies.values()).chain(in_flight);
        let mut per_topic: FxHashMap<TopicId, u32> = FxHashMap::default();
        let mut held: FxHashMap<Namespace, TenantItems> = FxHashMap::default();
        for (id, topic) in
            self.contents.topics.iter().filter(|(id, _)| self.contents.leases.of_topic(*id) > 0)
        {
            held.entry(topic.name.namespace.clone()).or_default().leased += self.contents.leases.of_topic(id);
        }
        let mut out = 0;
        for reserved in leases.flat_map(|lease| &lease.items) {
            out += 1;
            *per_topic.entry(reserved.topic).or_default() += 1;
            let of_tenant = held.entry(self.namespace_of(reserved.topic)).or_default();
            of_tenant.reserved += 1;
            of_tenant.reserved_bytes += reserved.item.bytes as usize + LEASE_BYTES;
            if !self.contents.reserved.contains(&reserved.key.seq) {
                return Err(format!("{:?} is on its way to a lease and not reserved", reserved.key));
            }
        }
        let wrong =
            |(id, topic): &(TopicId, &TopicState)| topic.reserved != per_topic.get(id).copied().unwrap_or(0);
        if out != self.contents.reserved.len() || self.contents.topics.iter().any(|topic| wrong(&topic)) {
            let topics: usize = self.contents.topics.iter().map(|(_, topic)| topic.reserved as usize).sum();
            let reserved = self.contents.reserved.len();
            return Err(format!(
                "{out} items are on their way to a lease; reserved {reserved}, topics {topics}"
            ));
        }
        self.contents.tenants.check(&held)
    }

    /// An item that is to be inserted again is neither leased nor reserved, and its topic knows of it.
    fn check_restores(&self) -> Result<(), String> {
        let waiting = || self.intake.restores.iter().map(|restore| &restore.reserved);
        let is_out =
            |seq: Seq| self.contents.leases.get(seq).is_some() || self.contents.reserved.contains(&seq);
        if let Some(restored) = waiting().find(|restored| is_out(restored.key.seq)) {
            return Err(format!("{:?} is to be inserted again, and is out", restored.key));
        }
        let in_flight = self.planned().filter_map(|planned| match planned {
            PlannedAction::Restore(reserved) => Some(&**reserved),
            _ => None,
        });
        let mut per_topic: FxHashMap<TopicId, u32> = FxHashMap::default();
        for restored in waiting().chain(in_flight) {
            *per_topic.entry(restored.topic).or_default() += 1;
        }
        let counted = self.contents.topics.iter().filter(|(_, topic)| topic.restores > 0);
        let counted: FxHashMap<TopicId, u32> = counted.map(|(id, topic)| (id, topic.restores)).collect();
        match per_topic == counted {
            true => Ok(()),
            false => Err(format!("{per_topic:?} are to be inserted again, topics say {counted:?}")),
        }
    }

    /// Names and numbers of topics agree, the topics to be folded are in order, and reads under way are
    /// counted.
    fn check_topics(&self) -> Result<(), String> {
        self.contents.topics.check()?;
        let reading = self.contents.topics.iter().filter(|(_, topic)| topic.window().is_reading()).count();
        match reading == self.contents.prefetches.under_way() {
            true => Ok(()),
            false => Err(format!(
                "{reading} windows are read, {} reads are counted",
                self.contents.prefetches.under_way()
            )),
        }
    }

    /// Keys in flight and charges are those of the enqueues that wait, are looked up or are in flight.
    fn check_enqueues(&self) -> Result<(), String> {
        let in_flight = self.planned().filter_map(|planned| match planned {
            PlannedAction::Enqueue { part, .. } => Some(part),
            _ => None,
        });
        let holding: Vec<&ShardEnqueue> =
            self.intake.enqueues.iter().chain(self.intake.keys.looked_up()).chain(in_flight).collect();
        let keys: Vec<KeyHash> = holding.iter().flat_map(|part| part.keys()).collect();
        if let Some(key) = keys.iter().find(|key| self.intake.keys.held(&[**key]).is_none()) {
            return Err(format!("key {key:x?} waits and is not in flight"));
        }
        if keys.len() != self.intake.keys.in_flight_count() {
            return Err(format!(
                "{} keys wait, {} are in flight",
                keys.len(),
                self.intake.keys.in_flight_count()
            ));
        }
        self.intake.keys.check()?;
        let charged = holding.into_iter().chain(self.intake.keys.waiting()).map(ShardEnqueue::charge).sum();
        self.intake.budget.check(charged)
    }

    /// The work that the batch in flight does.
    fn planned(&self) -> impl Iterator<Item = &PlannedAction> {
        self.commit.in_flight.iter().flat_map(|batch| &batch.planned)
    }
}
