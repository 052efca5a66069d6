//! A reader's queries, for any kind of connection.

mod bodies;
mod dedupe;
mod due;
mod item;
mod keys;
mod load;
mod load_topics;
mod locate;
mod namespaces;
mod operations;
mod ready;
pub(crate) mod remains;
mod stored;
mod topics;
mod unreadable;

use async_trait::async_trait;
use forebay_types::{Body, Key, Seq, ShardId, State, Timestamp, TopicId, TopicName};

use self::unreadable::Unreadable;
use crate::{
    error::StoreError,
    looked::{DeathRow, StoredItem},
    names::NameRange,
    read_ahead::ReadAhead,
    rows::{DeadRow, DedupeHit, DueRow, ReadyRow, ShardSnapshot, Sweep, TopicRow, WalkedRow},
    shard::{ItemLocation, Reader},
    sql::statement::ReadConnection,
    tally::{NamespaceTally, TopicTally},
};

/// Reads a shard through any kind of connection.
pub(crate) struct SqlReader<C> {
    /// The connection.
    connection: C,
    /// Rows that could not be read.
    unreadable: Unreadable,
}

impl<C: ReadConnection> SqlReader<C> {
    /// Reads a shard.
    pub(crate) fn new(shard: ShardId, connection: C) -> Self {
        Self { connection, unreadable: Unreadable::of(shard) }
    }
}

/// Reads a shard that somebody else owns, for a candidate.
pub(crate) async fn read_ahead(connection: &dyn ReadConnection) -> Result<ReadAhead, StoreError> {
    load_topics::read_ahead(connection).await
}

#[async_trait]
impl<C: ReadConnection> Reader for SqlReader<C> {
    async fn load(&self, ahead: ReadAhead) -> Result<ShardSnapshot, StoreError> {
        load::load(&self.connection, ahead).await
    }

    async fn tallies(&self, after: TopicId, limit: usize) -> Result<Vec<(TopicId, TopicTally)>, StoreError> {
        load_topics::tallies(&self.connection, after, limit).await
    }

    async fn namespace_tallies(&self, after: &str, limit: usize) -> Result<Vec<NamespaceTally>, StoreError> {
        namespaces::tallies(&self.connection, after, limit).await
    }

    async fn ready(
        &self,
        topic: TopicId,
        after: Key,
        limit: usize,
        max_bytes: usize,
    ) -> Result<Vec<ReadyRow>, StoreError> {
        ready::ready(&self.connection, &self.unreadable, topic, after, limit, max_bytes).await
    }

    async fn bodies(&self, seqs: &[Seq]) -> Result<Vec<(Seq, Body)>, StoreError> {
        bodies::bodies(&self.connection, &self.unreadable, seqs).await
    }

    async fn due(
        &self,
        sweep: Sweep,
        from: Timestamp,
        to: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueRow>, StoreError> {
        due::due(&self.connection, &self.unreadable, sweep, from, to, limit).await
    }

    async fn next_due(&self, sweep: Sweep, from: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        due::next_due(&self.connection, sweep, from).await
    }

    async fn dedupe(&self, generations: &[u64], hashes: &[[u8; 16]]) -> Result<Vec<DedupeHit>, StoreError> {
        dedupe::dedupe(&self.connection, generations, hashes).await
    }

    async fn locate(&self, seqs: &[Seq]) -> Result<Vec<ItemLocation>, StoreError> {
        locate::locate(&self.connection, seqs).await
    }

    async fn dormant_topics(&self, range: &NameRange, limit: usize) -> Result<Vec<TopicRow>, StoreError> {
        topics::dormant(&self.connection, range, limit).await
    }

    async fn first_due(&self, topics: &[TopicId]) -> Result<Vec<(TopicId, Timestamp)>, StoreError> {
        topics::first_due(&self.connection, topics).await
    }

    async fn keys(
        &self,
        topic: TopicId,
        state: State,
        after: Key,
        limit: usize,
    ) -> Result<Vec<Key>, StoreError> {
        keys::keys(&self.connection, topic, state, after, limit).await
    }

    async fn dead_letters(
        &self,
        topic: TopicId,
        before: (Timestamp, Seq),
        limit: usize,
    ) -> Result<Vec<(Timestamp, Seq)>, StoreError> {
        stored::dead_letters(&self.connection, topic, before, limit).await
    }

    async fn deaths(
        &self,
        topic: TopicId,
        before: (Timestamp, Seq),
        limit: usize,
        error_max: usize,
    ) -> Result<Vec<DeathRow>, StoreError> {
        stored::deaths(&self.connection, topic, before, limit, error_max).await
    }

    async fn dead_rows(
        &self,
        topic: TopicId,
        before: (Timestamp, Seq),
        limit: usize,
    ) -> Result<Vec<DeadRow>, StoreError> {
        stored::dead_rows(&self.connection, &self.unreadable, topic, before, limit).await
    }

    async fn items(&self, seqs: &[Seq], payload_max: usize) -> Result<Vec<StoredItem>, StoreError> {
        stored::items(&self.connection, &self.unreadable, seqs, payload_max).await
    }

    async fn walk_items(
        &self,
        topic: TopicId,
        state: State,
        after: Key,
        as_of: Seq,
        limit: usize,
    ) -> Result<Vec<WalkedRow>, StoreError> {
        operations::walk_items(&self.connection, &self.unreadable, topic, state, after, as_of, limit).await
    }

    async fn walk_dead(
        &self,
        name: &TopicName,
        after: (TopicId, Timestamp, Seq),
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<DeadRow>, StoreError> {
        operations::walk_dead(&self.connection, &self.unreadable, name, after, until, limit).await
    }
}
