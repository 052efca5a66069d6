//! The traits behind which the kinds of store stand. `testkit` runs one contract suite against them all.

use std::sync::Arc;

use async_trait::async_trait;
use forebay_types::{Body, Incarnation, Key, Seq, Timestamp, TopicId};

use crate::{
    Batch, CommitError, DedupeHit, DueRow, Fence, MigrateError, Observation, ReadyRow, Settings,
    ShardSnapshot, StoreError, Sweep,
};

/// One shard, as anybody may reach it. Cheap to make: it connects when first used.
#[async_trait]
pub trait Shard: Send + Sync + 'static {
    /// Where it is kept. Shards with one answer share a server, and so its strength and its clock.
    fn server(&self) -> String;

    /// Creates or upgrades the schema under a lock; returns the versions that were applied.
    async fn migrate(&self) -> Result<Vec<u32>, MigrateError>;

    /// Looks at the schema's version ([`crate::ErrorClass::Schema`] if it is not the one that this program
    /// knows) and at the server's settings.
    async fn check(&self) -> Result<Settings, StoreError>;

    /// Who owns the shard, and whether it moved.
    async fn observe(&self) -> Result<Observation, StoreError>;

    /// Takes the shard over: kills the old owner's connections, then moves the fence to the next epoch and
    /// writes the heartbeat in one transaction. `seen` is what the caller saw before: if the epoch or the
    /// batch number has moved since, the claim fails with `Ok(None)` and nothing is changed.
    async fn take_over(
        &self,
        claim: &Claim,
        seen: &Observation,
    ) -> Result<Option<ShardConnections>, StoreError>;
}

/// Who wants to own a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Random, never used before.
    pub incarnation: Incarnation,
    /// Where this node can be asked, `host:port`.
    pub address: String,
}

/// A shard that was taken over. Dropping it closes its connections and gives nothing up.
pub struct ShardConnections {
    /// The fence as the take-over left it.
    pub fence: Fence,
    /// Writes batches.
    pub writer: Box<dyn Writer>,
    /// Renews the heartbeat, on a connection of its own.
    pub heartbeat: Box<dyn Heartbeat>,
    /// Reads, on connections of its own.
    pub reader: Arc<dyn Reader>,
}

/// What became of a batch whose COMMIT failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is there.
    Committed,
    /// It is not there, and never will be.
    NotCommitted,
    /// The shard has another owner: nobody can tell.
    Foreign,
}

/// The one connection that writes a shard.
#[async_trait]
pub trait Writer: Send {
    /// Commits a batch. The caller never drops this future half way.
    async fn commit(&mut self, batch: &Batch) -> Result<(), CommitError>;

    /// After [`CommitError::Unknown`], [`CommitError::FenceMoved`] or a lost connection: kills the old connection where it may
    /// live, connects anew, and reads the fence row with a lock. An error means: ask again.
    async fn resolve(&mut self, number: u64) -> Result<Outcome, StoreError>;

    /// Gives the shard up: clears the address in the heartbeat, if the fence is still ours.
    async fn release(&mut self) -> Result<(), StoreError>;
}

/// Renews the claim on a shard.
#[async_trait]
pub trait Heartbeat: Send {
    /// Moves the heartbeat's counter on by compare-and-set on epoch and incarnation. `Ok(None)`: the shard
    /// has another owner. `Ok(Some(clock))`: renewed; the server's clock, if it has one of its own.
    async fn renew(&mut self) -> Result<Option<Option<Timestamp>>, StoreError>;

    /// Makes a generation of the dedupe table; one that is there already is left alone.
    async fn create_generation(&mut self, number: u64) -> Result<(), StoreError>;

    /// Drops a generation; one that is gone already is no error.
    async fn drop_generation(&mut self, number: u64) -> Result<(), StoreError>;
}

/// Reads what is committed. May be called from many places at once.
#[async_trait]
pub trait Reader: Send + Sync + 'static {
    /// What a new owner needs to know.
    async fn load(&self) -> Result<ShardSnapshot, StoreError>;

    /// The first `limit` ready items of a topic after `after`, in delivery order. With `bodies`, the payloads
    /// come along.
    async fn ready(
        &self,
        topic: TopicId,
        after: Key,
        limit: usize,
        bodies: bool,
    ) -> Result<Vec<ReadyRow>, StoreError>;

    /// The bodies of items; an item that is not there is left out.
    async fn bodies(&self, seqs: &[Seq]) -> Result<Vec<(Seq, Body)>, StoreError>;

    /// The first `limit` rows of a sweep's table with `from <= at <= to`, in order of time and seq.
    async fn due(
        &self,
        sweep: Sweep,
        from: Timestamp,
        to: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueRow>, StoreError>;

    /// The earliest time at or after `from` in a sweep's table.
    async fn next_due(&self, sweep: Sweep, from: Timestamp) -> Result<Option<Timestamp>, StoreError>;

    /// What is stored under these hashes in these generations.
    async fn dedupe(&self, generations: &[u64], hashes: &[[u8; 16]]) -> Result<Vec<DedupeHit>, StoreError>;

    /// Where an item is that is not leased: waiting (`Some(false)`), dead (`Some(true)`) or gone (`None`).
    async fn locate(&self, seq: Seq) -> Result<Option<bool>, StoreError>;
}
