//! One shard's whole memory, and everything that may change it.
//!
//! [`OwnedShard`] is what a node knows of a shard that it owns: to have one is to own the shard. It is as of
//! the last resolved batch; what the batch in flight will change is in [`commit::in_flight::InFlight`] until
//! that is resolved. Its parts are private to this folder. It knows no other shard, no caller and no
//! connection, and takes time as an argument.
//!
//! Each group of its fields is a folder. A part with private fields has a file of its own, and the methods of
//! [`OwnedShard`] that use it are in the `verbs.rs` beside it. `batch/` and `loss/` go through all groups.

mod batch;
mod check;
mod commit;
mod contents;
pub(crate) mod image;
mod intake;
mod loss;
mod status;
mod tenure;
#[cfg(test)]
pub(crate) mod tests;
mod upkeep;
pub(crate) mod work;

use std::sync::Arc;

use forebay_store::Fence;
use forebay_types::{Monotonic, Seq, ShardId, TopicId};

pub(crate) use self::{
    batch::{
        BuildContext, BuiltBatch,
        apply::{CommittedBatch, TIMEOUT_GRACE_MAX, TIMEOUT_GRACE_MIN},
        undo::UndoneBatch,
    },
    commit::in_flight::{LeaseOutcome, PlannedAction, PlannedSettle, SettleEffect, StoredItem},
    contents::{
        ready::verbs::Fetch,
        topics::{
            figures::TopicTotals,
            rates::{Flow, RecentFlow},
            state::LastTimes,
            table::NamedTopic,
        },
    },
    intake::dedupe::keys::Duplicate,
    loss::{
        abandoned::{LostShardWork, LostWork},
        overdue::{Caller, WaitingWork},
        topics::LostTopics,
    },
    upkeep::{generations::GenerationChange, operation::verbs::PageOutcome},
};
use self::{
    commit::Commit, contents::Contents, image::ShardImage, intake::Intake, tenure::Tenure, upkeep::Upkeep,
    work::NextRecord,
};
use crate::api::Settings;

/// A shard that this node owns.
pub(crate) struct OwnedShard {
    /// Its number.
    id: ShardId,
    /// How the engine works.
    settings: Arc<Settings>,
    /// The fence, how long it may be trusted, and the shard's time.
    tenure: Tenure,
    /// Its topics, their ready items, its open deliveries.
    contents: Contents,
    /// Work that waits because it was asked for.
    intake: Intake,
    /// Work that it finds by itself.
    upkeep: Upkeep,
    /// The batch on its way to the store, and what the next one may be.
    commit: Commit,
}

/// The result of a take-over.
pub(crate) struct LoadedShard {
    /// The fence as the take-over left it.
    pub fence: Fence,
    /// The shard's memory.
    pub image: ShardImage,
    /// The most bytes that one batch may carry.
    pub batch_bytes: usize,
    /// When the take-over's call began.
    pub began: Monotonic,
    /// Leases are not timed out before.
    pub timeouts_after: Monotonic,
    /// The sets of shards to be recorded, if they are not.
    pub next_record: Option<NextRecord>,
}

impl OwnedShard {
    /// A shard that was just taken over.
    pub fn new(id: ShardId, settings: Arc<Settings>, loaded: LoadedShard, at: Monotonic) -> Self {
        let LoadedShard { fence, image, batch_bytes, began, timeouts_after, next_record } = loaded;
        let ShardImage { topics, leases, tenants, prefetches, checkpoints, generations, operations } = image;
        Self {
            id,
            tenure: Tenure::new(&fence, &settings, began, batch_bytes, at),
            contents: Contents::new(topics, leases, tenants, prefetches, settings.index_bytes),
            intake: Intake::default(),
            upkeep: Upkeep::new(&checkpoints, generations, operations, next_record),
            commit: Commit { timeouts_after, ..Commit::default() },
            settings,
        }
    }

    /// An item changed: scans and reads under way may show its past.
    fn invalidate(&mut self, topic: TopicId, seq: Seq) {
        self.tenure.spans.left(seq);
        self.upkeep.sweeps.invalidate(seq);
        self.upkeep.operations.invalidate(seq);
        self.intake.changes.invalidate(seq);
        self.contents.topics.invalidate(topic, seq);
    }
}
