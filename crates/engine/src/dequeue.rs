//! Dequeue: a k-way merge over the shards' ready indexes, a lease in each shard that takes part, and one
//! answer. A poll that finds nothing waits; polls of a topic are served first come, first served.

use std::cmp::Reverse;

use forebay_types::{ItemId, Key, Monotonic, Reason, Receipt, Refusal, ShardId, TopicName};

use crate::{
    Delivered, DequeueCall,
    core::{Core, HEAD_PATIENCE, RETRY, Timer},
    enqueue::draining,
    event::Reply,
    form::Leased,
    handover::{Handover, Undo},
    meet::Waiting,
    merge::Pick,
    op::{LeasePart, Picked},
    planted::{Bug, on},
};

/// A dequeue call.
pub(crate) struct Poll {
    call: DequeueCall,
    reply: Reply<Handover>,
    until: Monotonic,
    parts: Option<Parts>,
}

impl Poll {
    /// What it would take of a topic, if it waits.
    pub fn waiting(&self, id: u64, name: &TopicName) -> Option<Waiting> {
        let demand = self.call.demands.iter().find(|demand| demand.topic == name.topic)?;
        if self.parts.is_some() || self.reply.is_closed() {
            return None;
        }
        let DequeueCall { lease, consumer, max_bytes, .. } = &self.call;
        let part = LeasePart { poll: id, lease: *lease, consumer: consumer.clone(), picked: Vec::new() };
        Some(Waiting { max_items: demand.max_items, max_bytes: *max_bytes, part })
    }
}

/// Leases under way for a poll.
struct Parts {
    left: usize,
    /// Parts that take at-most-once items: never late, the answer waits for them.
    taking: usize,
    got: Vec<(usize, Delivered, Undo)>,
    /// Something that was taken for it expired before it could be leased; what comes behind it may be had.
    expired: bool,
    /// When the late rest is not waited for any more: set by the first part that committed.
    late_at: Option<Monotonic>,
}

impl Parts {
    fn new(left: usize, taking: usize) -> Self {
        Self { left, taking, got: Vec::new(), expired: false, late_at: None }
    }
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
                    poll.parts = Some(Parts::new(parts.len(), taking));
                }
                for (place, picked) in parts {
                    let consumer = call.consumer.clone();
                    self.lease(place, LeasePart { poll: id, lease: call.lease, consumer, picked });
                }
                true
            }
        }
    }

    /// A poll gets something of a batch that was just formed: it waits no more.
    pub fn met(&mut self, id: u64) {
        let Some(poll) = self.polls.get_mut(&id) else { return };
        poll.parts = Some(Parts::new(1, 0));
        let call = poll.call.clone();
        self.unlist(id, &call);
    }

    /// The batch did not happen: the poll waits again.
    pub fn unmet(&mut self, id: u64) {
        self.part_ended(id, Vec::new(), false);
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
        let expired = handed.iter().any(|leased| matches!(leased, Leased::Expired));
        if expired && let Some(parts) = self.polls.get_mut(&part.poll).and_then(|poll| poll.parts.as_mut()) {
            parts.expired = true;
        }
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
            let again = parts.expired;
            return self.wait_again(id, again);
        }
        self.answer_with_what_came(id);
    }

    /// Nothing came of a poll's leases: it waits on, at the head of the line. With `again` it is served at once if there
    /// is something else, even if it would not wait.
    fn wait_again(&mut self, id: u64, again: bool) {
        let (at, stopping) = (self.time.monotonic(), self.is_stopping());
        let Some(poll) = self.polls.get_mut(&id) else { return };
        poll.parts = None;
        if again && !stopping && self.serve(id, at) {
            return;
        }
        let Some(poll) = self.polls.get_mut(&id) else { return };
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

    /// A poll's caller went away: what has been leased for it already goes back.
    pub fn poll_gone(&mut self, id: u64) {
        if let Some(parts) = self.remove_poll(id).and_then(|poll| poll.parts) {
            self.undo(parts.got.into_iter().map(|(.., undo)| undo).collect());
        }
    }

    /// Deliveries and items that ended while the answer waited for its other parts are not handed out.
    fn drop_ended(&mut self, id: u64) {
        let Some(parts) = self.polls.get_mut(&id).and_then(|poll| poll.parts.as_mut()) else { return };
        let (node_now, at) = (self.time.now(), self.time.monotonic());
        let mut expired = Vec::new();
        for (position, delivered, undo) in std::mem::take(&mut parts.got) {
            let shard = self.shards.iter_mut().find(|shard| shard.id == delivered.id.shard);
            let owned = shard.and_then(|shard| shard.owned.as_mut());
            let (mut now, mut open) = (node_now, true);
            if let Some(owned) = owned {
                now = owned.time.now(node_now, at);
                // Where the shard was lost meanwhile, its next owner keeps the lease until its end.
                open = delivered.receipt.is_none_or(|receipt| {
                    owned.leases.get(receipt.item.seq).is_some_and(|lease| lease.nonce == receipt.nonce)
                });
            }
            let ended = delivered.lease_expires_at.is_some_and(|deadline| deadline <= now);
            if delivered.expires_at.is_some_and(|end| end <= now) && !on(Bug::ExpiryIgnored) {
                expired.push(undo);
            } else if open && !ended {
                parts.got.push((position, delivered, undo));
            }
        }
        // What was to be delivered at most once is gone from the shard already, and stays so.
        expired.retain(|undo| matches!(undo, Undo::Release(_)));
        self.undo(expired);
    }

    fn answer_with_what_came(&mut self, id: u64) {
        self.drop_ended(id);
        if let Some(Parts { left, got, late_at, .. }) =
            self.polls.get_mut(&id).and_then(|poll| poll.parts.as_mut())
            && got.is_empty()
        {
            *late_at = None;
            if *left == 0 {
                self.wait_again(id, true);
            }
            return;
        }
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
}

pub(crate) fn names(call: &DequeueCall) -> Vec<TopicName> {
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
