//! The filter of a list of items. Without one it is enough to read keys.

use forebay_store::{DeadRow, ReadyRow};
use forebay_types::{ItemId, Key, Refusal, Seq, State, Timestamp, TopicId, filter::Filter};

use super::read;
use crate::{
    api::{Facts, ItemsCall, LeaseSnapshot, list_fields},
    messages::look::ShardLook,
};

/// Which items are listed.
#[derive(Debug, Clone)]
pub(super) struct ListFilter {
    /// `None`: all.
    filter: Option<Filter>,
    /// By which ages are counted.
    now: Timestamp,
}

/// Some items of a shard, in order.
pub(super) struct Slice<T> {
    /// The items that pass.
    pub passed: Vec<T>,
    /// How many were looked at.
    pub scanned: usize,
    /// The last one that was looked at.
    pub last: Option<T>,
}

impl<T: Copy> Slice<T> {
    fn of<R>(rows: &[R], place: impl Fn(&R) -> T, passes: impl Fn(&R) -> bool) -> Self {
        let passed = rows.iter().filter(|row| passes(row)).map(&place).collect();
        Self { passed, scanned: rows.len(), last: rows.last().map(place) }
    }
}

impl ListFilter {
    /// That of a call.
    pub fn of(call: &ItemsCall) -> Result<Self, Refusal> {
        let filter = Filter::parse(&call.filter, list_fields(call.state))?;
        Ok(Self { filter: Some(filter).filter(|filter| *filter != Filter::default()), now: call.now })
    }

    /// All items pass.
    pub fn is_empty(&self) -> bool {
        self.filter.is_none()
    }

    /// Ready or scheduled items of a topic behind a key. `None`: they could not be read.
    pub async fn waiting(
        &self,
        shard: &ShardLook,
        topic: TopicId,
        state: State,
        after: Key,
        limit: usize,
    ) -> Option<Slice<Key>> {
        if self.is_empty() {
            let keys = read(shard, |it| async move { it.keys(topic, state, after, limit).await }).await?;
            return Some(Slice::of(&keys, |key| *key, |_| true));
        }
        let highest = Seq(i64::MAX as u64);
        let rows =
            read(shard, |it| async move { it.walk_items(topic, state, after, highest, limit).await }).await?;
        Some(Slice::of(&rows, |row| row.item.key, |row| self.passes(shard, &row.item, None)))
    }

    /// Dead letters of a topic before a death, the latest first. `None`: they could not be read.
    pub async fn dead(
        &self,
        shard: &ShardLook,
        topic: TopicId,
        before: (Timestamp, Seq),
        limit: usize,
    ) -> Option<Slice<(Timestamp, Seq)>> {
        if self.is_empty() {
            let deaths = read(shard, |it| async move { it.dead_letters(topic, before, limit).await }).await?;
            return Some(Slice::of(&deaths, |death| *death, |_| true));
        }
        let rows = read(shard, |it| async move { it.dead_rows(topic, before, limit).await }).await?;
        let death = |row: &DeadRow| (row.died_at, row.item.key.seq);
        Some(Slice::of(&rows, death, |row| {
            self.passes(shard, &row.item, Some((&row.cause, &row.last_error)))
        }))
    }

    fn passes(&self, shard: &ShardLook, row: &ReadyRow, death: Option<(&str, &str)>) -> bool {
        let Some(filter) = &self.filter else { return true };
        // Nobody knows what it has. It is shown as such.
        if row.unreadable {
            return true;
        }
        let id = ItemId { shard: shard.id, seq: row.key.seq };
        let facts = Facts { id, priority: row.key.priority, attributes: &row.attributes, death };
        filter.holds(|field| facts.held(field, self.now))
    }

    /// Whether a leased item passes.
    pub fn passes_lease(&self, lease: &LeaseSnapshot) -> bool {
        let Some(filter) = &self.filter else { return true };
        filter.holds(|field| lease.held(field, self.now))
    }
}
