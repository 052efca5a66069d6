//! ListItems and GetItem: items of a topic in one state, over all shards of this node.
//!
//! Each shard first tells which items come next, and then the first ones of all shards are read. Ready items
//! are those of the store that the event loop knows to be neither leased nor on their way to a lease.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Bound,
    time::Duration,
};

use forebay_store::{NameRange, StoredItem, StoredState};
use forebay_types::{ItemId, Key, Namespace, Refusal, Seq, ShardId, State, Timestamp, TopicId, TopicName};
use futures_util::{StreamExt as _, stream};
use tokio::time::Instant;

use super::{
    list_filter::ListFilter,
    positions::{death_position, key_before, position, position_of, seq_before},
    read,
};
use crate::{
    api::{
        ItemLookup, ItemPosition, ItemSnapshot, ItemState, ItemsCall, ItemsPage, LeaseSnapshot, TopicScope,
    },
    engine::Engine,
    messages::{
        event::Event,
        look::{LeaseQuestion, LeasesSnapshot, ShardLook, WhichLeases},
    },
};

/// Items that one page looks at in each shard.
const LOOKED_AT_MAX: usize = 50_000;
/// A page looks for so long, and then goes on at the next one: with a filter that passes few items, a page of
/// [`LOOKED_AT_MAX`] would take seconds, as a shard has its rest between reads.
const LOOKED_FOR_MAX: Duration = Duration::from_millis(150);
/// Items that are asked for at once. Of these, the event loop is asked in one event which are leased.
const SLICE: usize = 1_000;
/// Shards that one page reads at a time.
const SHARDS_AT_ONCE: usize = 16;
/// Bytes of a page's payloads, metadata and headers.
const PAGE_BYTES_MAX: usize = 3 << 20;
/// The most of them that is read at once.
const READ_BYTES_MAX: usize = PAGE_BYTES_MAX / 4;
/// The most that an item may have beside its payload.
const REST_BYTES_MAX: usize = 16 << 10;

/// The next items of one shard that pass the filter.
struct Next {
    /// The items, in order, with their leases.
    items: Vec<(ItemPosition, Option<LeaseSnapshot>)>,
    /// All up to this one are known. `None`: all are.
    through: Option<ItemPosition>,
    /// How many were looked at.
    scanned: usize,
    /// When the page began.
    began: Instant,
}

impl Next {
    /// Of a page that began then.
    fn begin(began: Instant) -> Self {
        Self { items: Vec::new(), through: None, scanned: 0, began }
    }

    /// The page has enough, or has looked for long enough.
    fn is_enough(&self, call: &ItemsCall) -> bool {
        self.items.len() >= call.limit
            || self.scanned >= LOOKED_AT_MAX
            || self.began.elapsed() >= LOOKED_FOR_MAX
    }
}

impl Engine {
    /// Lists items of a topic in this node's shards.
    pub async fn list_items(&self, call: ItemsCall) -> Result<ItemsPage, Refusal> {
        let (filter, began) = (ListFilter::of(&call)?, Instant::now());
        let scope =
            TopicScope { namespace: Some(call.name.namespace.clone()), prefix: call.name.topic.to_string() };
        let shards = self.look_shards(&scope).await?;
        let seen = self.look_topics(&scope, Bound::Included(call.name.clone()), false, 1).await?;
        let parts = seen.topics.into_iter().filter(|topic| topic.figures.name == call.name);
        let mut topics: HashMap<ShardId, Vec<TopicId>> = HashMap::new();
        for part in parts.flat_map(|topic| topic.parts) {
            topics.entry(part.shard).or_default().push(part.topic);
        }
        let mut asked = Vec::new();
        for shard in shards.iter().filter(|shard| !seen.doubtful.contains(&shard.id)).cloned() {
            let (engine, call, filter) = (self.clone(), call.clone(), filter.clone());
            let topics = topics.remove(&shard.id).unwrap_or_default();
            asked.push(async move {
                (shard.id, engine.next_in_shard(&shard, topics, &call, &filter, began).await)
            });
        }
        let answers: Vec<_> = stream::iter(asked).buffer_unordered(SHARDS_AT_ONCE).collect().await;
        let mut page = ItemsPage::default();
        let mut found: BTreeMap<ItemPosition, Option<LeaseSnapshot>> = BTreeMap::new();
        for (shard, next) in answers {
            let Some(next) = next? else { continue };
            page.shards.push(shard);
            page.scanned += next.scanned;
            page.through = page.through.into_iter().chain(next.through).min();
            found.extend(next.items);
        }
        page.shards.sort_unstable();
        found.retain(|position, _| page.through.is_none_or(|through| *position <= through));
        if found.len() > call.limit {
            page.through = found.keys().nth(call.limit - 1).copied();
            found.retain(|position, _| page.through.is_none_or(|through| *position <= through));
        }
        page.read(&shards, found, &call).await;
        Ok(page)
    }

