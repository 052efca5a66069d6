//! New items: numbered, with their topics, and with what their keys remember.

use std::{cell::RefCell, collections::HashMap};

use forebay_store::{DedupeEntry, ItemRow, Sweep, TopicCounts, TopicRow};
use forebay_types::{Key, Reason, Refusal, Seq, State, TopicId, TopicName};

use super::builder::BatchBuilder;
use crate::{
    planted::{Bug, on},
    shard::{
        OwnedShard,
        commit::{
            disk_room::Need,
            in_flight::{PlannedAction, StoredItem},
            row_costs::{Prices, RowKind},
        },
        contents::topics::table::TopicTable,
        work::{AdmittedItem, Cost, ShardEnqueue, Turn, encode_remembered, weight},
    },
};

/// The cost of a row beside its body, in bytes.
const ROW_BYTES: usize = 256;

/// How many topics a namespace has on this node.
pub(super) type TopicsOf<'a> = &'a dyn Fn(&str) -> usize;

/// Adds enqueues that wait, until the batch costs so much. A call without a request id is cut where it does
/// not fit, or where its tenant's turn ends. `long_call`: beside them a call with a request id may be in the
/// batch that is longer.
pub(super) fn add_enqueues(
    builder: &mut BatchBuilder<'_>,
    mut most: usize,
    mut long_call: bool,
    topics_of: TopicsOf<'_>,
) {
    if builder.allowed < Need::Items {
        return;
    }
    let dearest = price_at_most(&builder.prices, Cost { rows: 1, bytes: 0 });
    builder.shard.intake.enqueues.begin_by_weight(builder.left(most) / dearest, builder.set);
    let known: RefCell<HashMap<u64, usize>> = RefCell::default();
    while builder.spent < most {
        let is_bisecting = builder.is_bisecting();
        let OwnedShard { intake, contents, tenure, .. } = &mut *builder.shard;
        let (prices, topics) = (builder.prices, &contents.topics);
        let prices = ItemPrices { prices, topics, new_topics: &builder.new_topics };
        let room = Room {
            left: most - builder.spent,
            bytes: tenure.batch_bytes.saturating_sub(builder.bytes),
            no_item: builder.batch.inserts.is_empty(),
            long_call: long_call && (!is_bisecting || builder.rows == 0),
        };
        let price = |part: &ShardEnqueue| -> usize {
            *known.borrow_mut().entry(part.call).or_insert_with(|| prices.of(part).sum())
        };
        let Some(Turn { work: mut part, credit }) = intake.enqueues.pop(|part| room.fits(part, price)) else {
            break;
        };
        if part.request.is_none() {
            let take = room.take(&part, prices, credit);
            if take < part.items.len() {
                let items = part.items.split_off(take);
                let (call, namespace) = (part.call, part.namespace.clone());
                intake.enqueues.unpop(ShardEnqueue { call, namespace, request: None, items });
            }
        } else if price(&part) > room.left {
            // While a bad row is searched it has the batch to itself.
            most += if is_bisecting { 0 } else { price(&part) };
            long_call = false;
        }
        add(builder, part, topics_of);
    }
}

/// The most that enqueues cost a batch: as if each item brought a topic and had a key.
pub(super) fn price_at_most(prices: &Prices, cost: Cost) -> usize {
    let each = prices.of(RowKind::Item) + prices.of(RowKind::Key) + prices.of_new_topic();
    cost.rows * each + prices.of_bytes(cost.bytes)
}

/// The cost of the call whose turn it is, if it has a request id. Otherwise nothing.
pub(super) fn price_of_first_call(builder: &mut BatchBuilder<'_>) -> usize {
    let OwnedShard { intake, contents, .. } = &mut *builder.shard;
    let (prices, topics) = (builder.prices, &contents.topics);
    let prices = ItemPrices { prices, topics, new_topics: &builder.new_topics };
    intake.enqueues.first().filter(|part| part.request.is_some()).map_or(0, |part| prices.of(part).sum())
}

/// Knows the prices of new items.
#[derive(Clone, Copy)]
struct ItemPrices<'a> {
    prices: Prices,
    topics: &'a TopicTable,
    /// Topics that the batch creates already.
    new_topics: &'a HashMap<TopicName, TopicId>,
}

