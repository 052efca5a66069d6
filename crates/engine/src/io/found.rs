//! Faults of a shard that a take-over finds: it lacks what this node had committed, or its fence is behind
//! its rows. Neither can be mended here. Each is logged as an error, counted, and shown for a day.

use forebay_store::Fence;
use forebay_types::ShardId;

/// The last batch of a shard that its task knows to be committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct LastCommit {
    /// The epoch in which it was committed.
    pub epoch: u64,
    /// Its number. Numbers go on from owner to owner.
    pub batch: u64,
}

impl LastCommit {
    /// A batch is committed, or a take-over has found it.
    pub fn note(&mut self, later: Self) {
        *self = Self { epoch: self.epoch.max(later.epoch), batch: self.batch.max(later.batch) };
    }
}

/// Looks at the fence that a take-over has found, and at the one that it has made of it. Returns what
/// operators should know.
pub(super) fn losses(id: ShardId, known: LastCommit, found: Fence, fence: Fence) -> Vec<String> {
    // The take-over has moved the epoch.
    let found_epoch = fence.epoch.saturating_sub(1);
    let mut losses = Vec::new();
    if found.batch < known.batch || found_epoch < known.epoch {
        metrics::counter!("forebay_lost_batches_total", "shard" => id.to_string())
            .increment(known.batch.saturating_sub(found.batch).max(1));
        let (lost, LastCommit { epoch, batch }) = (found.batch, known);
        tracing::error!(
            shard.id = id.0,
            committed = batch,
            found = lost,
            "shard {id} has lost committed batches: its last one was {batch} of epoch {epoch}, and it has \
             {lost} of epoch {found_epoch}; check the fail-over and durability settings"
        );
        losses.push(format!(
            "it has lost committed batches: the last was {batch} of epoch {epoch}, and when it was taken \
             over in epoch {} it had {lost} of epoch {found_epoch}",
            fence.epoch
        ));
    }
    if found != fence {
        metrics::counter!("forebay_fences_raised_total", "shard" => id.to_string()).increment(1);
        let (of, seq, batch) = (found.batch, found.marks.seq.0, fence.batch);
        let highest = fence.marks.seq.0;
        tracing::error!(
            shard.id = id.0,
            "the fence of shard {id} was behind its rows: batch {of} and item {seq}, raised to {batch} and \
             {highest}; somebody has restored it, so rows may be missing"
        );
        losses.push(format!(
            "its fence was behind its rows when it was taken over in epoch {}: batch {of} and item {seq}, \
             raised to {batch} and {highest}",
            fence.epoch
        ));
    }
    losses
}

#[cfg(test)]
mod tests {
    use forebay_store::HighWaterMarks;
    use forebay_types::{Incarnation, Seq, Timestamp, TopicId};

    use super::*;

    fn fence(epoch: u64, batch: u64, seq: u64) -> Fence {
        let marks = HighWaterMarks { seq: Seq(seq), topic: TopicId(0), rank: 0, time: Timestamp::MIN };
        Fence { epoch, incarnation: Incarnation([0; 16]), batch, marks }
    }

    fn found(known: (u64, u64), found: Fence, fence: Fence) -> usize {
        let (epoch, batch) = known;
        losses(ShardId(1), LastCommit { epoch, batch }, found, fence).len()
    }

    #[test]
    fn a_fence_with_less_than_was_committed_has_lost_it() {
        assert_eq!(found((0, 0), fence(1, 0, 0), fence(1, 0, 0)), 0, "a first owner");
        assert_eq!(found((3, 120), fence(4, 120, 7), fence(4, 120, 7)), 0, "nothing has happened since");
        assert_eq!(found((3, 120), fence(9, 240, 7), fence(9, 240, 7)), 0, "others have gone on");
        assert_eq!(found((3, 120), fence(4, 119, 7), fence(4, 119, 7)), 1);
        assert_eq!(found((3, 120), fence(3, 120, 7), fence(3, 120, 7)), 1, "a take-over is lost");
        assert_eq!(found((3, 120), fence(4, 110, 7), fence(4, 118, 9)), 2, "and its rows are newer");
    }

    #[test]
    fn what_is_known_never_falls() {
        let mut known = LastCommit { epoch: 3, batch: 120 };
        known.note(LastCommit { epoch: 4, batch: 90 });
        assert_eq!(known, LastCommit { epoch: 4, batch: 120 });
    }
}
