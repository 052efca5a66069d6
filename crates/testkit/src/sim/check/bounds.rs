//! BOUNDED: no more is leased, waits or is admitted than the settings allow, as far as callers and shards can
//! tell. And nobody is refused for a limit while nothing is there that could have reached it.

use std::collections::HashMap;

use forebay_types::{ItemId, Reason, ShardId, TopicId};

use super::{
    items::Items,
    record::{Finding, RunRecord, ShardLog},
};
use crate::{
    fake::Change,
    sim::{
        history::{Answer, Call, SentItem, What},
        payload::{metadata, payload},
    },
};

/// Bytes that an item is charged with beside its body, at least.
const ITEM_BYTES_MIN: usize = 128;

pub(super) fn check(record: &RunRecord, items: &Items, found: &mut Vec<Finding>) {
    record.shards.iter().for_each(|shard| leases(record, shard, found));
    // A call that a stopped engine has not seen yet is not admitted.
    if record.stalls.iter().any(|stall| stall.whole) {
        return;
    }
    let moved = record.shards.iter().any(|shard| shard.owners.len() > 1);
    for call in &record.calls {
        polls(record, call, found);
        admitted(record, call, found);
        if !moved {
            waiting(record, call, items, found);
        }
        if record.strict {
            justified(record, call, found);
        }
    }
}

/// Open leases of a topic and of a shard.
fn leases(record: &RunRecord, shard: &ShardLog, found: &mut Vec<Finding>) {
    let limits = &record.settings.limits;
    let (mut all, mut of_topic) = (0_usize, HashMap::<TopicId, usize>::new());
    for batch in &shard.log {
        // Leases that end in a batch end before others begin.
        for change in &batch.changes {
            if let Change::Closed(entry) = change {
                all = all.saturating_sub(1);
                let count = of_topic.entry(entry.topic).or_default();
                *count = count.saturating_sub(1);
            }
        }
        for change in &batch.changes {
            if let Change::Leased(entry) = change {
                all += 1;
                let count = of_topic.entry(entry.topic).or_default();
                *count += 1;
                if *count > limits.leased_per_topic || all > limits.leased_per_shard {
                    let what = format!(
                        "shard {} has {all} leases, {count} of one topic, after batch {}",
                        shard.id, batch.number
                    );
                    return found.push(("BOUNDED", what));
                }
            }
        }
    }
}

/// Calls to the same process that were open when this one began, and were answered later.
fn open<'a>(record: &'a RunRecord, call: &'a Call) -> impl Iterator<Item = &'a Call> {
    record.calls.iter().filter(move |other| {
        let same = other.process == call.process && other.start.event < call.start.event;
        // Of things that happen in one instant nobody knows the order.
        same && other.end.at > call.start.at && other.what.refusal().is_none() && !other.what.is_lost()
    })
}

/// Long polls of a process.
fn polls(record: &RunRecord, call: &Call, found: &mut Vec<Finding>) {
    let waits = |call: &Call| matches!(&call.what, What::Dequeue { call, .. } if !call.wait.is_zero());
    let taken = matches!(&call.what, What::Dequeue { answer: Answer::Done(_), .. });
    let before = open(record, call).filter(|other| waits(other)).count();
    if taken && waits(call) && before >= record.settings.polls {
        found.push(("BOUNDED", format!("poll {} is taken beside {before} others", call.start.event)));
    }
}

/// Bytes that items are charged with, at least.
fn charge<'a>(items: impl Iterator<Item = &'a SentItem>) -> usize {
    items.map(|item| payload(item.tag, item.poison).len() + metadata(item.tag).len() + ITEM_BYTES_MIN).sum()
}

/// Bytes of enqueues that a process has not answered.
fn admitted(record: &RunRecord, call: &Call, found: &mut Vec<Finding>) {
    // Items that are passed on are charged at the owner of their shard.
    if record.forwards {
        return;
    }
    let What::Enqueue { items, answer: Answer::Done(_), .. } = &call.what else { return };
    let others = open(record, call).filter_map(|other| match &other.what {
        What::Enqueue { items, .. } => Some(charge(items.iter())),
        _ => None,
    });
    let before: usize = others.sum();
    let bytes = before + charge(items.iter());
    if before > 0 && bytes > record.settings.admit_bytes {
        found.push(("BOUNDED", format!("call {} is admitted, with {bytes} bytes in all", call.start.event)));
    }
}

/// Bytes of enqueues that wait for one shard's batches, in all and of one tenant.
fn waiting(record: &RunRecord, call: &Call, items: &Items, found: &mut Vec<Finding>) {
    // A call that is passed on reaches the shard some time after it began.
    if record.forwards {
        return;
    }
    let own = stored(call, items);
    let mut shards: Vec<ShardId> = own.iter().map(|(_, id)| id.shard).collect();
    shards.sort_unstable();
    shards.dedup();
    for shard in shards {
        let of_shard = |stored: &[(&SentItem, ItemId)]| {
            let later = stored.iter().filter(|(_, id)| {
                let done = items.by_id[id].inserted();
                id.shard == shard && done.is_some_and(|done| done.at > call.start.at)
            });
            charge(later.map(|(sent, _)| *sent))
        };
        let mine = of_shard(&own);
        let (mut all, mut tenant) = (0, 0);
        for other in record
            .calls
            .iter()
            .filter(|other| other.process == call.process && other.start.event < call.start.event)
        {
            let bytes = of_shard(&stored(other, items));
            all += bytes;
            tenant += if other.namespace == call.namespace { bytes } else { 0 };
        }
        let settings = &record.settings;
        let over = all > 0 && all + mine > settings.admit_shard_bytes
            || tenant > 0 && tenant + mine > settings.admit_tenant_bytes;
        if over {
            let what = format!(
                "call {} is taken by shard {shard} with {mine} bytes beside {all}, {tenant} of its tenant",
                call.start.event
            );
            found.push(("BOUNDED", what));
        }
    }
}

/// The items of an enqueue that it stored itself, wherever its answer went.
fn stored<'a>(call: &'a Call, items: &Items) -> Vec<(&'a SentItem, ItemId)> {
    let What::Enqueue { items: sent, answer: Answer::Done(_), .. } = &call.what else { return Vec::new() };
    let during = |id: &&ItemId| {
        let done = items.by_id[*id].inserted();
        done.is_some_and(|done| call.start.event < done.event && done.event < call.end.event)
    };
    let ids = |sent: &SentItem| items.by_tag.get(&sent.tag)?.iter().find(during).copied();
    sent.iter().filter_map(|sent| Some((sent, ids(sent)?))).collect()
}

/// Without anything else under way no limit is reached.
fn justified(record: &RunRecord, call: &Call, found: &mut Vec<Finding>) {
    let refused = |reason: Reason| call.what.refusal().is_some_and(|refusal| refusal.reason == reason);
    if !refused(Reason::Overloaded) {
        return;
    }
    let same_verb = |other: &&Call| std::mem::discriminant(&other.what) == std::mem::discriminant(&call.what);
    // Of things that happen in one instant nobody knows the order, and its last answers may be on their way.
    let others = record.calls.iter().filter(|other| {
        other.start.event != call.start.event
            && other.start.at <= call.start.at
            && other.end.at >= call.start.at
            && other.what.refusal().is_none()
    });
    if others.filter(same_verb).count() == 0 {
        found.push(("BOUNDED", format!("call {} was refused, and nothing else waits", call.start.event)));
    }
}