    /// The item with an id, if it is of this tenant and in a shard of this node.
    pub async fn item(
        &self,
        caller: &Namespace,
        id: ItemId,
        payload_max: usize,
    ) -> Result<ItemLookup, Refusal> {
        let scope = TopicScope { namespace: Some(caller.clone()), prefix: String::new() };
        let shards = self.look_shards(&scope).await?;
        let Some(shard) = shards.into_iter().find(|shard| shard.id == id.shard) else {
            return Ok(ItemLookup::NotLooked);
        };
        let found = read(&shard, |reader| async move { reader.items(&[id.seq], payload_max).await }).await;
        let Some(found) = found else { return Ok(ItemLookup::NotLooked) };
        let Some(stored) = found.into_iter().find(|item| item.topic.namespace == *caller) else {
            return Ok(ItemLookup::Gone);
        };
        let Some(leases) = self.leases(caller, &shard, WhichLeases::Of(id.seq)).await? else {
            return Ok(ItemLookup::NotLooked);
        };
        let lease = leases.leases.into_iter().next().map(|(_, lease)| lease);
        let position = position_of(id, &stored, lease.as_ref());
        Ok(ItemLookup::Item(Box::new(ItemSnapshot { id, position, stored, lease })))
    }

    /// Open deliveries. `None`: the shard was lost.
    pub(super) async fn leases(
        &self,
        caller: &Namespace,
        shard: &ShardLook,
        which: WhichLeases,
    ) -> Result<Option<LeasesSnapshot>, Refusal> {
        let question = LeaseQuestion { caller: caller.clone(), shard: shard.index, term: shard.term, which };
        self.ask(|reply| Event::LookLeases { question, reply }).await
    }

    /// The next items of a shard. `None`: it could not be read, or was lost.
    async fn next_in_shard(
        &self,
        shard: &ShardLook,
        topics: Vec<TopicId>,
        call: &ItemsCall,
        filter: &ListFilter,
        began: Instant,
    ) -> Result<Option<Next>, Refusal> {
        let mut sum = Next::begin(began);
        let topics = match call.state {
            ItemState::Dead => match with_dormant(shard, topics, &call.name).await {
                Some(topics) => topics,
                None => return Ok(None),
            },
            _ => topics,
        };
        for topic in topics {
            let next = match call.state {
                ItemState::Ready => self.waiting(shard, topic, call, State::Ready, filter, began).await?,
                ItemState::Scheduled => {
                    self.waiting(shard, topic, call, State::Scheduled, filter, began).await?
                }
                ItemState::Leased => self.leased(shard, topic, call, filter, began).await?,
                ItemState::Dead => dead(shard, topic, call, filter, began).await,
            };
            let Some(next) = next else { return Ok(None) };
            sum.items.extend(next.items);
            sum.through = sum.through.into_iter().chain(next.through).min();
            sum.scanned += next.scanned;
        }
        Ok(Some(sum))
    }

