//! Work that a shard finds by itself: sweeps, operations, the tables of dedupe keys, the sets of shards.

pub(super) mod generations;
pub(super) mod operation;
pub(super) mod sweep;
mod verbs;

use forebay_store::Checkpoint;
use forebay_types::{Monotonic, Timestamp};

use self::{generations::Generations, operation::operations::Operations, sweep::sweeper::Sweeps};
use super::work::NextRecord;

/// Work that a shard finds by itself, and when it may go on.
pub(super) struct Upkeep {
    /// The sweeps, and the page that waits.
    pub sweeps: Sweeps,
    /// Its parts of operations, and the page that waits.
    pub operations: Operations,
    /// The generations of the dedupe table.
    pub generations: Generations,
    /// The sets of shards as they are to be recorded, by a batch of their own.
    pub next_record: Option<NextRecord>,
    /// The sets of shards are not recorded before.
    pub topology_after: Monotonic,
    /// Batches fold no counts, rewrite no lease row and drop no topic before: the database refused it.
    pub not_before: Monotonic,
}

impl Upkeep {
    /// Of a shard that was just taken over.
    pub fn new(
        checkpoints: &[Checkpoint],
        generations: Vec<u64>,
        operations: Operations,
        next_record: Option<NextRecord>,
    ) -> Self {
        let checkpoint = |sweep| {
            let stored = checkpoints.iter().find(|stored| stored.sweep == sweep);
            stored.map_or(Timestamp::MIN, |stored| stored.at)
        };
        Self {
            sweeps: Sweeps::new(checkpoint),
            operations,
            generations: Generations::new(generations),
            next_record,
            topology_after: Monotonic::default(),
            not_before: Monotonic::default(),
        }
    }
}
