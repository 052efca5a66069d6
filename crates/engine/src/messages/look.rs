//! Questions about the queue to the event loop, and their answers. To look changes nothing.

use std::{collections::BTreeMap, ops::Bound, sync::Arc};

use forebay_store::Reader;
use forebay_types::{Namespace, Seq, ShardId, Timestamp, TopicId, TopicName};

use super::look_turn::LookTurn;
use crate::{
    api::{ConsumerFigures, LeaseSnapshot, ShardFigures, TopicFigures, TopicScope, TopicStanding},
    index::ShardIndex,
};

/// A shard that this node owns for certain, and that can be looked at.
#[derive(Clone)]
pub(crate) struct ShardLook {
    /// Its number.
    pub id: ShardId,
    /// Its position.
    pub index: ShardIndex,
    /// The term in which it is owned.
    pub term: u64,
    /// Reads it.
    pub reader: Arc<dyn Reader>,
    /// The turn that all looks at it share.
    pub turn: Arc<LookTurn>,
    /// It has dead letters of dormant topics, of which memory knows nothing else.
    pub has_dormant: bool,
    /// Some topics counted that are forgotten.
    pub has_forgotten: bool,
    /// Counts from before the take-over are in memory.
    pub has_tallies: bool,
}

/// The question for the counts of a shard's forgotten topics.
pub(crate) struct ForgottenQuestion {
    /// The caller.
    pub caller: Namespace,
    /// The shard.
    pub shard: ShardIndex,
    /// The term in which it was looked at.
    pub term: u64,
    /// Where the topics begin. Each namespace is at its place before its topics.
    pub from: Bound<TopicName>,
    /// Up to this one. `None`: to the end.
    pub through: Option<TopicName>,
    /// At most so many namespaces.
    pub most: usize,
}

/// How a topic stands, before the store was asked when its scheduled items are due.
pub(crate) struct StandingSnapshot {
    /// How it stands.
    pub standing: TopicStanding,
    /// Its number in each of the shards, where the shard has it.
    pub topics: Vec<Option<TopicId>>,
}

/// A slice of the topics is asked for.
pub(crate) struct TopicsSlice {
    /// The caller, so that nobody waits behind all calls of another one.
    pub caller: Namespace,
    /// Which topics.
    pub scope: TopicScope,
    /// Where it begins.
    pub from: Bound<TopicName>,
    /// Topics without a row that polls wait for are among them.
    pub waited: bool,
    /// At most so many topics are looked at.
    pub most: usize,
}

/// A slice of the topics.
#[derive(Default)]
pub(crate) struct TopicsSnapshot {
    /// The topics of the scope, by namespace and name.
    pub topics: Vec<TopicSnapshot>,
    /// Their figures in each shard.
    pub shards: BTreeMap<ShardId, ShardFigures>,
    /// The last one that was looked at. `None`: there are no more.
    pub through: Option<TopicName>,
    /// How many were looked at.
    pub looked_at: usize,
    /// Shards of which some topic has items, and that this node may not own any more.
    pub doubtful: Vec<ShardId>,
}

/// A topic in memory.
pub(crate) struct TopicSnapshot {
    /// How it is.
    pub figures: TopicFigures,
    /// Its numbers in the shards that were looked at.
    pub parts: Vec<PartSnapshot>,
}

/// A topic in one shard.
pub(crate) struct PartSnapshot {
    /// The shard.
    pub shard: ShardId,
    /// Its number there.
    pub topic: TopicId,
    /// Items that wait for their time.
    pub scheduled: u64,
    /// Items that could be leased or are.
    pub ready: u64,
    /// Dead letters.
    pub dead: u64,
}

/// Which of these items are out is asked for: leased, or on their way to a lease.
pub(crate) struct OutQuestion {
    /// The caller.
    pub caller: Namespace,
    /// The shard.
    pub shard: ShardIndex,
    /// The term in which it was looked at.
    pub term: u64,
    /// The items.
    pub seqs: Vec<Seq>,
}

/// Which deliveries of a shard are open is asked for.
pub(crate) struct LeaseQuestion {
    /// The caller.
    pub caller: Namespace,
    /// The shard.
    pub shard: ShardIndex,
    /// The term in which it was looked at.
    pub term: u64,
    /// Which deliveries.
    pub which: WhichLeases,
}

impl LeaseQuestion {
    /// How many deliveries are looked at.
    pub fn members(&self) -> usize {
        match self.which {
            WhichLeases::Of(_) => 1,
            WhichLeases::OfTopic { most, .. } | WhichLeases::OfTenant { most, .. } => most,
        }
    }
}

/// Which deliveries.
pub(crate) enum WhichLeases {
    /// That of an item.
    Of(Seq),
    /// The deliveries of a topic, by their ends.
    OfTopic {
        /// The topic.
        topic: TopicId,
        /// Behind this end and item.
        after: (Timestamp, Seq),
        /// At most so many deliveries of all topics are looked at.
        most: usize,
    },
    /// The deliveries of a tenant, or of all, by their ends.
    OfTenant {
        /// The tenant. `None`: all.
        tenant: Option<Namespace>,
        /// Behind this end and item.
        after: (Timestamp, Seq),
        /// At most so many deliveries of all tenants are looked at.
        most: usize,
    },
}

/// Open deliveries.
#[derive(Default)]
pub(crate) struct LeasesSnapshot {
    /// The items with their leases.
    pub leases: Vec<(Seq, LeaseSnapshot)>,
    /// Of tenants: the topics of these items.
    pub topics: Vec<TopicName>,
    /// The last one that was looked at. `None`: there are no more.
    pub through: Option<(Timestamp, Seq)>,
    /// How many were looked at.
    pub looked_at: usize,
}

/// The consumers that a node remembers, without their leases.
pub(crate) struct KnownConsumers {
    /// The first ones, and perhaps some behind these. In no order.
    pub consumers: Vec<ConsumerFigures>,
    /// Some were forgotten.
    pub cut: bool,
}
