//! Dequeue: a k-way merge over the shards' ready indexes, a lease in each shard that takes part, and one
//! answer. A poll that finds nothing waits; polls of a topic are served first come, first served.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, HashMap},
};

use forebay_store::StoreError;
use forebay_types::{
    Body, ItemId, Key, Monotonic, Reason, Receipt, Refusal, Seq, ShardId, TopicId, TopicName,
};

use crate::{
    Delivered, DequeueCall,
    core::{Core, HEAD_PATIENCE, RETRY, Timer},
    enqueue::draining,
    event::Reply,
    form::Leased,
    handover::{Handover, Undo},
    op::{LeasePart, Picked, Settle, SettleKind},
    planted::{Bug, on},
    window::ENTRY_BYTES,
};

/// A read asks for so many items, however little memory there is.
const READ_MIN: usize = 16;
/// Reads of one shard that the background may add to.
const BACKGROUND_READS: usize = 16;

/// A dequeue call.
pub(crate) struct Poll {
    call: DequeueCall,
    reply: Reply<Handover>,
    until: Monotonic,
    parts: Option<Parts>,
}

/// Leases under way for a poll.
struct Parts {
    left: usize,
    /// Parts that take at-most-once items: never late, the answer waits for them.
    taking: usize,
    got: Vec<(usize, Delivered, Undo)>,
    /// When the late rest is not waited for any more: set by the first part that committed.
    late_at: Option<Monotonic>,
}

/// What one look at a poll's topics came to.
enum Pick {
    /// These items, by shard.
    Found(BTreeMap<usize, Vec<Picked>>),
    /// Nothing is there, or not known yet.
    Nothing,
    /// Something is there, but as much as may be is leased already.
    TooManyLeased,
}

impl Core {
    pub fn dequeue(&mut self, id: u64, call: DequeueCall, reply: Reply<Handover>) {
        if self.is_stopping() {
            let _ = reply.send(Err(draining()));
            return;
        }
        let at = self.time.monotonic();
        let until = at.plus(call.wait);
        let wait = !call.wait.is_zero();
        if wait && self.polls.len() >= self.settings.polls {
            let message = format!("{} long polls wait at this node already", self.polls.len());
            let _ = reply.send(Err(Refusal::new(Reason::Overloaded, message).retry_after(RETRY)));
            return;
        }
        if !self.shards.iter().any(|shard| shard.is_merged()) {
            let message = "no shard of this node answers for now";
            let _ = reply.send(Err(Refusal::new(Reason::ShardUnavailable, message).retry_after(RETRY)));
            return;
        }
        let names = names(&call);
        self.polls.insert(id, Poll { call, reply, until, parts: None });
        if self.serve(id, at) {
            return;
        }
        // A head that has not been read yet counts as outstanding, not as empty: it is waited for even by a
        // call that does not wait otherwise.
        let outstanding = names.iter().any(|name| self.outstanding(name, at));
        if !wait && !outstanding {
            self.answer_empty(id);
            return;
        }
        let until = if wait { until } else { at.plus(HEAD_PATIENCE) };
        self.timers.push(Reverse((until, Timer::Poll(id))));
        for name in names {
            self.topics.entry(name).or_default().waiters.insert(id);
        }
    }

    /// Serves the polls of topics that have something new.
    pub fn serve_woken(&mut self) {
        let at = self.time.monotonic();
        for name in std::mem::take(&mut self.woken) {
            while let Some(id) = self.topics.get(&name).and_then(|topic| topic.waiters.first().copied()) {
                if !self.serve(id, at) {
                    break;
                }
            }
        }
    }

    /// Tries to find items for a poll. Returns whether the poll is off the waiting list: its leases are under
    /// way, or it was answered.
    fn serve(&mut self, id: u64, at: Monotonic) -> bool {
        let Some(poll) = self.polls.get(&id) else { return true };
        if poll.reply.is_closed() {
            self.remove_poll(id);
            return true;
        }
        let call = poll.call.clone();
        match self.pick(&call, at) {
            Pick::Nothing => false,
            Pick::TooManyLeased => {
                let message = "as many items are leased as may be: ack some, or wait until their leases end";
                self.answer(id, Err(Refusal::new(Reason::TooManyLeased, message).retry_after(RETRY)));
                true
            }
            Pick::Found(parts) => {
                let taking = |picked: &Vec<Picked>| {
                    picked
                        .iter()
                        .any(|picked| picked.entry.policy == forebay_types::DeliveryPolicy::AtMostOnce)
                };
                let taking = parts.values().filter(|picked| taking(picked)).count();
                self.unlist(id, &call);
                if let Some(poll) = self.polls.get_mut(&id) {
                    poll.parts = Some(Parts { left: parts.len(), taking, got: Vec::new(), late_at: None });
                }
                for (place, picked) in parts {
                    let consumer = call.consumer.clone();
                    self.lease(place, LeasePart { poll: id, lease: call.lease, consumer, picked });
                }
                true
            }
        }
    }

