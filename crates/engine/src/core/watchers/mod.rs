//! Other nodes that follow topics of this node's shards: what each of them was told, what it wants, and what
//! it is offered. All of it goes with the link.

mod link;
mod topic;

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::RandomState,
    sync::Arc,
};

use forebay_types::{Monotonic, TopicName};
use tokio::sync::mpsc;

use self::{link::Link, topic::WatchedTopic};
use crate::{
    api::{ReadyState, Subscription, TopicHead},
    core::{news, topic_turns::TopicTurns},
    messages::tenant_budget::{TenantBudget, paid_at_once_by},
    striped::StripedMap,
};

/// Bytes of a subscription beside the name of its topic.
const SUBSCRIPTION_BYTES: usize = 256;
/// Subscriptions of links that have ended of which one turn lets go, and topics that are due in one turn.
const SLICE: usize = 512;

/// Topics that are followed: there may be some hundred thousand, and callers choose the names.
type WatchedTopics = StripedMap<TopicName, WatchedTopic, RandomState>;

/// The nodes that follow topics.
#[derive(Debug)]
pub(crate) struct Watchers {
    /// Their links, by number.
    links: BTreeMap<u64, Link>,
    /// The topics that are followed.
    topics: WatchedTopics,
    /// Topics that are to be looked at now.
    touched: TopicTurns,
    /// Topics that are to be looked at then.
    due: BTreeSet<(Monotonic, TopicName)>,
    /// Links that have ended, and whose subscriptions are let go of in slices.
    ended: Vec<(u64, BTreeSet<TopicName>)>,
    /// Bytes of all subscriptions.
    bytes: Arc<TenantBudget>,
}

impl Watchers {
    /// Has room for subscriptions of so many bytes; a tenant may have a quarter.
    pub fn new(bytes: usize) -> Self {
        Self {
            links: BTreeMap::new(),
            topics: WatchedTopics::default(),
            touched: TopicTurns::default(),
            due: BTreeSet::new(),
            ended: Vec::new(),
            bytes: TenantBudget::new(bytes),
        }
    }

    /// Bytes of all subscriptions.
    pub fn bytes(&self) -> usize {
        self.bytes.used()
    }

    /// A node follows topics from now on.
    pub fn begin(&mut self, number: u64, heads: mpsc::Sender<Vec<TopicHead>>) {
        self.links.insert(number, Link::new(heads));
    }

    /// A link has ended.
    pub fn end(&mut self, number: u64) {
        if let Some(link) = self.links.remove(&number) {
            self.ended.push((number, link.topics));
        }
    }

    /// A node subscribes to topics, wants other numbers of items, or is not interested any more.
    pub fn subscribe(&mut self, number: u64, subscriptions: Vec<Subscription>) {
        let Some(link) = self.links.get_mut(&number) else { return };
        for Subscription { name, wanted, payer } in subscriptions {
            match wanted {
                Some(wanted) => {
                    let topic = self.topics.or_default(name.clone());
                    if !topic.wants(number, wanted) {
                        let size = name.namespace.len() + name.topic.len() + SUBSCRIPTION_BYTES;
                        match paid_at_once_by(payer, || self.bytes.take(&name.namespace, size)) {
                            Ok(charge) => topic.begin(number, wanted, charge),
                            Err(_) => {
                                metrics::counter!("forebay_limit_refusals_total", "limit" => "subscriptions")
                                    .increment(1);
                                if topic.is_unused() {
                                    self.topics.remove(&name);
                                }
                                continue;
                            }
                        }
                    }
                    link.topics.insert(name.clone());
                    self.touched.insert(name, ());
                }
                None => {
                    link.forget(&name);
                    forget(&mut self.topics, &name, number);
                    self.touched.insert(name, ());
                }
            }
        }
    }

    /// A node leases items of a topic, which answers what it was offered.
    pub fn fetches(&mut self, number: u64, name: &TopicName) {
        if let Some(topic) = self.topics.get_mut(name) {
            topic.answered(number);
            self.touched.insert(name.clone(), ());
        }
    }

    /// A node has just heard this of a topic, in an answer.
    pub fn heard(&mut self, number: u64, name: &TopicName, state: ReadyState) {
        if let Some(topic) = self.topics.get_mut(name) {
            topic.heard(number, state);
        }
    }

    /// Ready items of a topic may have changed.
    pub fn touch(&mut self, name: &TopicName) {
        if !self.topics.is_empty() && self.topics.contains_key(name) {
            self.touched.insert(name.clone(), ());
        }
    }

    /// How many nodes have polls that wait for a topic, or a prefix.
    pub fn wanting(&self, name: &TopicName) -> usize {
        self.topics.get(name).map_or(0, WatchedTopic::wanting)
    }

    /// Some node follows a topic, or a prefix.
    pub fn follows(&self, name: &TopicName) -> bool {
        self.topics.contains_key(name)
    }

    /// Topics that are due are to be looked at now. Links that have ended are let go of.
    pub fn begin_turn(&mut self, at: Monotonic) {
        self.let_go();
        for _ in 0..SLICE {
            if self.due.first().is_none_or(|(due, _)| *due > at) {
                break;
            }
            let Some((_, name)) = self.due.pop_first() else { break };
            if let Some(topic) = self.topics.get_mut(&name) {
                topic.due = None;
                self.touched.insert(name, ());
            }
        }
    }

    /// Takes the next topic that is to be looked at now, in turn by tenant.
    pub fn next_touched(&mut self) -> Option<TopicName> {
        self.touched.next().map(|(name, ())| name)
    }

    /// A slice of the subscriptions of links that have ended.
    fn let_go(&mut self) {
        let Some((number, names)) = self.ended.last_mut() else { return };
        for _ in 0..SLICE {
            let Some(name) = names.pop_first() else { break };
            forget(&mut self.topics, &name, *number);
            self.touched.insert(name, ());
        }
        if names.is_empty() {
            self.ended.pop();
        }
    }

    /// A topic is to be looked at again then, if not before.
    pub fn look_again(&mut self, name: &TopicName, at: Monotonic) {
        let Some(topic) = self.topics.get_mut(name) else { return };
        if topic.due.is_some_and(|due| due <= at) {
            return;
        }
        if let Some(due) = topic.due.replace(at) {
            self.due.remove(&(due, name.clone()));
        }
        self.due.insert((at, name.clone()));
    }

    /// The ready items of a topic are these: offers them to nodes that want some, and tells nodes that have
    /// not heard of it for long enough.
    pub fn tell(&mut self, name: &TopicName, state: ReadyState, at: Monotonic) {
        let Some(topic) = self.topics.get_mut(name) else { return };
        let news = topic.look(state, at);
        let next = topic.next_look();
        for (number, offered) in news {
            if let Some(link) = self.links.get_mut(&number) {
                link.tell(name, state, offered);
            }
        }
        if let Some(next) = next {
            self.look_again(name, next);
        }
    }

    /// Sends what nodes are to be told. Returns whether something is left: for want of room, or of a turn.
    pub fn flush(&mut self) -> bool {
        news::send(self.links.values_mut().map(|link| &mut link.news))
    }

    /// When something is to be looked at without an event.
    pub fn next_look(&self) -> Option<Monotonic> {
        if !self.touched.is_empty() || !self.ended.is_empty() {
            return Some(Monotonic::default());
        }
        self.due.first().map(|(at, _)| *at)
    }
}

/// A node follows a topic no more.
fn forget(topics: &mut WatchedTopics, name: &TopicName, number: u64) {
    if let Some(topic) = topics.get_mut(name) {
        topic.end(number);
        if topic.is_unused() {
            topics.remove(name);
        }
    }
}