impl ItemPrices<'_> {
    /// The price of each item, in the order of the call.
    fn of(self, part: &ShardEnqueue) -> impl Iterator<Item = usize> {
        let of_topic = self.prices.of_new_topic();
        let mut last = None;
        part.items.iter().map(move |item| {
            let is_other = of_topic > 0 && last.replace(&item.topic) != Some(&item.topic);
            let is_new = is_other && {
                let name = TopicName { namespace: part.namespace.clone(), topic: item.topic.clone() };
                self.topics.id_of(&name).is_none() && !self.new_topics.contains_key(&name)
            };
            let key = if item.dedupe.is_some() { self.prices.of(RowKind::Key) } else { 0 };
            let topic = if is_new { of_topic } else { 0 };
            self.prices.of(RowKind::Item) + topic + key + self.prices.of_bytes(item.body.bytes())
        })
    }
}

/// The room that is left in a batch for new items.
#[derive(Debug, Clone, Copy)]
struct Room {
    /// As much may be spent.
    left: usize,
    bytes: usize,
    /// The batch has no new item yet.
    no_item: bool,
    /// A call with a request id may cost more.
    long_call: bool,
}

impl Room {
    /// Whether the batch has room for a call with a request id, or else for some of a call's items. However
    /// many bytes they have, they fit where there is nothing else.
    fn fits(&self, part: &ShardEnqueue, price: impl Fn(&ShardEnqueue) -> usize) -> bool {
        if part.request.is_some() {
            let bytes = || part.charge() + ROW_BYTES * part.items.len();
            // No item costs less than a row. The price is asked for where it matters.
            let rows = || part.items.len() <= self.left && price(part) <= self.left;
            return (self.long_call || rows()) && (self.no_item || bytes() <= self.bytes);
        }
        self.no_item || part.items.first().is_none_or(|item| item.charge() + ROW_BYTES <= self.bytes)
    }

    /// How many of a call's items are taken: at least one.
    fn take(&self, part: &ShardEnqueue, prices: ItemPrices<'_>, credit: Option<i64>) -> usize {
        let (mut bytes, mut paid, mut spent) = (0, 0, 0);
        let fitting = part.items.iter().zip(prices.of(part)).take_while(|(item, price)| {
            let charge = item.charge();
            spent += price;
            bytes += charge + ROW_BYTES;
            let affordable = credit.is_none_or(|credit| paid < credit);
            paid += weight(Cost { rows: 1, bytes: charge });
            spent <= self.left && bytes <= self.bytes && affordable
        });
        fitting.count().max(1)
    }
}

fn add(builder: &mut BatchBuilder<'_>, mut part: ShardEnqueue, topics_of: TopicsOf<'_>) {
    if let Some(before) = builder.shard.tenure.spans.stepped_at() {
        // Its spans begin now: the time has stepped since it was admitted.
        let early = part.items.iter_mut().filter(|item| item.attributes.enqueued_at <= before);
        early.for_each(|item| item.admit(builder.moment.now));
    }
    let mut results = Vec::with_capacity(part.items.len());
    for index in delivery_order(&part.items) {
        let item = &part.items[index];
        builder.spend(RowKind::Item, 1);
        builder.note_bytes(item.body.bytes());
        builder.bytes += item.charge() + ROW_BYTES;
        results.push((index, insert(builder, &part, item, topics_of)));
    }
    results.sort_unstable_by_key(|(index, _)| *index);
    let results: Vec<_> = results.into_iter().map(|(_, result)| result).collect();
    remember(builder, &part, &results);
    builder.planned.push(PlannedAction::Enqueue { part, results });
}

/// The positions of a call's items by delivery order: items that are delivered together then lie together in
/// the primary key. Items of one topic and priority stay in the order of the call.
fn delivery_order(items: &[AdmittedItem]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|index| (&items[*index].topic, items[*index].priority));
    order
}

/// Stores the answers to repeat with their keys.
fn remember(builder: &mut BatchBuilder<'_>, part: &ShardEnqueue, results: &[Result<StoredItem, Refusal>]) {
    let Some(generation) = builder.shard.upkeep.generations.current(builder.moment.now) else { return };
    let dedupes = &mut builder.batch.dedupes;
    let before = dedupes.len();
    // A call that was refused as a whole, because a topic is paused or the shard drained, may be repeated.
    let is_whole = |result: &Result<_, Refusal>| {
        let reason = result.as_ref().err().map(|refusal| refusal.reason);
        matches!(reason, Some(Reason::TopicPaused | Reason::ShardDraining))
    };
    if let Some(request) = part.request.filter(|_| !results.iter().any(is_whole)) {
        let answers = results.iter().map(|result| result.as_ref().map(|stored| stored.key.seq));
        let answer = encode_remembered(answers, request.content);
        dedupes.push(DedupeEntry { generation, hash: request.hash, answer });
    }
    for (item, result) in part.items.iter().zip(results) {
        if let (Some(key), Ok(stored)) = (item.dedupe, result) {
            builder.shard.tenure.keyed_at = builder.marks.time;
            let answer = encode_remembered(std::iter::once(Ok(stored.key.seq)), key.mark());
            let entry = |hash| DedupeEntry { generation, hash, answer: answer.clone() };
            dedupes.extend(key.stored_under().map(entry));
        }
    }
    let keys = dedupes.len() - before;
    builder.note(RowKind::Key, keys);
}

