//! Enqueues that meet a waiting poll: the items are inserted and leased in one transaction, so that such a delivery
//! takes one commit instead of two.
//!
//! A poll waits only while nothing of its topics is ready. What this batch makes ready may go to it if that still holds
//! for the whole node when the batch is formed, and if the batch brings nothing of the topic back that the poll would
//! have to be given first. The poll leaves the line when the batch is formed; if the batch does not happen it waits
//! again, at its old place.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use forebay_store::Sweep;
use forebay_types::{DeliveryPolicy, Key, State, TopicId, TopicName};

use crate::{
    core::Core,
    form::{Formed, Former},
    op::{LeasePart, Picked},
    planted::{Bug, on},
    settle::Effect,
    time::Moment,
    window::Entry,
};

/// A poll that waits for a topic, and what it takes of it.
pub(crate) struct Waiting {
    pub max_items: usize,
    pub max_bytes: usize,
    /// What its leases look like; without items yet.
    pub part: LeasePart,
}

/// The polls that wait for the topics of a shard's waiting enqueues, first come first.
pub(crate) type Waiters = HashMap<TopicName, Vec<Waiting>>;

/// An item of the batch that may be handed out: where its call stands in the batch, and its place in the call.
type Candidate = (Key, TopicId, usize, usize);

impl Core {
    /// Who waits for what a shard is about to store.
    pub fn waiters(&mut self, place: usize) -> Waiters {
        let mut waiters = Waiters::new();
        let Some(owned) = &self.shards[place].owned else { return waiters };
        let mut names: Vec<TopicName> = Vec::new();
        for part in owned.enqueues.iter() {
            for item in &part.items {
                let last = names.last();
                if last.is_none_or(|name| name.topic != item.topic || name.namespace != part.namespace) {
                    names.push(TopicName { namespace: part.namespace.clone(), topic: item.topic.clone() });
                }
            }
        }
        names.sort_unstable();
        names.dedup();
        let moment = self.time.moment();
        for name in names {
            let Some(topic) = self.topics.get(&name) else { continue };
            let waiting = topic.waiters.iter().filter_map(|id| self.polls.get(id)?.waiting(*id, &name));
            let waiting: Vec<_> = waiting.collect();
            if !waiting.is_empty() && (self.nothing_ready(&name, moment) || on(Bug::MeetsTooEarly)) {
                waiters.insert(name, waiting);
            }
        }
        waiters
    }

    /// Whether no shard of the node has anything of a topic that could be delivered, known or not.
    fn nothing_ready(&mut self, name: &TopicName, moment: Moment) -> bool {
        let Some(topic) = self.topics.get(name) else { return true };
        for (place, id) in topic.parts.clone() {
            if !self.shards[place].is_merged() {
                continue;
            }
            if self.head(place, id, moment).is_some() {
                return false;
            }
            let Some(owned) = &self.shards[place].owned else { continue };
            let Some(topic) = owned.topics.get(&id) else { continue };
            let limits = &self.settings.limits;
            if topic.window.is_reading()
                || !topic.window.is_complete() && owned.beyond(id) > 0
                // Near the limits the usual path decides.
                || owned.leases.of_topic(id) + topic.reserved + limits.members > limits.leased_per_topic
                || owned.leases.len() + owned.reserved.len() + limits.members > limits.leased_per_shard
            {
                return false;
            }
        }
        true
    }
}

impl Former<'_, '_> {
    /// Hands what the batch inserts to the polls that wait for it. Returns those, which wait no more.
    pub fn meet(&mut self, mut waiters: Waiters) -> BTreeSet<u64> {
        let mut met = BTreeSet::new();
        if waiters.is_empty() {
            return met;
        }
        let mut candidates: BTreeMap<TopicName, Vec<Candidate>> = BTreeMap::new();
        for (call, formed) in self.formed.iter().enumerate() {
            let Formed::Enqueued { part, results } = formed else { continue };
            for (index, (item, result)) in part.items.iter().zip(results).enumerate() {
                let Ok(stored) = result else { continue };
                if stored.state == State::Ready && item.policy == DeliveryPolicy::AtLeastOnce {
                    let name = TopicName { namespace: part.namespace.clone(), topic: item.topic.clone() };
                    if waiters.contains_key(&name) {
                        candidates.entry(name).or_default().push((stored.key, stored.topic, call, index));
                    }
                }
            }
        }
        for (name, mut found) in candidates {
            if self.brings_back(found[0].1) && !on(Bug::MeetsTooEarly) {
                continue;
            }
            found.sort_unstable_by_key(|(key, ..)| *key);
            let mut found = found.into_iter().peekable();
            for waiting in waiters.remove(&name).unwrap_or_default() {
                if found.peek().is_none() {
                    break;
                }
                // A poll that waits for several topics takes what the first of them has.
                if met.insert(waiting.part.poll) {
                    self.hand_out(waiting, &mut found);
                }
            }
        }
        met
    }

    fn hand_out(
        &mut self,
        waiting: Waiting,
        found: &mut std::iter::Peekable<impl Iterator<Item = Candidate>>,
    ) {
        let Waiting { max_items, max_bytes, mut part } = waiting;
        let mut bytes = 0;
        while part.picked.len() < max_items
            && let Some(&(key, topic, call, index)) = found.peek()
        {
            let Formed::Enqueued { part: from, results } = &mut self.formed[call] else { return };
            let (item, Ok(stored)) = (&from.items[index], &mut results[index]) else { return };
            bytes += item.body.bytes();
            if !part.picked.is_empty() && bytes > max_bytes {
                break;
            }
            stored.met = true;
            let entry = Entry { body: Some(item.body.clone()), ..Entry::of_new(item) };
            part.picked.push(Picked {
                position: part.picked.len(),
                topic,
                name: item.topic.clone(),
                key,
                entry,
            });
            found.next();
        }
        let handed = part.picked.iter().map(|picked| self.lease(&part, picked)).collect();
        self.formed.push(Formed::Met { part, handed });
    }

    /// Whether the batch makes other items of a topic ready, which may be better.
    fn brings_back(&self, topic: TopicId) -> bool {
        let due = self.formed_page.as_ref().filter(|formed| formed.page.sweep == Sweep::Due);
        due.is_some_and(|formed| formed.page.rows.iter().any(|row| row.topic == topic))
            || self.formed.iter().any(|formed| match formed {
                Formed::Settled(of) => of.lease.topic == topic && matches!(of.effect, Effect::Ready(..)),
                Formed::Restored(picked) => picked.topic == topic,
                _ => false,
            })
    }
}
