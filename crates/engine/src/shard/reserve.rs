//! Takes items out of the ready index on their way to a lease, and puts them back.

use forebay_types::{Key, Seq, TopicId};

use super::{OwnedShard, ready::item::ReadyItem, work::ReservedItem};
use crate::{
    clock::Moment,
    planted::{Bug, on},
};

impl OwnedShard {
    /// The best deliverable item of a topic, as far as it is known. Expired items leave the window; the
    /// expiry sweep takes them out of the store.
    pub fn head(&mut self, topic: TopicId, node: Moment) -> Option<Key> {
        let now = self.time.moment(node).now;
        loop {
            let (key, expired) =
                self.topics.get(topic)?.window().first().map(|(key, item)| (key, item.is_expired(now)))?;
            if !expired {
                return Some(key);
            }
            self.topics.with_window(topic, |window| window.pop());
        }
    }

    /// Bytes of the head's body.
    pub fn head_bytes(&self, topic: TopicId) -> usize {
        let head = self.topics.get(topic).and_then(|topic| topic.window().first());
        head.map_or(0, |(_, item)| item.bytes as usize)
    }

    /// As many items are leased as may be, if `more` were leased too.
    pub fn is_lease_limit_reached(&self, topic: TopicId, more: usize) -> bool {
        let limits = &self.settings.limits;
        let reserved = self.topics.get(topic).map_or(0, |topic| topic.reserved);
        self.leases.of_topic(topic) + reserved + more > limits.leased_per_topic && !on(Bug::NoLeaseLimit)
            || self.leases.len() + self.reserved.len() + more > limits.leased_per_shard
    }

    /// Reserves the head: it leaves its window.
    pub fn reserve(&mut self, topic: TopicId) -> Option<(Key, ReadyItem)> {
        let (key, item) = self.topics.with_window(topic, |window| window.pop()).flatten()?;
        if !on(Bug::ReservedForgotten) {
            self.reserved.insert(key.seq);
        }
        if let Some(topic) = self.topics.get_mut(topic) {
            topic.reserved += 1;
        }
        Some((key, item))
    }

    /// Puts reserved items back where they were.
    pub fn unreserve(&mut self, items: Vec<ReservedItem>) {
        for ReservedItem { topic, key, item, .. } in items {
            self.clear_reservation(topic, key.seq);
            self.topics.with_window(topic, |window| window.add(key, item));
        }
    }

    pub(super) fn clear_reservation(&mut self, topic: TopicId, seq: Seq) {
        if self.reserved.remove(&seq)
            && let Some(topic) = self.topics.get_mut(topic)
        {
            topic.reserved -= 1;
        }
    }
}
