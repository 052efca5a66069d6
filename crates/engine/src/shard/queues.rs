//! What waits for the shard's next batch, and what it holds while it waits.

use std::collections::VecDeque;

use forebay_store::{DueRow, Sweep};
use forebay_types::{Body, ItemId, Monotonic, Namespace, Refusal, Seq, Timestamp};
use rustc_hash::FxHashMap;

use super::{
    OwnedShard,
    in_flight::{Leased, Planned},
    work::{KeyHash, ReservedItem, SettleRequest, ShardEnqueue, ShardLease},
};

impl OwnedShard {
    /// Why so many bytes more of a tenant are not taken, if they are not.
    pub fn over_budget(&self, namespace: &str, bytes: usize, at: Monotonic) -> Option<Refusal> {
        self.budget.refusal(self.id, &self.settings, namespace, bytes, at)
    }

    /// Charges a tenant for bytes that will wait.
    pub fn charge(&mut self, namespace: &Namespace, bytes: usize) {
        self.budget.charge(namespace, bytes);
    }

    /// Items wait for the next batch. They were charged, and their keys are held.
    pub fn enqueue(&mut self, part: ShardEnqueue) {
        self.enqueues.push(part);
    }

    /// An enqueue has its answer: its charge and its keys are free again. Returns whether others may have
    /// waited for one of the keys.
    pub fn release(&mut self, part: &ShardEnqueue) -> bool {
        self.budget.release(&part.namespace, part.charge());
        self.keys.release(&part.keys())
    }

    /// A delivery is to be ended or extended.
    pub fn settle(&mut self, request: SettleRequest) {
        self.settles.push_back(request);
    }

    /// An at-most-once item that nobody received is to be inserted again.
    pub fn restore(&mut self, mut reserved: ReservedItem) {
        reserved.item.attributes.deliveries += 1;
        self.restores.push(reserved);
    }

    /// Reserved items wait for their lease. Returns the items whose bodies have to be read first, by the read
    /// `read`.
    pub fn lease(&mut self, part: ShardLease, read: u64) -> Vec<Seq> {
        let bodyless = part.items.iter().filter(|reserved| reserved.item.body.is_none());
        let missing: Vec<Seq> = bodyless.map(|reserved| reserved.key.seq).collect();
        if missing.is_empty() {
            self.leasing.push_back(part);
        } else {
            self.awaiting_bodies.insert(read, part);
        }
        missing
    }

    /// Bodies were read; `None` if that failed. Returns the lease that can't be made, if so.
    pub fn bodies_read(&mut self, read: u64, bodies: Option<Vec<(Seq, Body)>>) -> Option<ShardLease> {
        let mut part = self.awaiting_bodies.remove(&read)?;
        let Some(bodies) = bodies else { return Some(part) };
        let mut bodies: FxHashMap<Seq, Body> = bodies.into_iter().collect();
        for reserved in part.items.iter_mut().filter(|reserved| reserved.item.body.is_none()) {
            reserved.item.body = bodies.remove(&reserved.key.seq);
        }
        if let Some(missing) = part.items.iter().find(|reserved| reserved.item.body.is_none()) {
            let item = ItemId { shard: self.id, seq: missing.key.seq };
            tracing::error!(
                shard.id = self.id.0,
                %item,
                "item {item} is in the ready index but not in the store; restart the node"
            );
            return Some(part);
        }
        self.leasing.push_back(part);
        None
    }

    /// An enqueue waits until another one releases a key, or until a generation takes keys.
    pub fn wait_for_keys(&mut self, part: ShardEnqueue) {
        self.keys.wait(part);
    }

    /// Takes the enqueues that wait for keys: they try again.
    pub fn take_waiting_for_keys(&mut self) -> VecDeque<ShardEnqueue> {
        self.keys.take_waiting()
    }

    /// These keys are in flight from now on.
    pub fn hold_keys(&mut self, keys: &[KeyHash]) {
        self.keys.hold(keys);
    }

    /// An enqueue's keys, which are held, are looked up by the read `read`.
    pub fn begin_lookup(&mut self, read: u64, part: ShardEnqueue) {
        self.keys.begin_lookup(read, part);
    }

    /// Whether an enqueue with these keys has to wait: another one holds one of them, or no generation takes
    /// keys yet.
    pub fn must_wait_for_keys(&self, keys: &[KeyHash], node_now: Timestamp) -> bool {
        self.keys.is_held(keys) || self.generations.current(self.key_time(node_now)).is_none()
    }

    /// The generations of the dedupe table, oldest first.
    pub fn generations(&self) -> Vec<u64> {
        self.generations.live().to_vec()
    }

    /// A change of generations ended; `None` if it failed.
    pub fn generations_changed(&mut self, live: Option<Vec<u64>>, retry_at: Monotonic) {
        self.generations.end_change(live, retry_at);
    }

    /// The configured set of shards is about to be recorded. Until that is committed, keys whose earlier home
    /// this shard is have to wait.
    pub fn is_recording_topology(&self) -> bool {
        self.new_topology.is_some()
    }

    /// The enqueue whose lookup ended.
    pub fn end_lookup(&mut self, read: u64) -> Option<ShardEnqueue> {
        self.keys.end_lookup(read)
    }

    /// Enqueues that wait for the next batch.
    pub fn waiting_enqueues(&self) -> impl Iterator<Item = &ShardEnqueue> {
        self.enqueues.iter()
    }

    /// Items that wait or are in flight: the longest queue comes last in a topic's choice of shards.
    pub fn backlog(&self) -> usize {
        self.enqueues.items() + self.in_flight.as_ref().map_or(0, |batch| batch.rows)
    }

    /// Rows that callers wait for, at least.
    pub fn waiting_rows(&self) -> usize {
        let leasing: usize = self.leasing.iter().map(|part| part.items.len()).sum();
        self.settles.len() + leasing + self.enqueues.items()
    }

    /// What waits fills a batch of `rows` rows, or one of as many bytes as a batch may carry.
    pub fn fills_a_batch(&self, rows: usize) -> bool {
        rows >= self.settings.batch_rows || self.budget.bytes() >= self.tenure.batch_bytes
    }

    /// No enqueue waits, and no batch is in flight.
    pub fn can_probe(&self) -> bool {
        self.in_flight.is_none() && self.enqueues.items() == 0
    }

    /// Nothing waits and nothing is in flight.
    pub fn is_idle(&self) -> bool {
        self.in_flight.is_none()
            && self.settles.is_empty()
            && self.leasing.is_empty()
            && self.awaiting_bodies.is_empty()
            && self.enqueues.items() == 0
            && self.restores.is_empty()
            && self.keys.is_idle()
    }

    /// A sweep's scan ended.
    pub fn scanned(&mut self, sweep: Sweep, read: u64, rows: Vec<DueRow>, next: Option<Timestamp>) {
        self.sweeps.scanned(sweep, read, rows, next);
    }

    /// A sweep's scan failed.
    pub fn scan_failed(&mut self, sweep: Sweep, read: u64, at: Monotonic) {
        self.sweeps.scan_failed(sweep, read, at);
    }

    /// The leases of the batch in flight, for the planted bug that hands them out too early.
    pub fn planned_leases(&self) -> Vec<(ShardLease, Vec<Leased>)> {
        let planned = self.in_flight.iter().flat_map(|batch| &batch.planned);
        let leases = planned.filter_map(|planned| match planned {
            Planned::Lease { part, leased } => Some((part.clone(), leased.clone())),
            _ => None,
        });
        leases.collect()
    }
}
