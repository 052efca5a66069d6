//! What has become of a topic's items.

use std::ops::AddAssign;

use forebay_types::{Namespace, Timestamp, TopicId};
use serde::{Deserialize, Serialize};

/// What has become of a topic's items and deliveries, or how a batch changes that. A delivery that is open is
/// in none of these numbers: deliveries that began are those that ended and those that are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Items that were enqueued.
    pub enqueued: i64,
    /// Deliveries that were acked.
    pub acked: i64,
    /// At-most-once deliveries, without those that nobody received.
    pub consumed: i64,
    /// Deliveries that were nacked, or whose lease ran out.
    pub failed: i64,
    /// Deliveries that ended otherwise: released, or their item was removed.
    pub returned: i64,
    /// Items that became dead letters.
    pub dead_lettered: i64,
}

impl Tally {
    /// Deliveries that have ended.
    pub const fn ended(&self) -> i64 {
        self.acked + self.consumed + self.failed + self.returned
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.enqueued += other.enqueued;
        self.acked += other.acked;
        self.consumed += other.consumed;
        self.failed += other.failed;
        self.returned += other.returned;
        self.dead_lettered += other.dead_lettered;
    }
}

/// A topic's tally, and since when it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicTally {
    /// The time of the first batch in it.
    pub since: Timestamp,
    /// What was counted since.
    pub tally: Tally,
}

impl AddAssign for TopicTally {
    fn add_assign(&mut self, other: Self) {
        self.since = self.since.min(other.since);
        self.tally += other.tally;
    }
}

/// What topics of a namespace have counted that are forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceTally {
    /// The tenant.
    pub namespace: Namespace,
    /// What they counted. `None`: nothing, since the namespace was deleted.
    pub tally: Option<TopicTally>,
    /// The highest number of a topic when the namespace was last deleted: what these topics counted is not
    /// added. 0: it never was.
    pub deleted_through: TopicId,
    /// The batch that wrote it.
    pub changed_in: u64,
}
