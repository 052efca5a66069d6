//! Open deliveries, and the items on their way to one: these leave the ready index, or return to it.

use forebay_store::LeaseEntry;
use forebay_types::{Key, Monotonic, Namespace, Reason, Receipt, Refusal, Seq, Timestamp, TopicId};

use crate::{
    api::{RETRY_AFTER, Settings},
    clock::Moment,
    planted::{Bug, on},
    shard::{
        OwnedShard,
        commit::disk_room::{Need, disk_full},
        work::{LEASE_BYTES, ReadyItem, ReservedItem},
    },
};

/// A limit on leases.
struct Limit {
    /// The items or bytes that count against it.
    held: usize,
    /// The most that may.
    most: usize,
    /// The scope of the limit, for the message.
    whose: &'static str,
}

impl Limit {
    /// How much more it allows.
    fn room(&self) -> usize {
        self.most.saturating_sub(self.held)
    }
}

impl OwnedShard {
    /// Whether an item is out in a delivery.
    pub fn is_leased(&self, seq: Seq) -> bool {
        self.contents.leases.get(seq).is_some()
    }

    /// Whether an item of a tenant is out in a delivery.
    pub fn is_leased_in(&self, namespace: &Namespace, seq: Seq) -> bool {
        self.contents.leases.get(seq).is_some_and(|lease| self.namespace_of(lease.topic) == *namespace)
    }

    /// Whether an item is leased, or on its way to a lease.
    pub fn is_out(&self, seq: Seq) -> bool {
        self.is_leased(seq) || self.contents.reserved.contains(&seq)
    }

    /// The open delivery of an item.
    pub fn lease_of(&self, seq: Seq) -> Option<LeaseEntry> {
        self.contents.leases.find(seq).map(|found| self.contents.leases.as_of_now(found))
    }

    /// Open deliveries and their ends, by these, behind one of them.
    pub fn leases_behind(&self, after: (Timestamp, Seq)) -> impl Iterator<Item = (Timestamp, &LeaseEntry)> {
        self.contents.leases.behind(after)
    }

    /// Whether the delivery that a receipt names is open.
    pub fn is_open(&self, receipt: &Receipt) -> bool {
        self.contents.leases.get(receipt.item.seq).is_some_and(|lease| lease.nonce == receipt.nonce)
    }

    /// The best deliverable item of a topic, as far as it is known, and the bytes of its body. Expired items
    /// leave the window; the expiry sweep takes them out of the store.
    pub fn head(&mut self, topic: TopicId, node: Moment) -> Option<(Key, usize)> {
        let now = self.tenure.time.moment(node).now;
        loop {
            let (key, item) = self.contents.topics.get(topic)?.window().first()?;
            if !item.is_expired(now) {
                return Some((key, item.bytes as usize));
            }
            self.contents.topics.with_window(topic, |window| window.pop());
        }
    }

    /// Why no `more` items of a topic can be leased, if so: a full disk, the limits on leased items of the
    /// topic, its tenant and the shard, and on bytes of items that are on their way to a lease, or back into
    /// the store.
    pub fn lease_refusal(&self, topic: TopicId, more: usize, at: Monotonic) -> Option<Refusal> {
        let state = self.contents.topics.get(topic)?;
        let of_topic = self.contents.leases.of_topic(topic) + state.reserved as usize;
        self.lease_refusal_of(&state.name.namespace, of_topic, more, at)
    }

    /// The same for a topic that is new to the shard.
    pub fn new_topic_lease_refusal(&self, namespace: &str, more: usize, at: Monotonic) -> Option<Refusal> {
        self.lease_refusal_of(namespace, 0, more, at)
    }

    /// How many items of a topic can be leased at least, once [`OwnedShard::lease_refusal`] allows one. To
    /// ask for each item would cost more than to lease it.
    pub fn lease_room(&self, topic: TopicId) -> usize {
        let Some(state) = self.contents.topics.get(topic) else { return 0 };
        let of_topic = self.contents.leases.of_topic(topic) + state.reserved as usize;
        let (items, bytes) = self.lease_limits(&state.name.namespace, of_topic);
        let most_bytes = self.settings.limits.body_bytes() + LEASE_BYTES;
        let items = items.iter().map(Limit::room);
        let bytes = bytes.iter().map(|limit| limit.room() / most_bytes);
        items.chain(bytes).min().unwrap_or_default()
    }

