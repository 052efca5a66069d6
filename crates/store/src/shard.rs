//! The interface of every kind of store. `testkit` runs one contract suite against all of them.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use forebay_types::{
    Body, ClusterId, Incarnation, Key, Namespace, Seq, State, Timestamp, TopicId, TopicName,
};

use crate::{
    batch::Batch,
    error::{CommitError, ErrorClass, MigrateError, StoreError},
    looked::{DeathRow, StoredItem},
    names::NameRange,
    read_ahead::ReadAhead,
    rows::{
        DeadRow, DedupeHit, DueRow, Fence, Observation, ReadyRow, Settings, ShardIdentity, ShardSnapshot,
        Sweep, TopicRow, WalkedRow,
    },
    tally::{NamespaceTally, TopicTally},
};

/// One shard, as any process can reach it. It is cheap to create and connects when first used.
#[async_trait]
pub trait Shard: Send + Sync + 'static {
    /// The server that stores it. Shards with the same answer share its capacity and its clock.
    fn server(&self) -> String;

    /// Which shard the schema is. `None`: there is no schema yet.
    async fn identity(&self) -> Result<Option<ShardIdentity>, StoreError>;

    /// Creates or upgrades the schema under a lock, as a shard of this cluster. Returns the versions that
    /// were applied. Fails if the schema is another shard, or of another cluster.
    async fn migrate(&self, cluster: ClusterId) -> Result<Vec<u32>, MigrateError>;

    /// Checks the schema's version and identity, and reads the server's settings. Fails with
    /// [`ErrorClass::Schema`](crate::ErrorClass::Schema) if the schema lacks what this program needs, if this
    /// program may not use it, or if it is another shard.
    async fn check(&self) -> Result<Settings, StoreError>;

    /// Reads who owns the shard, and how far its owner is.
    async fn observe(&self) -> Result<Observation, StoreError>;

    /// Commits a row of its own on the shard's server. A candidate does so before it takes a shard over that
    /// was not released: where that takes long, the owner may be slow for the same reason. An owner does so
    /// when a batch takes long.
    async fn probe(&self) -> Result<ProbeOutcome, StoreError>;

    /// Reads what can be read of the shard before it is taken over, so that there is less to load. Its owner
    /// goes on meanwhile.
    async fn read_ahead(&self) -> Result<ReadAhead, StoreError>;

    /// Takes the shard over. It kills the old owner's connections. Then one transaction moves the fence to
    /// the next epoch, raises its numbers to those of the shard's rows if it is behind them, and writes the
    /// heartbeat.
    ///
    /// `seen` is an earlier observation of the caller. If the epoch, the batch number or the number of
    /// renewals has changed since, the claim fails with `Ok(None)` and changes nothing.
    async fn take_over(
        &self,
        claim: &Claim,
        seen: &Observation,
    ) -> Result<Option<ShardConnections>, StoreError>;
}

/// Result of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeOutcome {
    /// The server has committed a row.
    Committed,
    /// The store is embedded: there is no server, and nothing was done.
    Embedded,
}

/// A process that wants to own a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Random, never used before.
    pub incarnation: Incarnation,
    /// This node's `host:port`, where other nodes check whether it is alive.
    pub address: String,
    /// How long this node may be silent before others count it as gone.
    pub lease: Duration,
}

/// The connections to a shard that was taken over. Dropping them closes them and does not release the shard.
pub struct ShardConnections {
    /// The fence after the take-over.
    pub fence: Fence,
    /// The fence as it was found, if it was behind the shard's rows: its numbers were raised to theirs.
    pub behind: Option<Fence>,
    /// Writes batches.
    pub writer: Box<dyn Writer>,
    /// Renews the claim, on a connection of its own.
    pub heartbeat: Box<dyn Heartbeat>,
    /// Reads, on connections of its own.
    pub reader: Arc<dyn Reader>,
}

/// The outcome of a batch whose COMMIT failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was committed.
    Committed,
    /// It was not committed and never will be.
    NotCommitted,
    /// The shard has another owner, so nobody can tell.
    Foreign,
}

