//! A shard's part of a node's status.

use forebay_types::Timestamp;

use super::{OwnedShard, contents::topics::figures::TopicTotals};
use crate::api::{ShardStatus, SweepStatus};

impl OwnedShard {
    /// The part of the status that the shard itself knows. It costs the same however many topics there are.
    pub fn status(&self) -> ShardStatus {
        let totals = TopicTotals::of(&self.contents.topics.sums(), self.contents.leases.len());
        let mut status = ShardStatus {
            id: self.id.0,
            ready: totals.ready,
            leased: totals.leased,
            scheduled: totals.scheduled,
            dead: totals.dead,
            epoch: self.tenure.epoch,
            batch: self.tenure.batch,
            topics: self.contents.topics.len(),
            index_bytes: self.contents.topics.index_bytes(),
            commit_micros: u64::try_from(self.tenure.commit_took.as_micros()).unwrap_or(u64::MAX),
            ..ShardStatus::default()
        };
        status.sweeps = (self.upkeep.sweeps.all())
            .map(|sweeper| SweepStatus {
                name: sweeper.sweep.name().to_owned(),
                moved: sweeper.moved,
                checkpoint_micros: sweeper.checkpoint.as_micros(),
                next_micros: sweeper.next().map(Timestamp::as_micros),
            })
            .into();
        status
    }
}
