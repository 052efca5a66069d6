//! Enqueue: placed on shards, looked up where a key or a request id makes it repeatable, and queued for the
//! next batch.

use std::collections::{BTreeMap, HashSet};

use forebay_types::{Reason, Refusal, ShardId, Timestamp, Topic};

use crate::{
    EnqueueCall, Enqueued, NewItem, Schedule,
    core::{Core, RETRY},
    event::Reply,
    op::{EnqueuePart, KeyHash, Placed},
    place::{self, SHARDS_PER_TOPIC},
};

type Results = Vec<Result<Enqueued, Refusal>>;

impl Core {
    pub fn enqueue(&mut self, call: EnqueueCall, bytes: usize, reply: Reply<Results>) {
        if self.is_stopping() {
            self.uncharge(bytes);
            let _ = reply.send(Err(draining()));
            return;
        }
        let now = self.time.now();
        let (namespace, request_id) = (call.namespace.clone(), call.request_id.clone());
        let request = request_id.map(|id| place::hash(&[b"request", namespace.as_bytes(), id.as_bytes()]));
        let id = self.next_id();
        let count = call.items.len();
        let mut parts: BTreeMap<usize, Vec<Placed>> = BTreeMap::new();
        let mut refused = Vec::new();
        let mut suited = Suited::default();
        for (index, item) in call.items.into_iter().enumerate() {
            self.rank = self.rank.saturating_add(1).max(now.as_micros());
            let item = placed(&namespace, index, item, self.rank, now);
            match self.place(&namespace, request, &item, &parts, &mut suited) {
                Ok(place) => parts.entry(place).or_default().push(item.item),
                Err(refusal) => refused.push((index, refusal)),
            }
        }
        if let Some(refusal) = self.over_budget(&namespace, &parts) {
            self.uncharge(bytes);
            let _ = reply.send(Err(refusal));
            return;
        }
        self.calls.enqueue(id, count, bytes, reply);
        for (index, refusal) in refused {
            self.enqueue_done(id, index, Err(refusal));
        }
        for (place, items) in parts {
            self.accept(place, EnqueuePart { call: id, namespace: namespace.clone(), request, items });
        }
    }

    /// The shard that takes an item.
    fn place(
        &self,
        namespace: &str,
        request: Option<KeyHash>,
        item: &ToPlace,
        parts: &BTreeMap<usize, Vec<Placed>>,
        suited: &mut Suited,
    ) -> Result<usize, Refusal> {
        if let Some(id) = item.shard {
            let place = self.place_of(id).ok_or_else(|| {
                Refusal::field(format!("items[{}].shard", item.item.index), "there is no such shard")
            })?;
            return self.fixed(place);
        }
        if let Some(hash) = request.or(item.item.dedupe) {
            let ids = self.shards.iter().map(|shard| shard.id).enumerate();
            let home = place::best(&hash, ids, 1).first().copied().ok_or_else(no_shard)?;
            return self.fixed(home);
        }
        if suited.topic.as_ref() != Some(&item.item.topic) {
            let key = place::hash(&[namespace.as_bytes(), item.item.topic.as_bytes()]);
            let healthy = self.shards.iter().enumerate().filter(|(_, shard)| shard.is_healthy());
            let healthy = healthy.map(|(place, shard)| (place, shard.id));
            suited.places = place::best(&key, healthy, self.shards.len());
            suited.topic = Some(item.item.topic.clone());
        }
        let best = &suited.places;
        let backlog =
            |place: usize| self.shards[place].owned.as_ref().map_or(usize::MAX, |owned| owned.backlog());
        // A topic that brings more than its shards commit in a batch spreads to twice as many.
        let mut spread = SHARDS_PER_TOPIC.min(best.len());
        while spread < best.len()
            && best[..spread].iter().all(|place| backlog(*place) > self.settings.batch_rows)
        {
            spread = (2 * spread).min(best.len());
        }
        let some = best[..spread].iter().copied();
        some.min_by_key(|place| (!parts.contains_key(place), backlog(*place))).ok_or_else(no_shard)
    }

    /// A shard that is fixed by hand or by a key: it or none.
    fn fixed(&self, place: usize) -> Result<usize, Refusal> {
        let shard = &self.shards[place];
        if shard.is_merged() { Ok(place) } else { Err(shard.refusal()) }
    }

