//! New items: numbered, with their topics, and with what their keys remember.

use forebay_store::{DedupeEntry, ItemRow, TopicCounts, TopicRow};
use forebay_types::{Key, Reason, Refusal, Seq, State, TopicId, TopicName};

use super::{builder::BatchBuilder, remembered_answer::encode};
use crate::shard::{
    in_flight::{Planned, StoredItem},
    work::{AdmittedItem, ShardEnqueue},
};

/// What a row costs beside its body.
const ROW_BYTES: usize = 256;

/// How many topics a namespace has on this node.
type TopicsOf<'a> = &'a dyn Fn(&str) -> usize;

/// Adds the enqueues that wait, in turn by namespace. A quarter of the batch is theirs, however many
/// settlements wait.
pub(super) fn add_enqueues(builder: &mut BatchBuilder<'_>, topics_of: TopicsOf<'_>) {
    let rows_max = match builder.is_bisecting() {
        true => builder.rows_max,
        false => builder.rows_max.max(builder.rows + builder.rows_max / 4),
    };
    while builder.rows < rows_max {
        let Some(mut part) = builder.shard.enqueues.pop() else { break };
        let bytes = part.charge() + ROW_BYTES * part.items.len();
        let fits = builder.rows + part.items.len() <= rows_max
            && builder.bytes + bytes <= builder.shard.tenure.batch_bytes;
        if part.request.is_some() {
            let alone = builder.rows == 0 || builder.batch.inserts.is_empty() && !builder.is_bisecting();
            if !fits && !alone {
                builder.shard.enqueues.unpop(part);
                break;
            }
        } else if !fits {
            let fitting = fitting(builder, &part.items, rows_max - builder.rows);
            if fitting == 0 {
                builder.shard.enqueues.unpop(part);
                break;
            }
            if fitting < part.items.len() {
                let items = part.items.split_off(fitting);
                let (call, namespace) = (part.call, part.namespace.clone());
                builder.shard.enqueues.unpop(ShardEnqueue { call, namespace, request: None, items });
            }
        }
        add(builder, part, topics_of);
    }
}

/// How many of the items fit. At least one if the batch is empty.
fn fitting(builder: &BatchBuilder<'_>, items: &[AdmittedItem], rows: usize) -> usize {
    let mut bytes = builder.bytes;
    let fitting = items.iter().take(rows).take_while(|item| {
        bytes += item.charge() + ROW_BYTES;
        bytes <= builder.shard.tenure.batch_bytes
    });
    fitting.count().max(usize::from(builder.batch.inserts.is_empty()))
}

fn add(builder: &mut BatchBuilder<'_>, part: ShardEnqueue, topics_of: TopicsOf<'_>) {
    let mut results = Vec::with_capacity(part.items.len());
    for index in delivery_order(&part.items) {
        let item = &part.items[index];
        builder.rows += 1;
        builder.bytes += item.charge() + ROW_BYTES;
        results.push((index, insert(builder, &part, item, topics_of)));
    }
    results.sort_unstable_by_key(|(index, _)| *index);
    let results: Vec<_> = results.into_iter().map(|(_, result)| result).collect();
    remember(builder, &part, &results);
    builder.planned.push(Planned::Enqueue { part, results });
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
    let Some(generation) = builder.shard.generations.current(builder.moment.now) else { return };
    let dedupes = &mut builder.batch.dedupes;
    if let Some(hash) = part.request {
        dedupes.push(DedupeEntry { generation, hash, answer: encode(results) });
    }
    for (item, result) in part.items.iter().zip(results) {
        if let (Some(hash), Ok(_)) = (item.dedupe, result) {
            let answer = encode(std::slice::from_ref(result));
            dedupes.push(DedupeEntry { generation, hash, answer });
        }
    }
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
    let key = Key { priority: item.priority, rank, seq: builder.marks.seq };
    let state = match waits {
        Some(due) => {
            builder.adds_schedule(due);
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
    let known = builder.shard.topics.id_of(&name).or_else(|| builder.new_topics.get(&name).copied());
    let id = match known {
        Some(id) => id,
        None => new_topic(builder, &name, topics_of)?,
    };
    builder.last_topic = Some((name, id));
    Ok(id)
}

fn new_topic(
    builder: &mut BatchBuilder<'_>,
    name: &TopicName,
    topics_of: TopicsOf<'_>,
) -> Result<TopicId, Refusal> {
    let limit = builder.shard.settings.limits.topics_per_namespace;
    let new = builder.new_topics.keys().filter(|other| other.namespace == name.namespace).count();
    if topics_of(&name.namespace) + new >= limit {
        let message = format!("the namespace has {limit} topics, which is the limit");
        return Err(Refusal::new(Reason::TooManyTopics, message));
    }
    let id = TopicId(builder.marks.topic.0 + 1);
    builder.marks.topic = id;
    builder.new_topics.insert(name.clone(), id);
    builder.batch.new_topics.push(TopicRow { id, name: name.clone(), counts: TopicCounts::default() });
    Ok(id)
}
