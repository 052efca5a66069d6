//! GroupDeadLetters: dead letters of the shards that this node owns, by why they died.

use forebay_types::{ItemId, Namespace, ShardId, Timestamp, Topic};

/// Groups of dead letters are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadGroupsCall {
    /// The tenant.
    pub namespace: Namespace,
    /// The topic. `None`: all of them.
    pub topic: Option<Topic>,
    /// The most dead letters of each shard to look at: the latest.
    pub window: usize,
}

/// Dead letters by why they died.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeadGroups {
    /// In no order.
    pub groups: Vec<DeadGroup>,
    /// How many dead letters were looked at.
    pub looked_at: u64,
    /// Of those, how many are in no group, because there were too many groups.
    pub ungrouped: u64,
    /// How many there are, as far as topics were looked at.
    pub total: u64,
    /// There are more topics than those.
    pub topics_cut: bool,
    /// The shards that were looked at.
    pub shards: Vec<ShardId>,
}

/// Dead letters that died for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadGroup {
    /// Names the group: a hash of the reason.
    pub fingerprint: String,
    /// The text that their reasons have in common, or how they died if they have none.
    pub reason: String,
    /// How many there are.
    pub count: u64,
    /// Some of their topics, by name.
    pub topics: Vec<Topic>,
    /// They have more topics.
    pub topics_cut: bool,
    /// When the first of them died.
    pub first: Timestamp,
    /// When the last of them died.
    pub last: Timestamp,
    /// Some of them.
    pub samples: Vec<ItemId>,
}

impl DeadGroup {
    /// The most topics that a group names.
    pub const TOPICS_MAX: usize = 10;
    /// The most samples that it has.
    pub const SAMPLES_MAX: usize = 5;

    /// Adds another group of the same reason.
    pub fn join(&mut self, other: Self) {
        self.count += other.count;
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.topics_cut |= other.topics_cut;
        for topic in other.topics {
            if let Err(at) = self.topics.binary_search(&topic) {
                self.topics.insert(at, topic);
            }
        }
        self.topics_cut |= self.topics.len() > Self::TOPICS_MAX;
        self.topics.truncate(Self::TOPICS_MAX);
        self.samples.extend(other.samples);
        self.samples.truncate(Self::SAMPLES_MAX);
    }
}
