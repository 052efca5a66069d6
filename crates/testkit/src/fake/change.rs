//! Changes of a batch, and the violations in it.

use std::collections::BTreeSet;

use forebay_store::{DeadLetter, ItemRow, LeaseEntry, Requeue};
use forebay_types::{Seq, Timestamp, TopicId};

/// One change of a committed batch, for the checks after a run.
#[derive(Debug, Clone)]
pub enum Change {
    /// An item's row was inserted.
    Inserted(ItemRow),
    /// A delivery began.
    Leased(LeaseEntry),
    /// A delivery moved to another row of the lease log, perhaps with another deadline.
    Moved(LeaseEntry),
    /// A delivery ended.
    Closed(LeaseEntry),
    /// A scheduled item became ready.
    Promoted(Seq),
    /// A scheduled item is due later.
    PutOff(Seq, Timestamp),
    /// An item returned to its topic.
    Requeued(Requeue),
    /// An item became a dead letter.
    DeadLettered(DeadLetter),
    /// A dead letter was deleted.
    DeadLetterDeleted(DeadLetter),
    /// An item's row, with its last content, was deleted.
    Deleted(ItemRow),
    /// An operation deleted an item.
    Purged(ItemRow),
    /// An operation deleted a dead letter.
    DeadLetterPurged(Seq),
    /// A caller cancelled an item.
    Cancelled(ItemRow),
    /// A caller cancelled a dead letter.
    DeadLetterCancelled(Seq),
    /// An operation made a dead letter an item again.
    Redriven(ItemRow),
    /// A caller gave an item other values: its row since then.
    Updated(ItemRow),
    /// An operation gave an item other values: its row since then.
    Operated(ItemRow),
}

/// Something that a correct engine never does: the broken invariant and a sentence.
pub type Violation = (&'static str, String);

/// The result of applying a batch.
#[derive(Debug, Default)]
pub(super) struct AppliedBatch {
    /// Changes of the batch.
    pub changes: Vec<Change>,
    /// Its violations.
    pub violations: Vec<Violation>,
    /// Items to audit afterwards.
    pub items: BTreeSet<Seq>,
    /// Topics to audit afterwards.
    pub topics: BTreeSet<TopicId>,
    /// Topics that lost the last of their dead letters, after memory had forgotten them.
    pub dormant_dropped: u64,
    /// An operation released leases.
    pub resets: bool,
    /// Deliveries in the batch's lease row.
    pub opened: Vec<LeaseEntry>,
    /// Deliveries that the batch closed in earlier lease rows.
    pub closed: Vec<LeaseEntry>,
}

impl AppliedBatch {
    /// Records a violation.
    pub fn violation(&mut self, invariant: &'static str, what: impl Into<String>) {
        self.violations.push((invariant, what.into()));
    }
}
