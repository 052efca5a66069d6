//! Counts what an operation would change: the same walk, without effect.

use std::{ops::Bound, time::Duration};

use forebay_store::{DeadRow, OperationKind, OperationSpec, ReadyRow};
use forebay_types::{ItemId, Key, Refusal, Seq, State, Timestamp, TopicId, filter::Filter};
use futures_util::{StreamExt as _, stream};
use tokio::time::Instant;

use super::read_without_rest as read;
use crate::{
    api::{Facts, ItemCount, TopicScope, filter_fields, takes_unreadable},
    engine::Engine,
    messages::look::{LeasesSnapshot, ShardLook, WhichLeases},
};

/// Items of one read.
const PAGE: usize = 1_000;
/// Items of each shard that are named.
const SAMPLES_MAX: usize = 20;
/// Shards that are counted at a time.
const SHARDS_AT_ONCE: usize = 16;

/// A count of one shard.
struct ItemCounter<'a> {
    /// The operation.
    spec: &'a OperationSpec,
    /// The filter of that.
    filter: &'a Filter,
    /// The shard.
    shard: &'a ShardLook,
    /// It ends then.
    until: Instant,
    /// The count so far.
    count: ItemCount,
}

impl Engine {
    /// Counts what an operation would change in this node's shards, for so long. Shards that could not be
    /// read are left out.
    pub async fn count_items(&self, spec: &OperationSpec, time: Duration) -> Result<Vec<ItemCount>, Refusal> {
        let until = Instant::now() + time;
        let (name, filter) = (spec.name(), Filter::parse(&spec.filter, filter_fields(spec.kind))?);
        let scope = TopicScope { namespace: Some(name.namespace.clone()), prefix: name.topic.to_string() };
        let shards = self.look_shards(&scope).await?;
        let seen = self.look_topics(&scope, Bound::Included(name.clone()), false, 1).await?;
        let parts = seen.topics.into_iter().filter(|topic| topic.figures.name == name);
        let parts: Vec<_> = parts.flat_map(|topic| topic.parts).collect();
        let known = shards.iter().filter(|shard| !seen.doubtful.contains(&shard.id));
        let counts = known.map(|shard| {
            let topic = parts.iter().find(|part| part.shard == shard.id).map(|part| part.topic);
            let count =
                ItemCount { shard: shard.id, matched: 0, scanned: Some(0), samples: Vec::new(), exact: true };
            let counting = ItemCounter { spec, filter: &filter, shard, until, count };
            counting.run(self, topic)
        });
        let counts: Vec<_> =
            stream::iter(counts.collect::<Vec<_>>()).buffer_unordered(SHARDS_AT_ONCE).collect().await;
        let mut found = Vec::new();
        for count in counts {
            found.extend(count?);
        }
        found.sort_by_key(|count| count.shard);
        Ok(found)
    }
}

