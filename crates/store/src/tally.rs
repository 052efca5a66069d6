//! Counts of a topic's items by their outcome.

use std::ops::AddAssign;

use forebay_types::{Namespace, Timestamp, TopicId};
use serde::{Deserialize, Serialize};

/// Counts of a topic's items and deliveries by their outcome, or how a batch changes them. A delivery that is
/// open is in none of these numbers: deliveries that began are those that ended and those that are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Items that were enqueued, or came from the dead letters of another topic.
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
    /// Items whose time to live was over. It is packed behind all else: see [`Exits`].
    #[serde(skip)]
    pub expired: i64,
    /// Items and dead letters that were removed otherwise: cancelled, purged, deleted, or gone to another
    /// topic. It is packed behind all else: see [`Exits`].
    #[serde(skip)]
    pub removed: i64,
}

/// Numbers of a tally that are packed behind all else, since programs of before do not know them.
pub(crate) type Exits = (i64, i64);

impl Tally {
    /// Deliveries that have ended.
    pub const fn ended(&self) -> i64 {
        self.acked + self.consumed + self.failed + self.returned
    }

    /// Items that came in and have not left. Dead letters are among them.
    pub const fn present(&self) -> i64 {
        self.enqueued - self.acked - self.consumed - self.expired - self.removed
    }

    pub(crate) const fn exits(&self) -> Exits {
        (self.expired, self.removed)
    }

    pub(crate) const fn with_exits(self, (expired, removed): Exits) -> Self {
        Self { expired, removed, ..self }
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
        self.expired += other.expired;
        self.removed += other.removed;
    }
}

/// A topic's tally, and since when it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicTally {
    /// The time of the first batch in it.
    pub since: Timestamp,
    /// The tally since then.
    pub tally: Tally,
}

impl AddAssign for TopicTally {
    fn add_assign(&mut self, other: Self) {
        self.since = self.since.min(other.since);
        self.tally += other.tally;
    }
}

/// Tally of the topics of a namespace that are forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceTally {
    /// The tenant.
    pub namespace: Namespace,
    /// Their tally. `None`: nothing, since the namespace was deleted.
    pub tally: Option<TopicTally>,
    /// The highest number of a topic when the namespace was last deleted: what these topics counted is not
    /// added. 0: it never was.
    pub deleted_through: TopicId,
    /// The batch that wrote it.
    pub changed_in: u64,
}
