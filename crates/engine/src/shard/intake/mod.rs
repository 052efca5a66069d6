//! Work that waits for a shard's batches because callers, or the engine for them, asked for it.

pub(super) mod budget;
pub(super) mod change;
pub(super) mod dedupe;
pub(super) mod locate;
mod verbs;

use std::collections::BTreeMap;

use self::{budget::Budget, change::changes::Changes, dedupe::keys::DedupeKeys, locate::locates::Locates};
use super::work::{FairQueue, Restore, SettleRequest, ShardEnqueue, ShardLease};

/// Work that waits for a batch, or for a read before it.
#[derive(Default)]
pub(super) struct Intake {
    /// Deliveries to be ended or extended.
    pub settles: FairQueue<SettleRequest>,
    /// Settlements whose deliveries are over.
    pub locates: Locates,
    /// Reserved items to be leased.
    pub leasing: FairQueue<ShardLease>,
    /// Reserved items whose bodies are being read, by read.
    pub awaiting_bodies: BTreeMap<u64, ShardLease>,
    /// Items to be stored.
    pub enqueues: FairQueue<ShardEnqueue>,
    /// At-most-once items that nobody received, to be inserted again.
    pub restores: FairQueue<Restore>,
    /// Changes of single items.
    pub changes: Changes,
    /// Dedupe keys of what waits.
    pub keys: DedupeKeys,
    /// Bytes of enqueues that wait.
    pub budget: Budget,
}
