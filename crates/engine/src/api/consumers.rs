//! ListConsumers: who asks for items, and who has leases, as operators look at it.

use std::{collections::BTreeSet, time::Duration};

use forebay_types::{Namespace, ShardId, Timestamp, Topic};

/// From where a dequeue call comes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallerFrom {
    /// Host and port. Empty: not known.
    pub peer: String,
    /// The program, as it calls itself. May be empty.
    pub client: String,
}

/// Consumers are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumersCall {
    /// The namespace of the consumers. `None`: all namespaces.
    pub namespace: Option<Namespace>,
    /// Go on behind this namespace and name.
    pub after: Option<ConsumerName>,
    /// At most so many.
    pub limit: usize,
}

/// By which consumers are in order: a namespace, and a name in it.
pub type ConsumerName = (Namespace, String);

impl ConsumersCall {
    /// Whether consumers of a namespace may be among them.
    pub fn has_namespace(&self, namespace: &Namespace) -> bool {
        self.namespace.as_ref().is_none_or(|own| own == namespace)
            && self.after.as_ref().is_none_or(|(after, _)| after <= namespace)
    }

    /// Whether a consumer is among them.
    pub fn has(&self, namespace: &Namespace, name: &str) -> bool {
        self.has_namespace(namespace)
            && self.after.as_ref().is_none_or(|(of, after)| (of, after.as_str()) < (namespace, name))
    }
}

/// Consumers, as this node knows them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConsumersSnapshot {
    /// By namespace and name.
    pub consumers: Vec<ConsumerFigures>,
    /// Behind this one there are more that were not asked for. `None`: there are none.
    pub through: Option<ConsumerName>,
    /// Some were forgotten since the node began, or are too many.
    pub cut: bool,
    /// The shards that were looked at.
    pub shards: Vec<ShardId>,
}

/// A consumer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConsumerFigures {
    /// Its tenant.
    pub namespace: Namespace,
    /// The name that it gives itself. May be empty.
    pub name: String,
    /// Topics that it has asked for, or has leases of. The first ones.
    pub topics: BTreeSet<Topic>,
    /// There are more topics.
    pub topics_cut: bool,
    /// Items that it has leased.
    pub leased: u64,
    /// When the oldest of these deliveries began.
    pub oldest_lease_at: Option<Timestamp>,
    /// Its deliveries acked a second.
    pub acked: f64,
    /// Its deliveries a second that were nacked, or whose lease ran out.
    pub failed: f64,
    /// When it asked last, and from where.
    pub last_seen: Option<(Timestamp, CallerFrom)>,
}

impl ConsumerFigures {
    /// Topics that are told of a consumer.
    pub const TOPICS_MAX: usize = 5;
    /// Consumers that are told at once.
    pub const CONSUMERS_MAX: usize = 1_000;
    /// Over how long rates are counted.
    pub const WINDOW: Duration = Duration::from_secs(60);

    /// It has to do with a topic.
    pub fn add_topic(&mut self, topic: &Topic) {
        if self.topics.len() < Self::TOPICS_MAX {
            self.topics.insert(topic.clone());
        } else {
            self.topics_cut |= !self.topics.contains(topic);
        }
    }

    /// It has a lease of a topic.
    pub fn add_lease(&mut self, topic: &Topic, leased_at: Timestamp) {
        self.add_topic(topic);
        self.leased += 1;
        self.oldest_lease_at = self.oldest_lease_at.into_iter().chain([leased_at]).min();
    }
}
