//! Looks up dedupe keys and request ids before their items are stored: at their earlier homes first, if they
//! have any, then at their home. One key is under way once at a time.

use std::collections::BTreeMap;

use forebay_store::{DedupeHit, StoreError};
use forebay_types::{ItemId, Refusal, ShardId, Timestamp};

use crate::{
    Enqueued,
    core::Core,
    generations::current_generation,
    io::{Line, Reads},
    op::{EnqueuePart, KeyHash, Placed},
    planted::{Bug, on},
};

/// A part whose keys are being looked up.
#[derive(Debug)]
pub(crate) struct LookUp {
    pub part: EnqueuePart,
    /// Shards still to be asked; the keys' home comes last.
    ask: Vec<usize>,
    /// The shard that is asked now, and its life.
    asked: (usize, u64),
    hits: Vec<(ShardId, DedupeHit)>,
}

/// Whom to ask for keys.
enum Ask {
    /// These shards, in turn.
    Now(Vec<usize>),
    /// One that matters is just recording the current list of shards.
    Later,
    /// One that matters is out of reach.
    Never,
}

impl Core {
    /// Queues a part whose keys are distinct, after a look-up if it has any.
    pub fn accept_distinct(&mut self, place: usize, part: EnqueuePart) {
        let now = self.time.now();
        let keys = keys(&part);
        let Some(owned) = &mut self.shards[place].owned else { return };
        if keys.is_empty() {
            owned.enqueues.push(part);
            return;
        }
        let now = owned.stamp.time.max(now);
        let blocked = keys.iter().any(|key| owned.keyed.held.contains(key) && !on(Bug::KeyNotHeld))
            || current_generation(&owned.generations.live, now).is_none();
        if blocked {
            owned.keyed.blocked.push_back(part);
            return;
        }
        let ask = self.to_be_asked(place, &keys, now);
        let Some(owned) = &mut self.shards[place].owned else { return };
        if let Ask::Later = ask {
            owned.keyed.blocked.push_back(part);
            return;
        }
        owned.keyed.held.extend(&keys);
        let Ask::Now(ask) = ask else { return self.refuse_part(place, part) };
        self.ask(place, LookUp { part, ask, asked: (place, 0), hits: Vec::new() });
    }

    /// Whom to ask for these keys.
    fn to_be_asked(&self, place: usize, keys: &[KeyHash], now: Timestamp) -> Ask {
        let at = self.time.monotonic();
        if !self.homes.complete(at) {
            return Ask::Never;
        }
        let mut ask = Vec::new();
        for id in self.homes.earlier_homes(keys, now) {
            let Some(earlier) = self.place_of(id) else { return Ask::Never };
            // Once it has recorded the current list, it stores no key any more whose home is elsewhere.
            let Some(owned) = &self.shards[earlier].owned else { return Ask::Never };
            if owned.shard_lists.is_some() {
                return Ask::Later;
            }
            ask.push(earlier);
        }
        ask.push(place);
        Ask::Now(ask)
    }

    /// Asks the next shard.
    fn ask(&mut self, place: usize, mut look: LookUp) {
        let read = self.next_id();
        let asked = look.ask.remove(0);
        look.asked = (asked, self.shards[asked].life);
        let Some(at) = self.shards[asked].owned.as_ref() else { return self.refuse_part(place, look.part) };
        let (reader, generations) = (at.reader.clone(), at.generations.live.clone());
        let line = Line { shard: place, life: self.shards[place].life, events: self.events.clone() };
        let keys = keys(&look.part);
        let Some(owned) = &mut self.shards[place].owned else { return };
        owned.keyed.looking.insert(read, look);
        Reads { reader, line }.dedupe(read, generations, keys);
    }

    /// A shard answered.
    pub fn looked_up(&mut self, place: usize, read: u64, hits: Result<Vec<DedupeHit>, StoreError>) {
        let at = self.time.monotonic();
        let Some(owned) = &mut self.shards[place].owned else { return };
        let Some(mut look) = owned.keyed.looking.remove(&read) else { return };
        let (asked, life) = look.asked;
        let shard = &mut self.shards[asked];
        // Nothing is written for a repeated answer, so it is given only while nobody else can own the shard.
        let trusted = shard.life == life && shard.owned.as_ref().is_some_and(|owned| owned.trusted(at));
        match hits {
            Ok(hits) if trusted => look.hits.extend(hits.into_iter().map(|hit| (shard.id, hit))),
            Ok(_) => return self.refuse_part(place, look.part),
            Err(error) => {
                shard.last_error = error.to_string();
                shard.breaker.strike(at);
                return self.refuse_part(place, look.part);
            }
        }
        if look.ask.is_empty() { self.known(place, look) } else { self.ask(place, look) }
    }