    /// Takes the best items of the demanded topics out of their windows.
    fn pick(&mut self, call: &DequeueCall, at: Monotonic) -> Pick {
        let mut found: BTreeMap<usize, Vec<Picked>> = BTreeMap::new();
        let mut position = 0;
        let mut bytes = 0;
        let mut too_many = false;
        for (name, demand) in names(call).into_iter().zip(&call.demands) {
            if self.outstanding(&name, at) {
                continue;
            }
            let Some(topic) = self.topics.get(&name) else { continue };
            let parts = topic.parts.clone();
            let mut heads: BinaryHeap<Reverse<(i32, i64, ItemId, usize, TopicId)>> = BinaryHeap::new();
            for (place, id) in parts {
                self.head(place, id).into_iter().for_each(|head| heads.push(Reverse(head)));
            }
            let mut wanted = demand.max_items;
            while wanted > 0
                && let Some(Reverse((_, _, _, place, id))) = heads.pop()
            {
                let limits = &self.settings.limits;
                let Some(owned) = &mut self.shards[place].owned else { continue };
                let Some(topic) = owned.topics.get(&id) else { continue };
                let leased = owned.leases.of_topic(id) + topic.reserved;
                if leased >= limits.leased_per_topic
                    || owned.leases.len() + owned.reserved.len() >= limits.leased_per_shard
                {
                    too_many = true;
                    break;
                }
                let size = topic.window.first().map_or(0, |(_, entry)| entry.bytes as usize);
                if position > 0 && bytes + size > call.max_bytes {
                    return self.found(found, too_many);
                }
                let Some((key, entry)) = owned.with_window(id, |window| window.pop()).flatten() else {
                    continue;
                };
                if !on(Bug::ReservedForgotten) {
                    owned.reserved.insert(key.seq);
                }
                if let Some(topic) = owned.topics.get_mut(&id) {
                    topic.reserved += 1;
                }
                bytes += size;
                wanted -= 1;
                found.entry(place).or_default().push(Picked {
                    position,
                    topic: id,
                    name: name.topic.clone(),
                    key,
                    entry,
                });
                position += 1;
                match self.head(place, id) {
                    Some(head) => heads.push(Reverse(head)),
                    // What comes next in this shard is not known: nothing behind it may go first.
                    None if self.refill(place, id, wanted) => break,
                    None => {}
                }
            }
            self.refill_low(&name);
        }
        self.found(found, too_many)
    }

    fn found(&self, found: BTreeMap<usize, Vec<Picked>>, too_many: bool) -> Pick {
        if !found.is_empty() {
            Pick::Found(found)
        } else if too_many {
            Pick::TooManyLeased
        } else {
            Pick::Nothing
        }
    }

    /// The best deliverable item of a topic in one shard that takes part in the merge.
    pub fn head(&mut self, place: usize, id: TopicId) -> Option<(i32, i64, ItemId, usize, TopicId)> {
        let now = self.time.now();
        let at = self.time.monotonic();
        let shard = &mut self.shards[place];
        if !shard.is_merged() {
            return None;
        }
        let owned = shard.owned.as_mut()?;
        let now = owned.time.now(now, at);
        loop {
            let (key, expired) =
                owned.topics.get(&id)?.window.first().map(|(key, entry)| (key, entry.expired(now)))?;
            if !expired || on(Bug::ExpiryIgnored) {
                let item = ItemId { shard: shard.id, seq: key.seq };
                return Some((key.priority, key.rank, item, place, id));
            }
            // The expiry sweep takes it out of the store.
            owned.with_window(id, |window| window.pop());
        }
    }

    /// Whether a shard's head has to be waited for. Begins to read it.
    fn outstanding(&mut self, name: &TopicName, at: Monotonic) -> bool {
        let Some(topic) = self.topics.get(name).filter(|_| !on(Bug::OutstandingIgnored)) else {
            return false;
        };
        let parts = topic.parts.clone();
        let mut wait = false;
        for (place, id) in parts {
            if !self.shards[place].is_merged() || self.head(place, id).is_some() || !self.refill(place, id, 1)
            {
                continue;
            }
            let Some(topic) = self.shards[place].owned.as_mut().and_then(|owned| owned.topics.get_mut(&id))
            else {
                continue;
            };
            let since = *topic.outstanding_since.get_or_insert(at);
            if at.since(since) < HEAD_PATIENCE {
                wait = true;
                if since == at {
                    self.timers.push(Reverse((at.plus(HEAD_PATIENCE), Timer::Topic(name.clone()))));
                }
            } else {
                metrics::counter!("forebay_heads_left_out_total").increment(1);
            }
        }
        wait
    }