    /// Of a topic with so many leased and reserved items.
    fn lease_refusal_of(
        &self,
        namespace: &str,
        of_topic: usize,
        more: usize,
        at: Monotonic,
    ) -> Option<Refusal> {
        if self.commit.disk.allowed(at) < Some(Need::Rows) {
            return Some(disk_full(self.id));
        }
        let (items, bytes) = self.lease_limits(namespace, of_topic);
        let reached = items.into_iter().find(|limit| limit.held + more > limit.most);
        if let Some(Limit { most, whose, .. }) = reached.filter(|_| !on(Bug::NoLeaseLimit)) {
            let message = format!(
                "{most} items {whose} are leased in shard {}, which is the limit: ack some, or wait",
                self.id
            );
            return Some(Refusal::new(Reason::TooManyLeased, message).retry_after(RETRY_AFTER));
        }
        let Limit { most, whose, .. } = bytes.into_iter().find(|limit| limit.held >= limit.most)?;
        let message = format!(
            "{most} bytes of items {whose} are about to be delivered from shard {}, or to be stored again",
            self.id
        );
        Some(Refusal::new(Reason::Overloaded, message).retry_after(RETRY_AFTER))
    }

    /// The limits on items that are leased or reserved, of a topic with so many of them, and those on bytes
    /// of items that are on their way to a lease, or back into the store.
    fn lease_limits(&self, namespace: &str, of_topic: usize) -> ([Limit; 3], [Limit; 2]) {
        let Settings { limits, admit_shard_bytes, .. } = &*self.settings;
        let tenant = self.contents.tenants.of(namespace);
        let of_tenant = tenant.leased + tenant.reserved;
        let of_shard = self.contents.leases.len() + self.contents.reserved.len();
        let items = [
            Limit { held: of_topic, most: limits.leased_per_topic, whose: "of the topic" },
            Limit { held: of_tenant, most: limits.leased_per_tenant, whose: "of the namespace" },
            Limit { held: of_shard, most: limits.leased_per_shard, whose: "of all namespaces" },
        ];
        // An answer of the greatest size is always possible.
        let most = limits.answer_bytes_max.max(*admit_shard_bytes);
        // Items that nobody received wait for room on the disk, however long that takes. No more comes to it.
        let of_tenant = tenant.reserved_bytes + self.intake.restores.bytes_of(namespace);
        let of_shard = self.contents.tenants.reserved_bytes() + self.intake.restores.sum().bytes;
        let bytes = [
            Limit { held: of_tenant, most, whose: "of the namespace" },
            Limit { held: of_shard, most: 2 * most, whose: "of all namespaces" },
        ];
        (items, bytes)
    }

    /// Reserves the head: it leaves its window.
    pub fn reserve(&mut self, topic: TopicId) -> Option<(Key, ReadyItem)> {
        let (key, item) = self.contents.topics.with_window(topic, |window| window.pop()).flatten()?;
        if !on(Bug::ReservedForgotten) {
            self.contents.reserved.insert(key.seq);
        }
        if let Some(topic) = self.contents.topics.get_mut(topic) {
            topic.reserved += 1;
            self.contents.tenants.reserved(&topic.name.namespace, item.bytes);
        }
        Some((key, item))
    }

    /// Puts reserved items back where they were.
    pub fn unreserve(&mut self, items: Vec<ReservedItem>) {
        for ReservedItem { topic, key, item, .. } in items {
            self.clear_reservation(topic, key.seq, item.bytes);
            self.contents.topics.with_window(topic, |window| window.add(key, item));
        }
    }

    /// An item is reserved no more. `bytes`: those of its body.
    pub(in crate::shard) fn clear_reservation(&mut self, topic: TopicId, seq: Seq, bytes: u32) {
        if self.contents.reserved.remove(&seq)
            && let Some(topic) = self.contents.topics.get_mut(topic)
        {
            topic.reserved -= 1;
            self.contents.tenants.unreserved(&topic.name.namespace, bytes);
        }
    }
}