    /// Whether one of the shards, or the tenant's part of it, has as much waiting as it may. Takes the charge
    /// if not.
    fn over_budget(&mut self, namespace: &str, parts: &BTreeMap<usize, Vec<Placed>>) -> Option<Refusal> {
        let at = self.time.monotonic();
        for (place, items) in parts {
            let Some(owned) = &self.shards[*place].owned else { continue };
            let bytes: usize = items.iter().map(Placed::charge).sum();
            let mine = owned.admitted_by.get(namespace).copied().unwrap_or(0);
            if at < owned.disk_full_until {
                let message = format!("the disk of shard {} is full", self.shards[*place].id);
                return Some(Refusal::new(Reason::DiskFull, message).retry_after(RETRY));
            }
            if owned.admitted > 0 && owned.admitted + bytes > self.settings.admit_shard_bytes
                || mine > 0 && mine + bytes > self.settings.admit_tenant_bytes
            {
                let message = "more waits to be stored than the node takes on";
                return Some(Refusal::new(Reason::Overloaded, message).retry_after(RETRY));
            }
        }
        for (place, items) in parts {
            let Some(owned) = &mut self.shards[*place].owned else { continue };
            let bytes: usize = items.iter().map(Placed::charge).sum();
            owned.admitted += bytes;
            *owned.admitted_by.entry(namespace.into()).or_default() += bytes;
        }
        None
    }

    /// Queues a part for the next batch, after a look-up where a key or a request id asks for one.
    pub fn accept(&mut self, place: usize, mut part: EnqueuePart) {
        // A second item with the same key in one call is a part of its own, behind the first.
        let mut seen = HashSet::new();
        let (first, rest): (Vec<Placed>, Vec<Placed>) =
            part.items.into_iter().partition(|item| item.dedupe.is_none_or(|key| seen.insert(key)));
        part.items = first;
        let (call, namespace) = (part.call, part.namespace.clone());
        self.accept_distinct(place, part);
        if !rest.is_empty() {
            self.accept(place, EnqueuePart { call, namespace, request: None, items: rest });
        }
    }

    /// What was in no batch yet goes to another shard, if it may.
    pub fn place_again(&mut self, part: EnqueuePart, refusal: &Refusal) {
        let mut parts: BTreeMap<usize, Vec<Placed>> = BTreeMap::new();
        let mut suited = Suited::default();
        for item in part.items {
            let index = item.index;
            let to_place = ToPlace { shard: None, item };
            let fixed = part.request.is_some() || to_place.item.pinned || to_place.item.dedupe.is_some();
            let place = if fixed {
                Err(refusal.clone())
            } else {
                self.place(&part.namespace, None, &to_place, &parts, &mut suited)
            };
            match place {
                Ok(place) => parts.entry(place).or_default().push(to_place.item),
                Err(refusal) => self.enqueue_done(part.call, index, Err(refusal)),
            }
        }
        for (place, items) in parts {
            let Some(owned) = &mut self.shards[place].owned else { continue };
            let bytes: usize = items.iter().map(Placed::charge).sum();
            owned.admitted += bytes;
            *owned.admitted_by.entry(part.namespace.clone()).or_default() += bytes;
            let namespace = part.namespace.clone();
            self.accept(place, EnqueuePart { call: part.call, namespace, request: None, items });
        }
    }
}

/// The healthy shards that suit the last item's topic, best first: a call's items mostly have the same one.
#[derive(Default)]
struct Suited {
    topic: Option<Topic>,
    places: Vec<usize>,
}

/// An item with what only its placing needs.
struct ToPlace {
    shard: Option<ShardId>,
    item: Placed,
}

fn placed(namespace: &str, index: usize, item: NewItem, rank: i64, now: Timestamp) -> ToPlace {
    let due = match item.schedule {
        Schedule::Now => None,
        Schedule::Delay(delay) if delay.is_zero() => None,
        Schedule::Delay(delay) => Some(now.plus(delay)),
        Schedule::After(time) => Some(time).filter(|time| *time > now),
    };
    let key = item.dedupe_key.as_ref();
    let item_placed = Placed {
        index,
        rank,
        topic: item.topic,
        priority: item.priority,
        arrived: now,
        due,
        expires_at: item.ttl.map(|ttl| now.plus(ttl)),
        lease_ms: u32::try_from(item.lease.as_millis()).unwrap_or(u32::MAX),
        max_attempts: item.max_attempts,
        policy: item.policy,
        dedupe: key.map(|key| place::hash(&[b"dedupe", namespace.as_bytes(), key.as_bytes()])),
        pinned: item.shard.is_some(),
        body: item.body,
        refused: None,
    };
    ToPlace { shard: item.shard, item: item_placed }
}

fn no_shard() -> Refusal {
    Refusal::new(Reason::ShardUnavailable, "no shard of this node takes new items for now").retry_after(RETRY)
}

pub(crate) fn draining() -> Refusal {
    Refusal::new(Reason::NodeDraining, "the node is stopping").retry_after(RETRY)
}
