//! The work that waits for the shard's next batch, and the budget and keys that it holds while it waits.

use std::time::Duration;

use forebay_types::{Body, Monotonic, Namespace, Reason, Receipt, Refusal, Seq, TopicId};
use rustc_hash::FxHashMap;

use crate::{
    api::{NackAction, RETRY_AFTER, Settings},
    shard::{
        OwnedShard,
        commit::in_flight::InFlight,
        work::{Full, ReservedItem, Restore, SettleKind, SettleRequest, ShardEnqueue, ShardLease},
    },
};

impl OwnedShard {
    /// Why so many bytes more of a tenant are not taken, if they are not.
    pub fn over_budget(&self, namespace: &str, bytes: usize, at: Monotonic) -> Option<Refusal> {
        self.intake.budget.refusal(self.id, &self.settings, namespace, bytes, at)
    }

    /// Whether items are taken at all, whoever brings them.
    pub fn takes_items(&self, at: Monotonic) -> bool {
        self.intake.budget.refusal(self.id, &self.settings, "", 1, at).is_none()
    }

    /// Bytes that wait for a batch.
    pub fn waiting_bytes(&self) -> usize {
        self.intake.budget.bytes()
    }

    /// Charges a tenant for bytes that will wait.
    pub fn charge(&mut self, namespace: &Namespace, bytes: usize) {
        self.intake.budget.charge(namespace, bytes);
    }

    /// Items wait for the next batch. They were charged, and their keys are held.
    pub fn enqueue(&mut self, part: ShardEnqueue) {
        self.commit.disk.set_fertile();
        self.intake.enqueues.push(part);
    }

    /// An enqueue has its answer: its charge and its keys are free again.
    pub fn free(&mut self, part: &ShardEnqueue) {
        self.intake.budget.release(&part.namespace, part.charge());
        self.intake.keys.release(&part.keys());
    }

    /// Nobody received a delivery: it is to be ended without a failure, and the item keeps its place. What is
    /// not open any more is left alone.
    pub fn release(&mut self, receipt: Receipt) {
        let Some(topic) = self.contents.leases.get(receipt.item.seq).map(|lease| lease.topic) else { return };
        let action = NackAction::Release(Duration::ZERO);
        let kind = SettleKind::Nack { action, metadata: None, reason: String::new() };
        self.settle(SettleRequest { namespace: self.namespace_of(topic), receipt, kind, slot: None });
    }

    /// A delivery is to be ended or extended, as a caller asks. The error says why the caller has to wait.
    pub fn ask_settle(&mut self, request: SettleRequest) -> Result<(), Box<(SettleRequest, Refusal)>> {
        // Its answer is on the way already: a caller that got none asks again.
        if matches!(request.kind, SettleKind::Ack)
            && let Some(InFlight { claims, planned, .. }) = &mut self.commit.in_flight
            && let Some(first) = claims.first_of(&request, planned)
        {
            first.repeats.push(request);
            return Ok(());
        }
        let Settings { admit_tenant_bytes, admit_shard_bytes, .. } = *self.settings;
        let whose = match self.intake.settles.full(&request, admit_tenant_bytes, admit_shard_bytes) {
            None => {
                self.settle(request);
                return Ok(());
            }
            Some(Full::Tenant) => " of this namespace",
            Some(Full::All) => "",
        };
        let message = format!("too many acks, nacks and extensions{whose} are waiting in shard {}", self.id);
        Err(Box::new((request, Refusal::new(Reason::Overloaded, message).retry_after(RETRY_AFTER))))
    }

    /// A delivery is to be ended or extended.
    pub fn settle(&mut self, request: SettleRequest) {
        self.commit.disk.set_fertile();
        self.intake.settles.push(request);
    }

    /// An at-most-once item that nobody received is to be inserted again.
    pub fn restore(&mut self, mut reserved: ReservedItem) {
        reserved.item.attributes.deliveries += 1;
        if let Some(topic) = self.contents.topics.get_mut(reserved.topic) {
            topic.restores += 1;
        }
        let restore = self.restore_of(reserved);
        self.commit.disk.set_fertile();
        self.intake.restores.push(restore);
    }

