//! Prefetch: windows are filled from the store as demand needs it, inside the memory budget.

use std::collections::HashMap;

use forebay_store::StoreError;
use forebay_types::{Body, Seq, TopicId, TopicName};

use crate::{core::Core, op::LeasePart, window::ENTRY_BYTES};

/// A read asks for so many items, however little memory there is.
const READ_MIN: usize = 16;

/// Reads of one shard that the background may add to.
const BACKGROUND_READS: usize = 16;

impl Core {
    /// Reads on behind an empty window. Returns whether there is something to read.
    pub fn refill(&mut self, place: usize, id: TopicId, wanted: usize) -> bool {
        let Some(owned) = &mut self.shards[place].owned else { return false };
        let beyond = owned.beyond(id);
        let Some(topic) = owned.topics.get_mut(&id) else { return false };
        if topic.window.is_complete() {
            return false;
        }
        if topic.window.is_reading() {
            return true;
        }
        if beyond == 0 {
            topic.window.set_complete();
            return false;
        }
        topic.grow();
        self.read_on(place, id, wanted);
        true
    }

    /// Fills the windows of a topic before they run empty.
    pub fn refill_low(&mut self, name: &TopicName) {
        let Some(topic) = self.topics.get(name) else { return };
        for (place, id) in topic.parts.clone() {
            let Some(owned) = &mut self.shards[place].owned else { continue };
            let Some(topic) = owned.topics.get(&id) else { continue };
            if topic.window.is_complete() || topic.window.is_reading() || topic.window.len() >= topic.fill / 2
            {
                continue;
            }
            if owned.beyond(id) > 0 {
                self.read_on(place, id, 0);
            }
        }
    }

    /// Reads on behind a window: at least `wanted` items where the memory allows it.
    pub fn read_on(&mut self, place: usize, id: TopicId, wanted: usize) {
        let read = self.next_id();
        let Some(reads) = self.reads(place) else { return };
        let budget = self.index_budget();
        let Some(owned) = &mut self.shards[place].owned else { return };
        let free = budget.saturating_sub(owned.index_bytes) / 4;
        let Some(topic) = owned.topics.get_mut(&id) else { return };
        let limit = topic.fill.max(wanted).min((budget / 4 / ENTRY_BYTES).max(READ_MIN));
        // Bodies come along where their size is known to fit; else they are read before the lease.
        let bodies = topic.body_bytes.is_some_and(|bytes| limit * (bytes + ENTRY_BYTES) <= free);
        if let Some(after) = topic.window.begin_read(read, limit) {
            owned.reading += 1;
            metrics::counter!("forebay_prefetch_reads_total").increment(1);
            reads.ready(id, read, after, limit, bodies);
        }
    }

    /// Whether some shard's head of this topic is not known yet. Begins to read it, unless many reads are under
    /// way already.
    pub fn unread(&mut self, name: &TopicName) -> bool {
        let parts = self.topics.get(name).map(|topic| topic.parts.clone()).unwrap_or_default();
        let moment = self.time.moment();
        let mut unread = false;
        for (place, id) in parts {
            if !self.shards[place].is_merged() || self.head(place, id, moment).is_some() {
                continue;
            }
            let Some(owned) = &self.shards[place].owned else { continue };
            let Some(topic) = owned.topics.get(&id) else { continue };
            if !topic.window.is_complete() && owned.beyond(id) > 0 {
                unread = true;
                if !topic.window.is_reading() && owned.reading < BACKGROUND_READS {
                    self.read_on(place, id, 0);
                }
            }
        }
        unread
    }

    /// Reads the heads of topics that were there when the shard was taken over, a few at a time.
    pub fn read_heads(&mut self, place: usize) {
        while let Some(owned) = &mut self.shards[place].owned
            && owned.reading < BACKGROUND_READS
            && let Some(id) = owned.unread.pop_front()
        {
            let known = owned
                .topics
                .get(&id)
                .is_none_or(|topic| topic.window.is_complete() || topic.window.len() > 0);
            if !known && owned.beyond(id) > 0 {
                self.read_on(place, id, 0);
            }
        }
    }

    /// Reads that ended are put to use once no batch is open that they may have seen half of.
    pub fn end_reads(&mut self, place: usize) {
        let budget = self.index_budget();
        let Some(owned) = &mut self.shards[place].owned else { return };
        if owned.in_flight.is_some() {
            return;
        }
        for (id, read, rows) in std::mem::take(&mut owned.held_reads) {
            owned.reading -= 1;
            let Some(topic) = owned.topics.get_mut(&id) else { continue };
            let before = topic.window.cost();
            topic
                .window
                .end_read(read, rows, |seq| owned.leases.get(seq).is_some() || owned.reserved.contains(&seq));
            if !topic.window.is_reading() {
                topic.outstanding_since = None;
            }
            owned.index_bytes = owned.index_bytes + topic.window.cost() - before;
            let name = topic.name.clone();
            owned.note(id);
            self.woken.insert(name);
        }
        owned.shed(budget);
    }

    /// Bytes of ready index and cached bodies that one shard may hold.
    pub fn index_budget(&self) -> usize {
        self.settings.index_bytes / self.shards.len().max(1)
    }

    /// Queues the lease of picked items, once their bodies are there.
    pub fn lease(&mut self, place: usize, part: LeasePart) {
        let missing: Vec<Seq> = part
            .picked
            .iter()
            .filter(|picked| picked.entry.body.is_none())
            .map(|picked| picked.key.seq)
            .collect();
        let read = self.next_id();
        let reads = self.reads(place);
        let Some(owned) = &mut self.shards[place].owned else { return };
        if missing.is_empty() {
            owned.lease_parts.push_back(part);
        } else if let Some(reads) = reads {
            owned.awaiting.insert(read, part);
            reads.bodies(read, missing);
        }
    }

    pub fn bodies_came(&mut self, place: usize, read: u64, bodies: Result<Vec<(Seq, Body)>, StoreError>) {
        let at = self.time.monotonic();
        let shard = &mut self.shards[place];
        let Some(owned) = &mut shard.owned else { return };
        let Some(mut part) = owned.awaiting.remove(&read) else { return };
        let bodies: HashMap<Seq, Body> = match bodies {
            Ok(bodies) => bodies.into_iter().collect(),
            Err(error) => {
                shard.last_error = error.to_string();
                shard.breaker.strike(at);
                return self.part_failed(place, part);
            }
        };
        for picked in &mut part.picked {
            if picked.entry.body.is_none() {
                picked.entry.body = bodies.get(&picked.key.seq).cloned();
            }
        }
        if part.picked.iter().any(|picked| picked.entry.body.is_none()) {
            tracing::error!(shard.id = shard.id.0, "an item of the ready index is not in the store");
            return self.part_failed(place, part);
        }
        owned.lease_parts.push_back(part);
    }
}