    /// Ready or scheduled items.
    async fn waiting(
        &self,
        shard: &ShardLook,
        topic: TopicId,
        call: &ItemsCall,
        state: State,
        filter: &ListFilter,
        began: Instant,
    ) -> Result<Option<Next>, Refusal> {
        let mut next = Next::begin(began);
        let mut after = call.after.map_or(Key::MIN, |after| key_before(after, shard.id));
        loop {
            let Some(slice) = filter.waiting(shard, topic, state, after, SLICE).await else {
                return Ok(None);
            };
            next.scanned += slice.scanned;
            let listed = match state {
                State::Scheduled => slice.passed,
                State::Ready => match self.not_out(&call.name.namespace, shard, &slice.passed).await? {
                    Some(ready) => ready,
                    None => return Ok(None),
                },
            };
            next.items.extend(listed.into_iter().map(|key| (position(key, shard.id), None)));
            match slice.last.filter(|_| slice.scanned == SLICE) {
                None => return Ok(Some(next)),
                Some(last) if next.is_enough(call) => {
                    next.through = Some(position(last, shard.id));
                    return Ok(Some(next));
                }
                Some(last) => after = last,
            }
        }
    }

    /// Leased items.
    async fn leased(
        &self,
        shard: &ShardLook,
        topic: TopicId,
        call: &ItemsCall,
        filter: &ListFilter,
        began: Instant,
    ) -> Result<Option<Next>, Refusal> {
        let mut next = Next::begin(began);
        let mut after = call.after.map_or((Timestamp::MIN, Seq(0)), |after| {
            let seq = seq_before(after, shard.id);
            (Timestamp::from_micros(after.first), seq)
        });
        let position = |at: Timestamp, seq: Seq| ItemPosition {
            first: at.as_micros(),
            second: 0,
            shard: shard.id,
            seq: seq.0,
        };
        loop {
            let which = WhichLeases::OfTopic { topic, after, most: SLICE };
            let seen = self.leases(&call.name.namespace, shard, which).await?;
            let Some(LeasesSnapshot { leases, through, looked_at, .. }) = seen else { return Ok(None) };
            next.scanned += looked_at;
            let passed = leases.into_iter().filter(|(_, lease)| filter.passes_lease(lease));
            next.items.extend(passed.map(|(seq, lease)| (position(lease.ends_at, seq), Some(lease))));
            match through {
                None => return Ok(Some(next)),
                Some((at, seq)) if next.is_enough(call) => {
                    next.through = Some(position(at, seq));
                    return Ok(Some(next));
                }
                Some(last) => after = last,
            }
        }
    }
}

/// The numbers of a topic in a shard, those under which it is dormant included. `None`: it could not be read.
async fn with_dormant(shard: &ShardLook, mut topics: Vec<TopicId>, name: &TopicName) -> Option<Vec<TopicId>> {
    if shard.has_dormant {
        let range = NameRange { from: Bound::Included(name.clone()), through: Some(name.clone()) };
        let rows = read(shard, |reader| async move { reader.dormant_topics(&range, SLICE).await }).await?;
        topics.extend(rows.iter().map(|row| row.id));
        topics.sort_unstable();
        topics.dedup();
    }
    Some(topics)
}

/// Dead letters, the latest first.
async fn dead(
    shard: &ShardLook,
    topic: TopicId,
    call: &ItemsCall,
    filter: &ListFilter,
    began: Instant,
) -> Option<Next> {
    let mut before = call.after.map_or((Timestamp::MAX, Seq(i64::MAX as u64)), |after| {
        let seq = Seq(i64::MAX as u64 - seq_before(after, shard.id).0.min(i64::MAX as u64));
        (Timestamp::from_micros(-after.first), seq)
    });
    let position = |(at, seq): (Timestamp, Seq)| death_position(at, seq, shard.id);
    let mut next = Next::begin(began);
    // Without a filter one slice is enough.
    let slice = if filter.is_empty() { call.limit + 1 } else { SLICE };
    loop {
        let found = filter.dead(shard, topic, before, slice).await?;
        next.scanned += found.scanned;
        next.items.extend(found.passed.into_iter().map(|death| (position(death), None)));
        match found.last.filter(|_| found.scanned == slice) {
            None => return Some(next),
            Some(last) if next.is_enough(call) => {
                next.through = Some(position(last));
                return Some(next);
            }
            Some(last) => before = last,
        }
    }
}

