//! PRIORITY: in a quiet run, each delivered item was the best ready one, and answers are in order.

use std::{collections::HashMap, time::Duration};

use forebay_engine::{DeliveredItem, Demand, Settings};
use forebay_types::{DeliveryPolicy, ItemId, Limits, TopicName, topic_covers};

use super::{
    deliveries,
    items::{Item, Items, Location, Phase},
    record::{Finding, RunRecord},
};
use crate::{
    fake::Change,
    sim::history::{Answer, Call, What},
};

/// A healthy shard answers a commit within this time.
const COMMIT_ANSWER_MAX: Duration = Duration::from_millis(5);

/// A head that is not read yet is waited for so long, and its shard is left out then.
const HEAD_TIMEOUT: Duration = Duration::from_millis(50);
/// A new owner has loaded its shard after this time.
const LOAD_MAX: Duration = Duration::from_millis(30);
/// The engine knows of a commit after this time.
const COMMIT_KNOWN_AFTER: Duration = Duration::from_millis(60);

/// The call of each delivery: by item and attempt, the event at which the call began.
type Takers = HashMap<(ItemId, u32), u64>;

pub(super) fn check(record: &RunRecord, items: &Items, found: &mut Vec<Finding>) {
    for call in &record.calls {
        if let What::Dequeue { answer: Answer::Done(delivered), .. } = &call.what {
            in_order(call, delivered, items, found);
        }
    }
    let takers = deliveries::all(record);
    let takers: Takers = takers.map(|(call, one)| ((one.id, one.attempt), call.start.event)).collect();
    // Under tiny limits on leases a shard may have no room for more, and is passed over.
    let (limits, usual) = (&record.settings.limits, Limits::default());
    let passes_over =
        limits.leased_per_topic < usual.leased_per_topic || limits.leased_per_shard < usual.leased_per_shard;
    // Heads that have to be read are left out of the turns of a prefix until they are.
    let follows_heads = !passes_over && record.settings.index_bytes == Settings::default().index_bytes;
    for (call, delivered) in deliveries::all(record) {
        let Some(item) = items.by_id.get(&delivered.id) else { continue };
        let Some(at) = taken(item, delivered) else { continue };
        let key = position(item, at);
        let others = items.by_id.values().filter(|other| other.topic == item.topic && other.id != item.id);
        if follows_heads && let Some(what) = passed_over_in_prefix(items, call, delivered, item, at, &takers)
        {
            found.push(("PRIORITY", what));
        }
        for other in others.filter(|other| !passes_over || other.id.shard == item.id.shard) {
            if let Some(better) = passed_over(other, call, &item.phases[at], key, &takers) {
                let what = format!(
                    "{} was delivered in call {}, while {} was ready since {} at {:?}, better than {key:?}",
                    item.id, call.start.event, other.id, better.done.event, better.key
                );
                found.push(("PRIORITY", what));
            }
        }
    }
}

/// Whether a topic of the same prefix had something ready of a better priority.
fn passed_over_in_prefix(
    items: &Items,
    call: &Call,
    delivered: &DeliveredItem,
    item: &Item,
    at: usize,
    takers: &Takers,
) -> Option<String> {
    let What::Dequeue { call: asked, .. } = &call.what else { return None };
    let is_it = |demand: &&Demand| topic_covers(&demand.topic, &delivered.topic);
    let prefix = &asked.demands.iter().find(is_it)?.topic;
    let is_other = |other: &&Item| {
        let topic = other.topic.as_ref().filter(|topic| topic.namespace == call.namespace);
        topic.is_some_and(|topic| topic.topic != delivered.topic && topic_covers(prefix, &topic.topic))
    };
    let key = (item.phases[at].key.priority, i64::MIN, item.id);
    items.by_id.values().filter(is_other).find_map(|other| {
        let better = passed_over(other, call, &item.phases[at], key, takers)?;
        Some(format!(
            "{} of {} was delivered in call {}, while {} was ready since {} with the better priority {}",
            item.id, delivered.topic, call.start.event, other.id, better.done.event, better.key.priority
        ))
    })
}

/// An answer is empty only if nothing was ready. An item was overlooked if it was ready for a while before
/// the answer, in a shard that the node had owned for a while before the call, and a later call received it.
pub(super) fn empty(record: &RunRecord, items: &Items, found: &mut Vec<Finding>) {
    let takers = deliveries::all(record);
    let takers: Takers = takers.map(|(call, one)| ((one.id, one.attempt), call.start.event)).collect();
    for call in &record.calls {
        let What::Dequeue { call: asked, answer: Answer::Done(delivered) } = &call.what else { continue };
        if !delivered.is_empty() || beside_lost(record, call) || was_stopping(record, call) {
            continue;
        }
        // Items that a read brings are used once no batch is in flight. Where commits are slow that may be
        // too late.
        let end = call.start.at.plus(asked.wait).plus(HEAD_TIMEOUT);
        if !record.strict && call.end.at >= end {
            continue;
        }
        for item in items.by_id.values() {
            let named = |topic: &TopicName| {
                topic.namespace == call.namespace
                    && asked.demands.iter().any(|one| topic_covers(&one.topic, &topic.topic))
            };
            if item.topic.as_ref().is_some_and(named)
                && owns(record, call, item.id)
                && overlooked(item, call, &takers)
            {
                let what = format!("{} was ready, and call {} was answered empty", item.id, call.start.event);
                found.push(("PRIORITY", what));
            }
        }
    }
}

