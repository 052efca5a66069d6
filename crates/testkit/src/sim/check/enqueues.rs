//! NO-LOST-ENQUEUE, NO-STALE-OK, UNKNOWN-STAYS-UNKNOWN, IDEMPOTENT-ENQUEUE: compares the answers to enqueues
//! with the stored rows.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::Duration,
};

use forebay_types::{ItemId, Namespace, Timestamp, Topic};

use super::{
    items::{Item, Items},
    record::{Finding, RunRecord},
};
use crate::{
    fake::Change,
    sim::history::{Call, CallerKnowledge, SentItem, What},
};

/// A member of an enqueue call.
struct Member<'a> {
    call: &'a Call,
    sent: &'a SentItem,
    known: CallerKnowledge,
    id: Option<ItemId>,
    duplicate: bool,
    by_request: bool,
}

impl<'a> Member<'a> {
    fn tag(&self) -> u64 {
        self.sent.tag
    }

    fn key(&self) -> Option<KeyOf<'a>> {
        let key = self.sent.dedupe_key.as_deref()?;
        Some((&self.call.namespace, &self.sent.topic, key))
    }
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
        *open.entry(member.sent.tag).or_default() |= member.known != CallerKnowledge::Not;
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

/// A dedupe key of a topic stores one item within its window, and a request id the items of one call. The
/// window counts from the time of the batch: that may be committed much later. Without either, a call stores
/// one item.
fn once(record: &RunRecord, members: &[Member<'_>], items: &Items, found: &mut Vec<Finding>) {
    // Clocks may run slightly slow or fast, and windows end at whole seconds.
    let window = (record.settings.dedupe_window * 8 / 10).saturating_sub(Duration::from_secs(2));
    let keyed: HashSet<u64> =
        members.iter().filter(|it| it.sent.dedupe_key.is_some()).map(Member::tag).collect();
    for (tag, ids) in &items.by_tag {
        let stored: Vec<ShardItem> = ids.iter().filter_map(|id| ShardItem::of(items, *id)).collect();
        // The item of a key may be removed, and then be stored again by a late repeat.
        let frees = keyed.contains(tag);
        close_together(&format!("#{tag} ({ids:?})"), stored, frees, window, found);
    }
    requests(members, items, window, found);
    let mut keys: BTreeMap<KeyOf<'_>, Vec<ItemId>> = BTreeMap::new();
    for member in members {
        if let Some(key) = member.key() {
            let ids = keys.entry(key).or_default();
            for id in items.by_tag.get(&member.sent.tag).into_iter().flatten() {
                if !ids.contains(id) {
                    ids.push(*id);
                }
            }
        }
    }
    for (key, ids) in &keys {
        let stored = ids.iter().filter_map(|id| ShardItem::of(items, *id)).collect();
        close_together(&format!("key {key:?} ({ids:?})"), stored, true, window, found);
    }
    for member in members.iter().filter(|member| member.duplicate) {
        let (Some(key), Some(id)) = (member.key(), member.id) else { continue };
        // A program of the release before answers with the item of another topic.
        let is_key =
            |other: &KeyOf<'_>| *other == key || record.older && (other.0, other.2) == (key.0, key.2);
        if !keys.iter().any(|(other, ids)| is_key(other) && ids.contains(&id)) {
            let what = format!("key {key:?} was answered {id}, which has another key");
            found.push(("IDEMPOTENT-ENQUEUE", what));
        }
        let removed = ShardItem::of(items, id).and_then(|stored| stored.removed);
        if record.strict && removed.is_some_and(|event| event < member.call.start.event) {
            let what = format!("key {key:?} was answered {id}, which an operator had removed");
            found.push(("IDEMPOTENT-ENQUEUE", what));
        }
    }
}

/// Calls with one request id store the items of one of them.
fn requests(members: &[Member<'_>], items: &Items, window: Duration, found: &mut Vec<Finding>) {
    let mut calls: BTreeMap<(&Namespace, &str), BTreeMap<u64, ShardItem>> = BTreeMap::new();
    for member in members {
        let What::Enqueue { items: sent, request_id: Some(id), .. } = &member.call.what else { continue };
        // A call and its repeats have the same items.
        let Some(first) = sent.iter().map(|sent| sent.tag).min() else { continue };
        for item in items.by_tag.get(&member.sent.tag).into_iter().flatten() {
            if let Some(stored) = ShardItem::of(items, *item) {
                calls.entry((&member.call.namespace, id)).or_default().entry(first).or_insert(stored);
            }
        }
    }
    for ((_, id), stored) in calls {
        close_together(&format!("request {id}"), stored.into_values().collect(), false, window, found);
    }
}

/// A dedupe key: its namespace, its topic and its text.
type KeyOf<'a> = (&'a Namespace, &'a Topic, &'a str);

/// An item in a shard.
#[derive(Debug, Clone, Copy)]
struct ShardItem {
    /// By the shard's time.
    at: Timestamp,
    /// The event that stored it.
    event: u64,
    /// The event in which an operator removed it.
    removed: Option<u64>,
}

impl ShardItem {
    fn of(items: &Items, id: ItemId) -> Option<Self> {
        let phases = &items.by_id.get(&id)?.phases;
        let removes = |change: &Change| {
            matches!(
                change,
                Change::Purged(_)
                    | Change::DeadLetterPurged(_)
                    | Change::Cancelled(_)
                    | Change::DeadLetterCancelled(_)
            )
        };
        let removed = phases.iter().find(|phase| phase.changes.iter().any(removes));
        let first = phases.first()?;
        let removed = removed.map(|phase| phase.done.event);
        Some(Self { at: first.time, event: first.done.event, removed })
    }
}

/// `frees`: who removes one lets the next one in.
fn close_together(
    name: &str,
    mut stored: Vec<ShardItem>,
    frees: bool,
    window: Duration,
    found: &mut Vec<Finding>,
) {
    stored.sort_unstable_by_key(|stored| (stored.at, stored.event));
    for pair in stored.windows(2) {
        let is_free = frees && pair[0].removed.is_some_and(|event| event <= pair[1].event);
        if pair[1].at.since(pair[0].at) < window && !is_free {
            let times = [pair[0].at, pair[1].at];
            found.push(("IDEMPOTENT-ENQUEUE", format!("{name} was stored twice, at {times:?}")));
        }
    }
}