    /// Reads on behind an empty window. Returns whether there is something to read.
    fn refill(&mut self, place: usize, id: TopicId, wanted: usize) -> bool {
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

    /// Whether some shard's head of this topic is not known yet. Begins to read it, unless many reads are under
    /// way already.
    pub fn unread(&mut self, name: &TopicName) -> bool {
        let parts = self.topics.get(name).map(|topic| topic.parts.clone()).unwrap_or_default();
        let mut unread = false;
        for (place, id) in parts {
            if !self.shards[place].is_merged() || self.head(place, id).is_some() {
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

    /// Fills the windows of a topic before they run empty.
    fn refill_low(&mut self, name: &TopicName) {
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
    fn read_on(&mut self, place: usize, id: TopicId, wanted: usize) {
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

    /// Bytes of ready index and cached bodies that one shard may hold.
    pub fn index_budget(&self) -> usize {
        self.settings.index_bytes / self.shards.len().max(1)
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

    /// Queues the lease of picked items, once their bodies are there.
    fn lease(&mut self, place: usize, part: LeasePart) {
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

    /// A part's leases were not committed: its items go back, and the poll does without them.
    pub fn part_failed(&mut self, place: usize, part: LeasePart) {
        let LeasePart { poll, picked, .. } = part;
        let taking =
            picked.iter().any(|picked| picked.entry.policy == forebay_types::DeliveryPolicy::AtMostOnce);
        if let Some(owned) = &mut self.shards[place].owned {
            owned.put_back(picked);
        }
        self.part_ended(poll, Vec::new(), taking);
    }

    /// A part's leases were committed: its items may be handed out.
    pub fn part_leased(&mut self, place: usize, part: LeasePart, handed: Vec<Leased>) {
        let (now, at) = (self.time.now(), self.time.monotonic());
        if !self.polls.contains_key(&part.poll) {
            return self.take_back(place, part, &handed);
        }
        let (id, life) = (self.shards[place].id, self.shards[place].life);
        let taking = handed.iter().any(|leased| matches!(leased, Leased::Taken));
        let now = self.shards[place].owned.as_mut().map_or(now, |owned| owned.time.now(now, at));
        let mut got = Vec::with_capacity(part.picked.len());
        for (picked, leased) in part.picked.into_iter().zip(handed) {
            let position = picked.position;
            match leased {
                Leased::Expired => {}
                Leased::Taken => {
                    let delivered = delivered(id, &picked, None, None);
                    got.push((
                        position,
                        delivered,
                        Undo::Restore { shard: place, life, picked: Box::new(picked) },
                    ));
                }
                Leased::Lease { delivery, nonce, deadline } => {
                    let receipt =
                        Receipt { item: ItemId { shard: id, seq: picked.key.seq }, delivery, nonce };
                    let span = part
                        .lease
                        .unwrap_or(std::time::Duration::from_millis(u64::from(picked.entry.lease_ms)));
                    if deadline.since(now) < span / 2 {
                        // The commit took so long that the consumer would have too little time.
                        self.release(place, receipt);
                        continue;
                    }
                    got.push((
                        position,
                        delivered(id, &picked, Some(receipt), Some(deadline)),
                        Undo::Release(receipt),
                    ));
                }
            }
        }
        self.part_ended(part.poll, got, taking);
    }

    fn part_ended(&mut self, id: u64, got: Vec<(usize, Delivered, Undo)>, taking: bool) {
        let at = self.time.monotonic();
        let Some(poll) = self.polls.get_mut(&id) else { return };
        let Some(parts) = &mut poll.parts else { return };
        parts.left -= 1;
        parts.taking -= usize::from(taking);
        if !got.is_empty() && parts.late_at.is_none() {
            parts.late_at = Some(at.plus(HEAD_PATIENCE));
            if parts.left > 0 {
                self.timers.push(Reverse((at.plus(HEAD_PATIENCE), Timer::Poll(id))));
            }
        }
        parts.got.extend(got);
        let late = parts.late_at.is_some_and(|late| late <= at) && parts.taking == 0;
        if parts.left > 0 && !late {
            return;
        }
        if parts.got.is_empty() {
            return self.wait_again(id);
        }
        self.answer_with_what_came(id);
    }

    /// Nothing came of a poll's leases: it waits on, at the head of the line.
    fn wait_again(&mut self, id: u64) {
        let (at, stopping) = (self.time.monotonic(), self.is_stopping());
        let Some(poll) = self.polls.get_mut(&id) else { return };
        poll.parts = None;
        if poll.until <= at || stopping {
            return self.answer_empty(id);
        }
        let (until, names) = (poll.until, names(&poll.call));
        self.timers.push(Reverse((until, Timer::Poll(id))));
        for name in names {
            self.topics.entry(name.clone()).or_default().waiters.insert(id);
            self.woken.insert(name);
        }
    }

    fn answer_with_what_came(&mut self, id: u64) {
        let Some(mut poll) = self.remove_poll(id) else { return };
        let mut got = poll.parts.take().map(|parts| parts.got).unwrap_or_default();
        got.sort_unstable_by_key(|(position, ..)| *position);
        metrics::counter!("forebay_delivered_total").increment(got.len() as u64);
        let (items, undo) = got.into_iter().map(|(_, item, undo)| (item, undo)).unzip();
        // A caller that is gone drops the handover, which gives the items back.
        let _ = poll.reply.send(Ok(Handover::new(items, undo, self.events.clone())));
    }

    /// A poll's timer: its wait is over, or the rest of its answer is late.
    pub fn poll_time(&mut self, id: u64) {
        let at = self.time.monotonic();
        let Some(poll) = self.polls.get(&id) else { return };
        match &poll.parts {
            None => self.answer_empty(id),
            Some(parts) if parts.late_at.is_some_and(|late| late <= at) && parts.taking == 0 => {
                self.answer_with_what_came(id);
            }
            Some(_) => {}
        }
    }

    pub fn answer_empty(&mut self, id: u64) {
        // A poll whose leases are under way is answered when they are through.
        if self.polls.get(&id).is_some_and(|poll| poll.parts.is_none()) {
            self.answer(id, Ok(Handover::new(Vec::new(), Vec::new(), self.events.clone())));
        }
    }

    fn answer(&mut self, id: u64, answer: Result<Handover, Refusal>) {
        if let Some(poll) = self.remove_poll(id) {
            let _ = poll.reply.send(answer);
        }
    }

    pub fn remove_poll(&mut self, id: u64) -> Option<Poll> {
        let poll = self.polls.remove(&id)?;
        self.unlist(id, &poll.call);
        Some(poll)
    }

    /// A poll waits for its topics no more.
    fn unlist(&mut self, id: u64, call: &DequeueCall) {
        for name in names(call) {
            let Some(topic) = self.topics.get_mut(&name) else { continue };
            topic.waiters.remove(&id);
            if topic.waiters.is_empty() && topic.parts.is_empty() {
                self.topics.remove(&name);
            }
        }
    }

    /// Leases that were committed for a poll that has been answered, or has gone away.
    fn take_back(&mut self, place: usize, part: LeasePart, handed: &[Leased]) {
        let (id, life) = (self.shards[place].id, self.shards[place].life);
        for (picked, leased) in part.picked.into_iter().zip(handed) {
            match leased {
                Leased::Expired => {}
                Leased::Taken => self.restore(place, life, picked),
                Leased::Lease { delivery, nonce, .. } => {
                    let item = ItemId { shard: id, seq: picked.key.seq };
                    self.release(place, Receipt { item, delivery: *delivery, nonce: *nonce });
                }
            }
        }
    }

    /// Takes back deliveries whose answer nobody took.
    pub fn undo(&mut self, undo: Vec<Undo>) {
        for undo in undo {
            match undo {
                Undo::Release(receipt) => {
                    if let Some(place) = self.place_of(receipt.item.shard) {
                        self.release(place, receipt);
                    }
                }
                Undo::Restore { shard, life, picked } => self.restore(shard, life, *picked),
            }
        }
    }

    /// Ends a delivery without a failure; the item keeps its place.
    fn release(&mut self, place: usize, receipt: Receipt) {
        if let Some(owned) = &mut self.shards[place].owned {
            let action = crate::NackAction::Release(std::time::Duration::ZERO);
            let kind = SettleKind::Nack { action, metadata: None, reason: String::new() };
            owned.settles.push_back(Settle { receipt, kind, slot: None });
        }
    }

    fn restore(&mut self, place: usize, life: u64, mut picked: Picked) {
        if self.shards[place].life != life {
            return;
        }
        if let Some(owned) = &mut self.shards[place].owned {
            picked.entry.deliveries += 1;
            owned.restores.push(picked);
        }
    }
}

fn names(call: &DequeueCall) -> Vec<TopicName> {
    let name =
        |demand: &crate::Demand| TopicName { namespace: call.namespace.clone(), topic: demand.topic.clone() };
    call.demands.iter().map(name).collect()
}

fn delivered(
    shard: ShardId,
    picked: &Picked,
    receipt: Option<Receipt>,
    lease_expires_at: Option<forebay_types::Timestamp>,
) -> Delivered {
    let Key { priority, seq, .. } = picked.key;
    let entry = &picked.entry;
    Delivered {
        id: ItemId { shard, seq },
        receipt,
        topic: picked.name.clone(),
        priority,
        body: entry.body.clone().unwrap_or_default(),
        attempt: entry.deliveries + 1,
        enqueued_at: entry.enqueued_at,
        lease_expires_at,
        expires_at: entry.expires_at,
        policy: entry.policy,
    }
}