fn insert(
    builder: &mut BatchBuilder<'_>,
    part: &ShardEnqueue,
    item: &AdmittedItem,
    topics_of: TopicsOf<'_>,
) -> Result<StoredItem, Refusal> {
    if let Some(refusal) = &item.refused {
        return Err(refusal.clone());
    }
    let topic = topic(builder, part, item, topics_of)?;
    builder.marks.seq = Seq(builder.marks.seq.0 + 1);
    let waits = item.due.filter(|due| *due > builder.moment.now);
    let rank = match item.due {
        Some(due) => due.as_micros(),
        None => {
            let rank = builder.shard.tenure.next_rank(item.rank);
            builder.marks.rank = builder.marks.rank.max(rank);
            rank
        }
    };
    let newest_first = on(Bug::NewestFirst) && item.due.is_none();
    let rank = if newest_first { -rank } else { rank };
    let key = Key { priority: item.priority, rank, seq: builder.marks.seq };
    builder.tally(topic).enqueued += 1;
    let state = match waits {
        Some(due) => {
            builder.added.add(Sweep::Due, due);
            builder.count(topic, 0, 1, 0);
            State::Scheduled
        }
        None => {
            builder.count(topic, 1, 0, 0);
            State::Ready
        }
    };
    builder.adds_expiry(item.attributes.expires_at);
    builder.batch.inserts.push(ItemRow {
        topic,
        key,
        state,
        attributes: item.attributes,
        body: item.body.clone(),
    });
    Ok(StoredItem { topic, key, state, handed_off: false })
}

/// The number of an item's topic.
fn topic(
    builder: &mut BatchBuilder<'_>,
    part: &ShardEnqueue,
    item: &AdmittedItem,
    topics_of: TopicsOf<'_>,
) -> Result<TopicId, Refusal> {
    if let Some((name, id)) = &builder.last_topic
        && name.topic == item.topic
        && name.namespace == part.namespace
    {
        return Ok(*id);
    }
    let name = TopicName { namespace: part.namespace.clone(), topic: item.topic.clone() };
    let id = topic_named(builder, &name, topics_of)?;
    builder.last_topic = Some((name, id));
    Ok(id)
}

/// The number of a topic. It is created where the shard has none of that name.
pub(super) fn topic_named(
    builder: &mut BatchBuilder<'_>,
    name: &TopicName,
    topics_of: TopicsOf<'_>,
) -> Result<TopicId, Refusal> {
    let known = builder.shard.contents.topics.id_of(name).or_else(|| builder.new_topics.get(name).copied());
    known.map_or_else(|| new_topic(builder, name, topics_of), Ok)
}

fn new_topic(
    builder: &mut BatchBuilder<'_>,
    name: &TopicName,
    topics_of: TopicsOf<'_>,
) -> Result<TopicId, Refusal> {
    let limit = builder.shard.settings.limits.topics_per_namespace;
    let new = builder.new_per_namespace.get(&name.namespace).copied().unwrap_or(0);
    if topics_of(&name.namespace) + new >= limit {
        return Err(too_many_topics(format!("the namespace has {limit} topics, which is the limit")));
    }
    if builder.new_topics.len() >= builder.topics_left {
        let bytes = builder.shard.settings.topic_bytes;
        return Err(too_many_topics(format!(
            "the topics of this node take {bytes} bytes, which is its limit"
        )));
    }
    *builder.new_per_namespace.entry(name.namespace.clone()).or_default() += 1;
    let id = TopicId(builder.marks.topic.0 + 1);
    builder.marks.topic = id;
    builder.note(RowKind::Topic, 1);
    builder.new_topics.insert(name.clone(), id);
    builder.batch.new_topics.push(TopicRow { id, name: name.clone(), counts: TopicCounts::default() });
    Ok(id)
}

fn too_many_topics(message: String) -> Refusal {
    metrics::counter!("forebay_topics_refused_total").increment(1);
    Refusal::new(Reason::TooManyTopics, message)
}