impl ItemCounter<'_> {
    /// Counts. `None`: the shard could not be read, or was lost.
    async fn run(mut self, engine: &Engine, topic: Option<TopicId>) -> Result<Option<ItemCount>, Refusal> {
        let kind = self.spec.kind;
        let done = match (kind, topic) {
            (OperationKind::DeleteDead | OperationKind::Redrive, _) => self.dead().await,
            (OperationKind::ResetLeases, Some(topic)) => self.leases(engine, topic).await?,
            (OperationKind::Purge | OperationKind::Cancel | OperationKind::Update, Some(topic)) => {
                self.waiting(engine, topic).await?
            }
            (_, None) => Some(()),
        };
        let done = match done {
            Some(()) if kind == OperationKind::Cancel => self.dead().await,
            done => done,
        };
        Ok(done.map(|()| self.count))
    }

    /// Where the first page begins, unless time was up before.
    fn from<P>(&self, first: P) -> Option<P> {
        self.count.exact.then_some(first)
    }

    /// Notes items of a page that pass, and of how many. `last`: where the page ended, if something may be
    /// behind it. It is returned if there is time for that.
    fn add<P>(&mut self, passed: impl Iterator<Item = Seq>, of: usize, last: Option<P>) -> Option<P> {
        self.count.scanned = self.count.scanned.map(|scanned| scanned + of as u64);
        for seq in passed {
            self.count.matched += 1;
            if self.count.samples.len() < SAMPLES_MAX {
                self.count.samples.push(seq);
            }
        }
        self.count.exact = last.is_none() || Instant::now() < self.until;
        last.filter(|_| self.count.exact)
    }

    /// Items that are scheduled or ready.
    async fn waiting(&mut self, engine: &Engine, topic: TopicId) -> Result<Option<()>, Refusal> {
        match self.items(engine, topic, State::Scheduled).await? {
            Some(()) => self.items(engine, topic, State::Ready).await,
            None => Ok(None),
        }
    }

    async fn items(&mut self, engine: &Engine, topic: TopicId, state: State) -> Result<Option<()>, Refusal> {
        let mut next = self.from(Key::MIN);
        while let Some(after) = next {
            let last = Seq(i64::MAX as u64);
            let rows =
                read(self.shard, |it| async move { it.walk_items(topic, state, after, last, PAGE).await });
            let Some(rows) = rows.await else { return Ok(None) };
            let passed: Vec<Key> = rows
                .iter()
                .map(|row| &row.item)
                .filter(|row| self.passes(row, None))
                .map(|row| row.key)
                .collect();
            let fitting = match (state, self.spec.kind) {
                (State::Scheduled, _) => Some(passed),
                (_, OperationKind::Cancel) => Some(passed),
                (_, OperationKind::Purge) if self.spec.leased => Some(passed),
                _ => engine.not_out(&self.spec.name().namespace, self.shard, &passed).await?,
            };
            let Some(fitting) = fitting else { return Ok(None) };
            let last = rows.last().filter(|_| rows.len() == PAGE).map(|last| last.item.key);
            next = self.add(fitting.into_iter().map(|key| key.seq), rows.len(), last);
        }
        Ok(Some(()))
    }

    async fn leases(&mut self, engine: &Engine, topic: TopicId) -> Result<Option<()>, Refusal> {
        let mut next = self.from((Timestamp::MIN, Seq(0)));
        while let Some(after) = next {
            let which = WhichLeases::OfTopic { topic, after, most: PAGE };
            let seen = engine.leases(&self.spec.name().namespace, self.shard, which).await?;
            let Some(LeasesSnapshot { leases, through, .. }) = seen else { return Ok(None) };
            let (filter, now) = (self.filter, self.spec.started_at);
            let passed = leases.iter().filter(|(_, lease)| filter.holds(|field| lease.held(field, now)));
            next = self.add(passed.map(|(seq, _)| *seq), leases.len(), through);
        }
        Ok(Some(()))
    }

    async fn dead(&mut self) -> Option<()> {
        let name = self.spec.name();
        let mut next = self.from((TopicId(0), Timestamp::MIN, Seq(0)));
        while let Some(after) = next {
            let name = name.clone();
            let rows =
                read(self.shard, |it| async move { it.walk_dead(&name, after, Timestamp::MAX, PAGE).await });
            let rows: Vec<DeadRow> = rows.await?;
            let most = self.spec.max_redrives;
            let fits = |row: &&DeadRow| most.is_none_or(|most| row.item.attributes.redrives < most);
            let passed = rows
                .iter()
                .filter(fits)
                .filter(|row| self.passes(&row.item, Some((&row.cause, &row.last_error))));
            let passed: Vec<Seq> = passed.map(|row| row.item.key.seq).collect();
            let last = rows.last().filter(|_| rows.len() == PAGE);
            let last = last.map(|last| (last.topic, last.died_at, last.item.key.seq));
            next = self.add(passed.into_iter(), rows.len(), last);
        }
        Some(())
    }

    fn passes(&self, row: &ReadyRow, death: Option<(&str, &str)>) -> bool {
        if row.unreadable {
            return takes_unreadable(self.spec.kind, self.filter);
        }
        let id = ItemId { shard: self.shard.id, seq: row.key.seq };
        let facts = Facts { id, priority: row.key.priority, attributes: &row.attributes, death };
        self.filter.holds(|field| facts.held(field, self.spec.started_at))
    }
}
