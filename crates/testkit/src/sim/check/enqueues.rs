//! NO-LOST-ENQUEUE, NO-STALE-OK, UNKNOWN-STAYS-UNKNOWN, IDEMPOTENT-ENQUEUE: compares the answers to enqueues
//! with the stored rows.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use forebay_types::{ItemId, Namespace, Timestamp};

use super::{
    items::{Item, Items},
    record::{Finding, RunRecord},
};
use crate::sim::history::{Call, Known, Sent, What};

/// A member of an enqueue call.
struct Member<'a> {
    call: &'a Call,
    sent: &'a Sent,
    known: Known,
    id: Option<ItemId>,
    duplicate: bool,
    by_request: bool,
}

pub(super) fn check(record: &RunRecord, items: &Items, found: &mut Vec<Finding>) {
    let members = members(record);
    for member in &members {
        answered(member, items, found);
    }
    told_as_failed(&members, items, found);
    once(record, &members, items, found);
}

fn members(record: &RunRecord) -> Vec<Member<'_>> {
    let mut members = Vec::new();
    for call in &record.calls {
        let What::Enqueue { items, request_id, answer } = &call.what else { continue };
        for (at, sent) in items.iter().enumerate() {
            let done = answer.member(at).and_then(Result::ok);
            members.push(Member {
                call,
                sent,
                known: answer.known(at),
                id: done.map(|done| done.id),
                duplicate: done.is_some_and(|done| done.duplicate),
                by_request: request_id.is_some(),
            });
        }
    }
    members
}

/// An item that was answered OK was stored before, as it was sent.
fn answered(member: &Member<'_>, items: &Items, found: &mut Vec<Finding>) {
    let Some(id) = member.id else { return };
    let tag = member.sent.tag;
    let Some(item) = items.by_id.get(&id) else {
        return found.push(("NO-LOST-ENQUEUE", format!("#{tag} was answered {id}, which was never stored")));
    };
    if item.inserted().is_none_or(|moment| moment.event > member.call.end.event) {
        found.push(("NO-STALE-OK", format!("#{tag} was answered {id} before that was stored")));
    }
    if !member.duplicate && item.tag != Some(tag) {
        found.push(("NO-PHANTOM", format!("#{tag} was answered {id}, which is {:?}", item.tag)));
    }
    if member.duplicate && member.sent.dedupe_key.is_none() && !member.by_request {
        found.push(("IDEMPOTENT-ENQUEUE", format!("#{tag} without a key is reported as a duplicate")));
    }
    if !member.duplicate && !matches(item, member) {
        found.push(("NO-PHANTOM", format!("#{tag} is stored as something else: {item:?}")));
    }
    if let Some(shard) = member.sent.shard
        && id.shard != shard
    {
        found.push(("NO-PHANTOM", format!("#{tag} for shard {shard} is stored as {id}")));
    }
}

fn matches(item: &Item, member: &Member<'_>) -> bool {
    let sent = member.sent;
    let topic = item.topic.as_ref();
    topic.is_some_and(|topic| topic.topic == sent.topic && topic.namespace == member.call.namespace)
        && item.policy == sent.policy
        && item.max_attempts == sent.max_attempts
        && item.expires_at == sent.ttl.map(|ttl| item.enqueued_at.plus(ttl))
}

/// An item that was refused every time, never with an unknown outcome, is not stored.
fn told_as_failed(members: &[Member<'_>], items: &Items, found: &mut Vec<Finding>) {
    let mut open: HashMap<u64, bool> = HashMap::new();
    for member in members {
        *open.entry(member.sent.tag).or_default() |= member.known != Known::Not;
    }
    for (tag, open) in open {
        if !open && let Some(ids) = items.by_tag.get(&tag) {
            found.push(("UNKNOWN-STAYS-UNKNOWN", format!("#{tag} was refused, and is stored as {ids:?}")));
        }
    }
    for (tag, ids) in &items.by_tag {
        if !members.iter().any(|member| member.sent.tag == *tag) {
            found.push(("NO-PHANTOM", format!("nobody sent #{tag}, stored as {ids:?}")));
        }
    }
    for item in items.by_id.values().filter(|item| item.tag.is_none()) {
        found.push(("NO-PHANTOM", format!("{} has a payload that nobody sent", item.id)));
    }
}

/// A dedupe key or a request stores one item within its window, which counts from the time of the batch: that
/// may be committed much later. Without either, a call stores one item.
fn once(record: &RunRecord, members: &[Member<'_>], items: &Items, found: &mut Vec<Finding>) {
    // Clocks may run slightly slow or fast, and windows end at whole seconds.
    let window = (record.settings.dedupe_window * 8 / 10).saturating_sub(Duration::from_secs(2));
    for (tag, ids) in &items.by_tag {
        let mut times: Vec<Timestamp> = Vec::new();
        for id in ids {
            times.extend(items.by_id[id].phases.first().map(|phase| phase.time));
        }
        close_together(&format!("#{tag} ({ids:?})"), times, window, found);
    }
    let mut keys: BTreeMap<(&Namespace, &str), Vec<ItemId>> = BTreeMap::new();
    for member in members {
        if let Some(key) = &member.sent.dedupe_key {
            let ids = keys.entry((&member.call.namespace, key)).or_default();
            for id in items.by_tag.get(&member.sent.tag).into_iter().flatten() {
                if !ids.contains(id) {
                    ids.push(*id);
                }
            }
        }
    }
    for ((_, key), ids) in &keys {
        let times = ids.iter().filter_map(|id| items.by_id[id].phases.first()).map(|phase| phase.time);
        close_together(&format!("key {key} ({ids:?})"), times.collect(), window, found);
    }
    for member in members.iter().filter(|member| member.duplicate) {
        let (Some(key), Some(id)) = (&member.sent.dedupe_key, member.id) else { continue };
        let of_key = keys.get(&(&member.call.namespace, key.as_str()));
        if !of_key.is_some_and(|ids| ids.contains(&id)) {
            found.push(("IDEMPOTENT-ENQUEUE", format!("key {key} was answered {id}, which has another key")));
        }
    }
}

fn close_together(name: &str, mut times: Vec<Timestamp>, window: Duration, found: &mut Vec<Finding>) {
    times.sort_unstable();
    for pair in times.windows(2) {
        if pair[1].since(pair[0]) < window {
            found.push(("IDEMPOTENT-ENQUEUE", format!("{name} was stored twice, at {pair:?}")));
        }
    }
}