/// Whether a poll was under way whose process died: it may have reserved the items.
fn beside_lost(record: &RunRecord, call: &Call) -> bool {
    record.calls.iter().any(|other| {
        let lost = matches!(&other.what, What::Dequeue { answer: Answer::Lost, .. });
        let beside = other.start.event < call.end.event && other.end.event > call.start.event;
        lost && beside && other.process == call.process && other.namespace == call.namespace
    })
}

/// Whether the process had been told to stop: it answers polls empty then, also while it still reads heads.
fn was_stopping(record: &RunRecord, call: &Call) -> bool {
    record.told.iter().any(|(process, told)| *process == call.process && told.event < call.end.event)
}

/// Whether the node had owned the item's shard long enough to have read its items.
fn owns(record: &RunRecord, call: &Call, id: ItemId) -> bool {
    let shard = record.shards.iter().find(|shard| shard.id == id.shard);
    let mut before = shard.into_iter().flat_map(|shard| &shard.owners);
    let last = before.rfind(|owner| owner.done.event < call.end.event);
    last.is_some_and(|owner| owner.process == call.process && owner.done.at.plus(LOAD_MAX) < call.start.at)
}

fn overlooked(item: &Item, call: &Call, takers: &Takers) -> bool {
    let Some(at) = item.phases.iter().rposition(|phase| phase.done.event < call.end.event) else {
        return false;
    };
    let phase = &item.phases[at];
    let ready = phase.location == Location::Ready && phase.lease.is_none();
    let known = phase.done.at.plus(COMMIT_KNOWN_AFTER) < call.end.at;
    let expired = phase.expires_at.is_some_and(|end| end <= call.end.at);
    // The next receiver must be known: a lost call may have reserved the item.
    let later = item.phases.get(at + 1).is_some_and(|next| {
        let attempt = next.lease.as_ref().map_or(1, |lease| lease.delivery());
        let taker = takers.get(&(item.id, attempt)).copied();
        next.asked.event > call.end.event && taker.is_some_and(|start| start > call.end.event)
    });
    ready && known && !expired && later
}

/// The phase in which an item was taken for a delivery.
pub(super) fn taken(item: &Item, delivered: &DeliveredItem) -> Option<usize> {
    let takes = |change: &Change| match change {
        Change::Leased(entry) => entry.delivery() == delivered.attempt,
        Change::Deleted(row) => {
            row.attributes.policy == DeliveryPolicy::AtMostOnce
                && row.attributes.deliveries + 1 == delivered.attempt
        }
        _ => false,
    };
    item.phases.iter().position(|phase| phase.changes.iter().any(takes))
}

/// Priority, rank and id of an item when a phase took it.
fn position(item: &Item, at: usize) -> (i32, i64, ItemId) {
    let key = item.phases[at].key;
    (key.priority, key.rank, item.id)
}

/// Whether an item was ready from before the call until after the other was taken, at a better position, and
/// no other call can have reserved it.
fn passed_over<'a>(
    other: &'a Item,
    call: &Call,
    taken: &Phase,
    key: (i32, i64, ItemId),
    takers: &Takers,
) -> Option<&'a Phase> {
    // The engine learns of a commit a little after it takes effect.
    let known = |phase: &Phase| phase.done.at.plus(COMMIT_ANSWER_MAX) < call.start.at;
    let at = other.phases.iter().rposition(|phase| phase.done.event < call.start.event)?;
    let phase = &other.phases[at];
    let better = (phase.key.priority, phase.key.rank, other.id) < key;
    let ready = phase.location == Location::Ready && phase.lease.is_none();
    let expired = phase.expires_at.is_some_and(|end| end <= taken.done.at);
    // Another call, or this one, may have reserved it in memory.
    let free = other.phases.get(at + 1).is_none_or(|next| {
        let attempt = next.lease.as_ref().map_or(1, |lease| lease.delivery());
        let taker = takers.get(&(other.id, attempt)).copied();
        next.asked.event > taken.done.event && taker.is_some_and(|start| start > taken.done.event)
    });
    (better && ready && known(phase) && !expired && free).then_some(phase)
}

/// Within one answer, the items of a topic are in delivery order.
fn in_order(call: &Call, delivered: &[DeliveredItem], items: &Items, found: &mut Vec<Finding>) {
    let mut last: Option<(&DeliveredItem, (i32, i64, ItemId))> = None;
    for one in delivered {
        let Some(item) = items.by_id.get(&one.id) else { continue };
        let Some(at) = taken(item, one) else { continue };
        let key = position(item, at);
        if let Some((before, before_key)) = last
            && before.topic == one.topic
            && before_key > key
        {
            let (first, second) = (before.id, one.id);
            found.push(("PRIORITY", format!("{first} before {second} in call {}", call.start.event)));
        }
        last = Some((one, key));
    }
}