impl Outcome {
    /// The outcome of batch `number` of an owner whose COMMIT failed, according to the fence.
    pub fn of(fence: &Fence, epoch: u64, incarnation: Incarnation, number: u64) -> Self {
        if (fence.epoch, fence.incarnation) != (epoch, incarnation) {
            Self::Foreign
        } else if fence.batch >= number {
            Self::Committed
        } else {
            Self::NotCommitted
        }
    }
}

/// The only connection that writes a shard.
#[async_trait]
pub trait Writer: Send {
    /// Commits a batch. The caller must await this future to its end.
    async fn commit(&mut self, batch: &Batch) -> Result<(), CommitError>;

    /// Learns the outcome of a batch after [`CommitError::Unknown`], [`CommitError::FenceMoved`] or a lost
    /// connection. It kills the old connection if it is still alive, connects again, and reads the fence row
    /// with a lock. After an error, call it again.
    async fn resolve(&mut self, number: u64) -> Result<Outcome, StoreError>;

    /// Releases the shard: clears the address in the heartbeat if this owner still holds it, and names the
    /// node that shall have the shard next, by its `host:port`. Empty: anybody may.
    async fn release(&mut self, successor: &str) -> Result<(), StoreError>;
}

/// The result of renewing a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewal {
    /// The shard is still ours.
    Renewed {
        /// The server's clock. An embedded store has none of its own.
        server_time: Option<Timestamp>,
    },
    /// The shard has another owner.
    Lost,
}

/// Renews the claim on a shard.
#[async_trait]
pub trait Heartbeat: Send {
    /// Increments the heartbeat's counter by compare-and-set on epoch and incarnation.
    async fn renew(&mut self) -> Result<Renewal, StoreError>;

    /// Creates a generation of the dedupe table, unless it exists.
    async fn create_generation(&mut self, number: u64) -> Result<(), StoreError>;

    /// Drops a generation, if it exists.
    async fn drop_generation(&mut self, number: u64) -> Result<(), StoreError>;
}

/// Where an item is that has no lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemLocation {
    /// In its topic, ready or scheduled. The tenant whose it is.
    Waiting(Namespace),
    /// Among the dead letters. The tenant whose it is.
    DeadLetter(Namespace),
    /// Not in the shard.
    Gone,
}

