//! PRIORITY between items of one topic and priority: those enqueued first come first. Their ranks say so.

use std::collections::HashMap;

use forebay_types::{Namespace, Schedule, ShardId, Topic};

use super::{
    items::{Item, Items, Location},
    record::{Finding, RunRecord},
};
use crate::{
    fake::Moment,
    sim::history::{Call, SentItem, What},
};

/// Items of one topic and priority in one shard are in order, whoever owned it.
type Queue<'a> = (&'a Namespace, &'a Topic, i32, Option<ShardId>, usize);

/// An enqueued item: when its call began and ended, its position in the call, its rank and its name.
struct RankedItem {
    start: Moment,
    end: Moment,
    index: usize,
    rank: i64,
    name: String,
}

pub(super) fn check(record: &RunRecord, items: &Items, found: &mut Vec<Finding>) {
    let mut queues: HashMap<Queue<'_>, Vec<RankedItem>> = HashMap::new();
    let first_sent = first_sent(record);
    for call in &record.calls {
        let What::Enqueue { items: members, answer, .. } = &call.what else { continue };
        for (index, sent) in members.iter().enumerate() {
            // Ranks of a shard that is ahead are raised in the order of its batches, and an item waits for
            // one with its key that comes before it.
            if !record.exact_time && waits_for_key(&members[..index], sent) {
                continue;
            }
            let Some(Ok(done)) = answer.member(index) else { continue };
            let Some(item) = items.by_id.get(&done.id) else { continue };
            // An item that an earlier call had sent too may be stored by that one, while this one waits for
            // it.
            let repeated = first_sent.get(&sent.tag) != Some(&call.start.event);
            let due_now = sent.schedule == Schedule::Now && stored_during(item, call);
            if done.duplicate || repeated || !due_now {
                continue;
            }
            let Some(first) = item.phases.first().filter(|first| first.location == Location::Ready) else {
                continue;
            };
            let mut add = |shard, process| {
                let queue = (&call.namespace, &sent.topic, sent.priority, shard, process);
                let (start, end, rank) = (call.start, call.end, first.key.rank);
                let name = format!("{} of call {}", item.id, call.start.event);
                queues.entry(queue).or_default().push(RankedItem { start, end, index, rank, name });
            };
            // Items that several nodes number have the order of their clocks.
            if !record.forwards {
                add(Some(item.id.shard), 0);
            }
            // One node numbers the items of all its shards. A fence that is ahead raises one shard's alone.
            if record.exact_time {
                add(None, call.process);
            }
        }
    }
    for queue in queues.values_mut() {
        queue.sort_unstable_by_key(|item| (item.start.event, item.index));
        in_order(queue, found);
    }
}

/// The call that was the first to send each item.
fn first_sent(record: &RunRecord) -> HashMap<u64, u64> {
    let mut first = HashMap::new();
    for call in &record.calls {
        let What::Enqueue { items, .. } = &call.what else { continue };
        for sent in items {
            let start = first.entry(sent.tag).or_insert(u64::MAX);
            *start = call.start.event.min(*start);
        }
    }
    first
}

/// Whether an earlier item of the call has the same key.
fn waits_for_key(before: &[SentItem], sent: &SentItem) -> bool {
    sent.dedupe_key.is_some() && before.iter().any(|other| other.dedupe_key == sent.dedupe_key)
}

/// A repeated call is answered with what an earlier one stored.
fn stored_during(item: &Item, call: &Call) -> bool {
    item.inserted().is_some_and(|done| call.start.event < done.event && done.event < call.end.event)
}

/// A call is later than another if it began after the other's answer.
fn in_order(queue: &[RankedItem], found: &mut Vec<Finding>) {
    for (at, later) in queue.iter().enumerate() {
        let before = queue[..at].iter().filter(|item| {
            let same = item.start.event == later.start.event;
            same && item.index < later.index || item.end.event < later.start.event
        });
        if let Some(earlier) = before.max_by_key(|item| item.rank).filter(|item| item.rank >= later.rank) {
            let what = format!(
                "{} has rank {}, and {} before it {}",
                later.name, later.rank, earlier.name, earlier.rank
            );
            found.push(("PRIORITY", what));
        }
    }
}
