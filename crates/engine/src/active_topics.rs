//! GetActiveTopics: topics that have a ready item, in the order of their heads. The order is kept up to date
//! only where somebody asks: a change just marks its topic.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
    ops::Bound,
    time::Duration,
};

use forebay_types::{Monotonic, Namespace, Reason, Refusal, Timestamp, Topic, TopicName};

use crate::{
    ActiveTopic, ActiveTopics, ActiveTopicsCall, TopicPosition,
    core::{Core, RETRY, Timer},
    event::Reply,
};

/// How long a page waits for heads that have not been read yet.
const HEADS_PATIENCE: Duration = Duration::from_secs(1);

/// A page that waits for heads.
pub(crate) struct WaitingPage {
    call: ActiveTopicsCall,
    reply: Reply<ActiveTopics>,
    until: Monotonic,
}

/// The active topics of one namespace.
#[derive(Debug, Default)]
pub(crate) struct ActiveIndex {
    order: BTreeSet<TopicPosition>,
    place: HashMap<Topic, TopicPosition>,
    stale: BTreeSet<Topic>,
}

impl ActiveIndex {
    /// The topic's head may have changed.
    pub fn note(&mut self, topic: &Topic) {
        self.stale.insert(topic.clone());
    }

    fn set(&mut self, topic: Topic, position: Option<TopicPosition>) {
        let old = match &position {
            Some(position) => self.place.insert(topic, position.clone()),
            None => self.place.remove(&topic),
        };
        if let Some(old) = old {
            self.order.remove(&old);
        }
        self.order.extend(position);
    }
}

impl Core {
    pub fn active_topics(&mut self, call: ActiveTopicsCall, reply: Reply<ActiveTopics>) {
        for place in 0..self.shards.len() {
            self.note_changes(place);
        }
        if self.refresh(&call.namespace) {
            let _ = reply.send(Ok(self.active_page(&call)));
        } else {
            let until = self.time.monotonic().plus(HEADS_PATIENCE);
            self.pages.push(WaitingPage { call, reply, until });
            self.timers.push(Reverse((until, Timer::Pages)));
        }
    }

    /// Answers the pages whose heads have been read meanwhile, and those that have waited long enough.
    pub fn serve_pages(&mut self) {
        let at = self.time.monotonic();
        for WaitingPage { call, reply, until } in std::mem::take(&mut self.pages) {
            if self.refresh(&call.namespace) {
                let _ = reply.send(Ok(self.active_page(&call)));
            } else if until <= at || self.is_stopping() {
                let message = "the heads of some topics have not been read yet";
                let _ = reply.send(Err(Refusal::new(Reason::ShardUnavailable, message).retry_after(RETRY)));
            } else if !reply.is_closed() {
                self.pages.push(WaitingPage { call, reply, until });
            }
        }
    }

    fn active_page(&self, call: &ActiveTopicsCall) -> ActiveTopics {
        let Some(active) = self.active.get(&call.namespace) else { return ActiveTopics::default() };
        let from = call.after.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let mut rest = active
            .order
            .range((from, Bound::Unbounded))
            .filter(|position| position.topic.starts_with(&call.prefix));
        let topics = rest
            .by_ref()
            .take(call.limit)
            .map(|position| self.active_topic(&call.namespace, position))
            .collect();
        ActiveTopics { topics, more: rest.next().is_some() }
    }

    fn active_topic(&self, namespace: &Namespace, position: &TopicPosition) -> ActiveTopic {
        let name = TopicName { namespace: namespace.clone(), topic: position.topic.clone() };
        let mut topic = ActiveTopic { position: position.clone(), ready: 0, leased: 0, scheduled: 0 };
        for (place, id) in self.topics.get(&name).map(|topic| topic.parts.as_slice()).unwrap_or_default() {
            let Some(owned) = &self.shards[*place].owned else { continue };
            let Some(state) = owned.topics.get(id) else { continue };
            let leased = owned.leases.of_topic(*id);
            topic.ready += u64::try_from(state.counts.ready).unwrap_or(0).saturating_sub(leased as u64);
            topic.leased += leased as u64;
            topic.scheduled += u64::try_from(state.counts.scheduled).unwrap_or(0);
        }
        topic
    }

    /// Brings the order of a namespace up to date. Returns whether every head is known.
    fn refresh(&mut self, namespace: &Namespace) -> bool {
        let mut active = self.active.remove(namespace).unwrap_or_else(|| ActiveIndex {
            stale: self
                .topics
                .keys()
                .filter(|name| name.namespace == *namespace)
                .map(|name| name.topic.clone())
                .collect(),
            ..ActiveIndex::default()
        });
        let moment = self.time.moment();
        let mut unknown = BTreeSet::new();
        for topic in std::mem::take(&mut active.stale) {
            let name = TopicName { namespace: namespace.clone(), topic: topic.clone() };
            if self.unread(&name) {
                unknown.insert(topic);
                continue;
            }
            let parts = self.topics.get(&name).map(|topic| topic.parts.clone()).unwrap_or_default();
            let head = parts.into_iter().filter_map(|(place, id)| self.head(place, id, moment)).min();
            let position = head.map(|(best_priority, rank, ..)| TopicPosition {
                best_priority,
                oldest_ready_at: Timestamp::from_micros(rank),
                topic: topic.clone(),
            });
            active.set(topic, position);
        }
        let known = unknown.is_empty();
        active.stale = unknown;
        if self.topics_of.contains_key(namespace) || !known {
            self.active.insert(namespace.clone(), active);
        }
        known
    }
}