/// Reads committed data. Calls may run concurrently.
#[async_trait]
pub trait Reader: Send + Sync + 'static {
    /// Loads what a new owner needs. What was read ahead, and has not changed since, is not read again.
    async fn load(&self, ahead: ReadAhead) -> Result<ShardSnapshot, StoreError>;

    /// Reads the tallies in the rows of the first `limit` topics behind a number, by number. Topics without
    /// one are passed over: dormant ones have none. One that can't be read has counted nothing.
    async fn tallies(&self, after: TopicId, limit: usize) -> Result<Vec<(TopicId, TopicTally)>, StoreError>;

    /// Reads what forgotten topics counted, of the first `limit` namespaces behind a name, in order. One that
    /// can't be read has counted nothing.
    async fn namespace_tallies(&self, after: &str, limit: usize) -> Result<Vec<NamespaceTally>, StoreError>;

    /// Reads the first `limit` ready items of a topic after `after`, in delivery order. Fewer are found only
    /// where the topic ends.
    ///
    /// The bodies of the first rows come along, as many as have `max_bytes` together. The other rows come
    /// without, however large or small they are.
    async fn ready(
        &self,
        topic: TopicId,
        after: Key,
        limit: usize,
        max_bytes: usize,
    ) -> Result<Vec<ReadyRow>, StoreError>;

    /// Reads the bodies of items. Missing items are left out. The caller knows how large they are, and asks
    /// for no more than it has room for.
    async fn bodies(&self, seqs: &[Seq]) -> Result<Vec<(Seq, Body)>, StoreError>;

    /// Reads the first `limit` rows of a sweep's table with `from <= at <= to`, in order of time and seq.
    async fn due(
        &self,
        sweep: Sweep,
        from: Timestamp,
        to: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueRow>, StoreError>;

    /// Reads the earliest time at or after `from` in a sweep's table.
    async fn next_due(&self, sweep: Sweep, from: Timestamp) -> Result<Option<Timestamp>, StoreError>;

    /// Reads what is stored under these hashes in these generations.
    async fn dedupe(&self, generations: &[u64], hashes: &[[u8; 16]]) -> Result<Vec<DedupeHit>, StoreError>;

    /// Finds items that have no lease. Returns one answer for each of them, in their order.
    async fn locate(&self, seqs: &[Seq]) -> Result<Vec<ItemLocation>, StoreError>;

    /// Reads the first `limit` dormant topics of a range, by namespace and name. Rows that only look dormant,
    /// because their counts are not folded yet, are among them. It passes over all other rows of the range.
    async fn dormant_topics(&self, _range: &NameRange, _limit: usize) -> Result<Vec<TopicRow>, StoreError> {
        not_looked_into()
    }

    /// Reads when the next scheduled item of each of these topics is due. Topics without one are left out. It
    /// looks at each of their scheduled items.
    async fn first_due(&self, _topics: &[TopicId]) -> Result<Vec<(TopicId, Timestamp)>, StoreError> {
        not_looked_into()
    }

    /// Reads the first `limit` keys of a topic's items in a state after `after`, in order. Fewer are found
    /// only where the topic ends. A leased item is in state ready.
    async fn keys(
        &self,
        _topic: TopicId,
        _state: State,
        _after: Key,
        _limit: usize,
    ) -> Result<Vec<Key>, StoreError> {
        not_looked_into()
    }

    /// Reads the first `limit` dead letters of a topic that died before a time and item, the latest first.
    async fn dead_letters(
        &self,
        _topic: TopicId,
        _before: (Timestamp, Seq),
        _limit: usize,
    ) -> Result<Vec<(Timestamp, Seq)>, StoreError> {
        not_looked_into()
    }

    /// Reads why the first `limit` dead letters of a topic died, of those that died before a time and item,
    /// the latest first. Texts are cut to `error_max` bytes.
    async fn deaths(
        &self,
        _topic: TopicId,
        _before: (Timestamp, Seq),
        _limit: usize,
        _error_max: usize,
    ) -> Result<Vec<DeathRow>, StoreError> {
        not_looked_into()
    }

    /// Reads the first `limit` dead letters of a topic, of those that died before a time and item, the latest
    /// first, without what a redrive needs of them.
    async fn dead_rows(
        &self,
        _topic: TopicId,
        _before: (Timestamp, Seq),
        _limit: usize,
    ) -> Result<Vec<DeadRow>, StoreError> {
        not_looked_into()
    }

    /// Reads items and dead letters, with at most so many bytes of each payload. Missing ones are left out.
    async fn items(&self, _seqs: &[Seq], _payload_max: usize) -> Result<Vec<StoredItem>, StoreError> {
        not_looked_into()
    }

    /// Reads the first `limit` items of a topic in a state after a key, with numbers up to `as_of`, without
    /// their bodies. Fewer are found only where the topic ends.
    async fn walk_items(
        &self,
        _topic: TopicId,
        _state: State,
        _after: Key,
        _as_of: Seq,
        _limit: usize,
    ) -> Result<Vec<WalkedRow>, StoreError> {
        not_looked_into()
    }

    /// Reads the first `limit` dead letters of all topics with a name, dormant ones included, behind a topic,
    /// a death and an item, and up to a time. They come by topic and by their deaths.
    async fn walk_dead(
        &self,
        _name: &TopicName,
        _after: (TopicId, Timestamp, Seq),
        _until: Timestamp,
        _limit: usize,
    ) -> Result<Vec<DeadRow>, StoreError> {
        not_looked_into()
    }
}

/// The error of a store that operators cannot look into: one of a test.
fn not_looked_into<T>() -> Result<T, StoreError> {
    Err(StoreError::new(ErrorClass::Unavailable, "this store cannot be looked into"))
}
