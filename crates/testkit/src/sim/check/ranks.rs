//! PRIORITY between items of one topic and priority: those enqueued first come first. Their ranks say so.

use std::collections::HashMap;

use forebay_engine::Schedule;
use forebay_types::{Namespace, ShardId, Topic};

use super::{
    items::{Item, Items, Location},
    record::{Finding, RunRecord},
};
use crate::{
    fake::Moment,
    sim::history::{Call, What},
};

/// Items of one topic and priority in one shard are in order, whoever owned it.
type Queue<'a> = (&'a Namespace, &'a Topic, i32, Option<ShardId>, usize);

/// An enqueued item: when its call began and ended, its position in the call, its rank and its name.
struct Enqueued {
    start: Moment,
    end: Moment,
    index: usize,
    rank: i64,
    name: String,
}

pub(super) fn check(record: &RunRecord, items: &Items, found: &mut Vec<Finding>) {
    let mut queues: HashMap<Queue<'_>, Vec<Enqueued>> = HashMap::new();
    for call in &record.calls {
        let What::Enqueue { items: sent, answer, .. } = &call.what else { continue };
        for (index, sent) in sent.iter().enumerate() {
            let Some(Ok(done)) = answer.member(index) else { continue };
            let Some(item) = items.by_id.get(&done.id) else { continue };
            if done.duplicate || sent.schedule != Schedule::Now || !stored_during(item, call) {
                continue;
            }
            let Some(first) = item.phases.first().filter(|first| first.location == Location::Ready) else {
                continue;
            };
            let mut add = |shard, process| {
                let queue = (&call.namespace, &sent.topic, sent.priority, shard, process);
                let (start, end, rank) = (call.start, call.end, first.key.rank);
                let name = format!("{} of call {}", item.id, call.start.event);
                queues.entry(queue).or_default().push(Enqueued { start, end, index, rank, name });
            };
            add(Some(item.id.shard), 0);
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

/// A repeated call is answered with what an earlier one stored.
fn stored_during(item: &Item, call: &Call) -> bool {
    item.inserted().is_some_and(|done| call.start.event < done.event && done.event < call.end.event)
}

/// A call is later than another if it began after the other's answer.
fn in_order(queue: &[Enqueued], found: &mut Vec<Finding>) {
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
