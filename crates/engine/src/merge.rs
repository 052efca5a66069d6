//! The k-way merge over the shards' ready indexes, through a heap of their heads: exact priority order within
//! the node.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

use forebay_types::{ItemId, Monotonic, TopicId, TopicName};

use crate::{
    DequeueCall,
    core::{Core, HEAD_PATIENCE, Timer},
    dequeue::names,
    op::Picked,
    planted::{Bug, on},
    time::Moment,
};

/// The best item of a topic in one shard: priority, rank and id, which order it, and where it is.
pub(crate) type Head = (i32, i64, ItemId, usize, TopicId);

/// What one look at a poll's topics came to.
pub(crate) enum Pick {
    /// These items, by shard.
    Found(BTreeMap<usize, Vec<Picked>>),
    /// Nothing is there, or not known yet.
    Nothing,
    /// Something is there, but as much as may be is leased already.
    TooManyLeased,
}

impl Core {
    /// Takes the best items of the demanded topics out of their windows.
    pub fn pick(&mut self, call: &DequeueCall, at: Monotonic) -> Pick {
        let moment = self.time.moment();
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
            let mut heads: BinaryHeap<Reverse<Head>> = BinaryHeap::new();
            for (place, id) in parts {
                self.head(place, id, moment).into_iter().for_each(|head| heads.push(Reverse(head)));
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
                match self.head(place, id, moment) {
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

    pub fn found(&self, found: BTreeMap<usize, Vec<Picked>>, too_many: bool) -> Pick {
        if !found.is_empty() {
            Pick::Found(found)
        } else if too_many {
            Pick::TooManyLeased
        } else {
            Pick::Nothing
        }
    }

    /// The best deliverable item of a topic in one shard that takes part in the merge.
    pub fn head(&mut self, place: usize, id: TopicId, moment: Moment) -> Option<Head> {
        let shard = &mut self.shards[place];
        if !shard.is_merged() {
            return None;
        }
        let owned = shard.owned.as_mut()?;
        let now = owned.time.now(moment.now, moment.at);
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
    pub fn outstanding(&mut self, name: &TopicName, at: Monotonic) -> bool {
        let Some(topic) = self.topics.get(name).filter(|_| !on(Bug::OutstandingIgnored)) else {
            return false;
        };
        let parts = topic.parts.clone();
        let moment = self.time.moment();
        let mut wait = false;
        for (place, id) in parts {
            if !self.shards[place].is_merged()
                || self.head(place, id, moment).is_some()
                || !self.refill(place, id, 1)
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
}