impl ItemsPage {
    /// Reads the items of the page, as many as there is room for. Those that are gone by now are left out.
    async fn read(
        &mut self,
        shards: &[ShardLook],
        found: BTreeMap<ItemPosition, Option<LeaseSnapshot>>,
        call: &ItemsCall,
    ) {
        let at_once = (READ_BYTES_MAX / (call.payload_max + REST_BYTES_MAX)).max(1);
        let mut left = found.into_iter();
        let mut bytes = 0;
        loop {
            let some: Vec<_> = left.by_ref().take(at_once).collect();
            let Some((last, _)) = some.last().cloned() else { return };
            let read = read_some(shards, call, some, &mut self.shards).await;
            bytes += read.iter().map(size).sum::<usize>();
            self.items.extend(read);
            if bytes + READ_BYTES_MAX > PAGE_BYTES_MAX && left.len() > 0 {
                self.through = Some(last);
                return;
            }
        }
    }
}

/// Reads some items. A shard that can't be read is not among those that were looked at.
async fn read_some(
    shards: &[ShardLook],
    call: &ItemsCall,
    some: Vec<(ItemPosition, Option<LeaseSnapshot>)>,
    looked_at: &mut Vec<ShardId>,
) -> Vec<ItemSnapshot> {
    let seq_of = |position: &ItemPosition| match call.state {
        ItemState::Dead => Seq(i64::MAX as u64 - position.seq),
        _ => Seq(position.seq),
    };
    let mut of_shard: HashMap<ShardId, Vec<Seq>> = HashMap::new();
    for (position, _) in &some {
        of_shard.entry(position.shard).or_default().push(seq_of(position));
    }
    let mut reads = Vec::new();
    for shard in shards.iter().cloned() {
        let Some(seqs) = of_shard.remove(&shard.id) else { continue };
        let payload_max = call.payload_max;
        reads.push(async move {
            let found = read(&shard, |reader| async move { reader.items(&seqs, payload_max).await }).await;
            (shard.id, found)
        });
    }
    let answers: Vec<_> = stream::iter(reads).buffer_unordered(SHARDS_AT_ONCE).collect().await;
    let mut stored: HashMap<(ShardId, Seq), StoredItem> = HashMap::new();
    for (shard, found) in answers {
        match found {
            Some(found) => stored.extend(found.into_iter().map(|item| ((shard, item.key.seq), item))),
            None => looked_at.retain(|id| *id != shard),
        }
    }
    let item = |(position, lease): (ItemPosition, Option<LeaseSnapshot>)| {
        let id = ItemId { shard: position.shard, seq: seq_of(&position) };
        let stored = stored.remove(&(id.shard, id.seq))?;
        let is_same = call.state.is_stored_as(&stored.state);
        is_same.then_some(ItemSnapshot { id, position, stored, lease })
    };
    some.into_iter().filter_map(item).collect()
}

impl ItemState {
    /// Whether an item that was in this state may be stored so by now, and still be in it.
    const fn is_stored_as(self, stored: &StoredState) -> bool {
        matches!(
            (self, stored),
            (Self::Ready | Self::Leased, StoredState::Ready)
                | (Self::Scheduled, StoredState::Scheduled)
                | (Self::Dead, StoredState::Dead(_))
        )
    }
}

/// Bytes of an item in an answer.
fn size(item: &ItemSnapshot) -> usize {
    let StoredItem { payload, metadata, headers, last_failures, .. } = &item.stored;
    let headers: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    let failures: usize = last_failures.iter().map(|it| it.consumer.len() + it.reason.len() + 64).sum();
    payload.len() + metadata.len() + headers + failures + 256
}