    /// Every shard was asked: what was there before is answered, the rest is queued.
    fn known(&mut self, place: usize, look: LookUp) {
        let now = self.time.now();
        let now = self.shards[place].owned.as_ref().map_or(now, |owned| owned.stamp.time.max(now));
        let LookUp { part, hits, .. } = look;
        let window =
            self.settings.dedupe_windows.get(&*part.namespace).unwrap_or(&self.settings.dedupe_window);
        // Of several hits the latest counts.
        let mut known: BTreeMap<KeyHash, (Timestamp, ShardId, Vec<u8>)> = BTreeMap::new();
        for (shard, hit) in hits.into_iter().filter(|(_, hit)| hit.at.plus(*window) > now) {
            if known.get(&hit.hash).is_none_or(|(at, ..)| hit.at >= *at) {
                known.insert(hit.hash, (hit.at, shard, hit.answer));
            }
        }
        let answer = |hash: &KeyHash| {
            let (_, shard, answer) = known.get(hash)?;
            Some((*shard, crate::request::decode(answer)?))
        };
        if let Some((shard, first)) = part.request.as_ref().and_then(answer) {
            if first.len() != part.items.len() {
                // Another call under the same id: whose answers these are can't be told.
                let message = "was used for a call with another number of items";
                for item in &part.items {
                    let refusal = Refusal::field("request_id", message);
                    self.enqueue_done(part.call, item.index, Err(refusal));
                }
                return self.part_done(place, &part);
            }
            for (item, result) in part.items.iter().zip(first) {
                let result = result.map(|seq| Enqueued { id: ItemId { shard, seq }, duplicate: false });
                self.enqueue_done(part.call, item.index, result);
            }
            return self.part_done(place, &part);
        }
        let mut fresh = Vec::new();
        let mut repeated = Vec::new();
        for item in part.items {
            let first = item.dedupe.as_ref().and_then(answer);
            match first.and_then(|(shard, mut first)| Some((shard, first.pop()?.ok()?))) {
                Some((shard, seq)) => repeated.push((item, ItemId { shard, seq })),
                None => fresh.push(item),
            }
        }
        let (call, namespace, request) = (part.call, part.namespace, part.request);
        for (item, id) in &repeated {
            self.enqueue_done(call, item.index, Ok(Enqueued { id: *id, duplicate: true }));
        }
        let repeated = repeated.into_iter().map(|(item, _)| item).collect::<Vec<_>>();
        if !fresh.is_empty()
            && let Some(owned) = &mut self.shards[place].owned
        {
            owned.enqueues.push(EnqueuePart { call, namespace: namespace.clone(), request, items: fresh });
        }
        if !repeated.is_empty() {
            self.part_done(place, &EnqueuePart { call, namespace, request: None, items: repeated });
        }
    }

    /// Every item of the part is refused, because the shard can't say what it holds.
    fn refuse_part(&mut self, place: usize, part: EnqueuePart) {
        for item in &part.items {
            let refusal = self.shards[place].refusal();
            self.enqueue_done(part.call, item.index, Err(refusal));
        }
        self.part_done(place, &part);
    }

    /// A part is through: its charge and its keys are free again.
    pub fn part_done(&mut self, place: usize, part: &EnqueuePart) {
        let Some(owned) = &mut self.shards[place].owned else { return };
        owned.release_charge(&part.namespace, part.items.iter().map(Placed::charge).sum());
        let keys = keys(part);
        if !keys.is_empty() {
            for key in keys {
                owned.keyed.held.remove(&key);
            }
            self.unblock(place);
        }
    }

    /// Parts that waited for a key, or for a generation, try again.
    pub fn unblock(&mut self, place: usize) {
        let Some(owned) = &mut self.shards[place].owned else { return };
        for part in std::mem::take(&mut owned.keyed.blocked) {
            self.accept(place, part);
        }
    }
}

/// The keys under which a part is remembered.
fn keys(part: &EnqueuePart) -> Vec<KeyHash> {
    part.request.into_iter().chain(part.items.iter().filter_map(|item| item.dedupe)).collect()
}