    /// An item is inserted again, or can't be. Until then its topic was kept.
    pub(in crate::shard) fn end_restore(&mut self, topic: TopicId) {
        if let Some(topic) = self.contents.topics.get_mut(topic) {
            topic.restores -= 1;
        }
    }

    /// An item that is to be inserted again, with its tenant.
    pub(in crate::shard) fn restore_of(&self, reserved: ReservedItem) -> Restore {
        Restore { namespace: self.namespace_of(reserved.topic), reserved }
    }

    /// Reserved items wait for their lease. Returns the items whose bodies have to be read first, by the read
    /// `read`.
    pub fn lease(&mut self, part: ShardLease, read: u64) -> Vec<Seq> {
        let bodyless = part.items.iter().filter(|reserved| reserved.item.body.is_none());
        let missing: Vec<Seq> = bodyless.map(|reserved| reserved.key.seq).collect();
        if missing.is_empty() {
            self.commit.disk.set_fertile();
            self.intake.leasing.push(part);
        } else {
            self.intake.awaiting_bodies.insert(read, part);
        }
        missing
    }

    /// Bodies were read; `None` if that failed. An item that is not in the store leaves the ready index: the
    /// lease is made without it. Returns the lease if it can't be made: the read failed, or nothing is left.
    pub fn bodies_read(
        &mut self,
        read: u64,
        bodies: Option<Vec<(Seq, Body)>>,
        at: Monotonic,
    ) -> Option<ShardLease> {
        let mut part = self.intake.awaiting_bodies.remove(&read)?;
        let Some(bodies) = bodies else { return Some(part) };
        let mut bodies: FxHashMap<Seq, Body> = bodies.into_iter().collect();
        for reserved in part.items.iter_mut().filter(|reserved| reserved.item.body.is_none()) {
            reserved.item.body = bodies.remove(&reserved.key.seq);
        }
        let vanished = part.items.extract_if(.., |reserved| reserved.item.body.is_none());
        let vanished: Vec<ReservedItem> = vanished.collect();
        vanished.iter().for_each(|reserved| self.has_vanished(reserved, at));
        if part.items.is_empty() {
            return Some(part);
        }
        self.commit.disk.set_fertile();
        self.intake.leasing.push(part);
        None
    }

    /// About what the next batch takes of the enqueues that wait.
    pub fn next_enqueues(&self) -> impl Iterator<Item = &ShardEnqueue> {
        self.intake.enqueues.next(self.settings.batch_rows)
    }

    /// Items that wait or are in flight: the longest queue comes last in a topic's choice of shards.
    pub fn backlog(&self) -> usize {
        self.intake.enqueues.sum().rows + self.commit.in_flight.as_ref().map_or(0, |batch| batch.rows)
    }

    /// Rows that callers wait for, at least.
    pub fn waiting_rows(&self) -> usize {
        self.intake.settles.sum().rows + self.intake.leasing.sum().rows + self.intake.enqueues.sum().rows
    }

    /// Whether the waiting work fills a batch of `rows` rows, or one of as many bytes as a batch may carry.
    pub fn fills_a_batch(&self, rows: usize) -> bool {
        rows >= self.settings.batch_rows || self.intake.budget.bytes() >= self.tenure.batch_bytes
    }

    /// Nothing waits and nothing is in flight.
    pub fn is_idle(&self) -> bool {
        self.commit.in_flight.is_none()
            && self.intake.settles.is_empty()
            && self.intake.leasing.is_empty()
            && self.intake.awaiting_bodies.is_empty()
            && self.intake.enqueues.is_empty()
            && self.intake.restores.is_empty()
            && self.intake.keys.is_idle()
            && self.intake.locates.is_idle()
            && self.upkeep.operations.orders() == 0
            && self.intake.changes.is_idle()
    }
}
