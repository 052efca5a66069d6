//! NO-PHANTOM, LEASE-BEFORE-DELIVERY, LEASE-EXCLUSIVE, NO-DELIVERY-AFTER-ACK: compares deliveries with what
//! was sent and stored.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use forebay_engine::DeliveredItem;
use forebay_types::{DeliveryPolicy, ItemId};

use super::{
    items::{Item, Items},
    record::{Finding, RunRecord},
};
use crate::{
    fake::Change,
    sim::{
        history::{Answer, Call, CallerKnowledge, SentItem, What},
        payload::tag_of,
    },
};

/// The engine knows of a commit after this time.
const COMMIT_KNOWN_AFTER: Duration = Duration::from_millis(60);

/// Every delivery that reached a caller.
pub(super) fn all(record: &RunRecord) -> impl Iterator<Item = (&Call, &DeliveredItem)> {
    record.calls.iter().flat_map(|call| {
        let items = match &call.what {
            What::Dequeue { answer: Answer::Done(items), .. } => items.as_slice(),
            _ => &[],
        };
        items.iter().map(move |item| (call, item))
    })
}

pub(super) fn check(record: &RunRecord, items: &Items, found: &mut Vec<Finding>) {
    let sent = sent(record);
    let acked = acked(record);
    let mut seen = HashSet::new();
    for (call, delivered) in all(record) {
        let id = delivered.id;
        let name = format!("{id}.{} in call {}", delivered.attempt, call.start.event);
        phantom(call, delivered, items.by_id.get(&id), &sent, &name, found);
        if acked.get(&id).is_some_and(|event| *event < call.start.event) {
            found.push(("NO-DELIVERY-AFTER-ACK", format!("{name} after its ack")));
        }
        if !seen.insert((id, delivered.attempt)) {
            found.push(("LEASE-EXCLUSIVE", format!("{name} was delivered twice")));
        }
        match items.by_id.get(&id) {
            Some(item) => before(record, call, delivered, item, items, &name, found),
            None => found.push(("NO-PHANTOM", format!("{name} was never stored"))),
        }
    }
    for item in items.by_id.values() {
        grows(item, found);
        at_most_once(record, item, found);
    }
}

fn sent(record: &RunRecord) -> HashMap<u64, Vec<(&Call, &SentItem, CallerKnowledge)>> {
    let mut sent: HashMap<u64, Vec<_>> = HashMap::new();
    for call in &record.calls {
        if let What::Enqueue { items, answer, .. } = &call.what {
            for (at, item) in items.iter().enumerate() {
                sent.entry(item.tag).or_default().push((call, item, answer.known(at)));
            }
        }
    }
    sent
}

fn acked(record: &RunRecord) -> HashMap<ItemId, u64> {
    let mut acked: HashMap<ItemId, u64> = HashMap::new();
    for call in &record.calls {
        let What::Ack { receipts, answer } = &call.what else { continue };
        for (at, receipt) in receipts.iter().enumerate() {
            if answer.known(at) == CallerKnowledge::Done {
                let event = acked.entry(receipt.item).or_insert(u64::MAX);
                *event = (*event).min(call.end.event);
            }
        }
    }
    acked
}

/// A delivered item was sent and not refused.
fn phantom(
    call: &Call,
    delivered: &DeliveredItem,
    stored: Option<&Item>,
    sent: &HashMap<u64, Vec<(&Call, &SentItem, CallerKnowledge)>>,
    name: &str,
    found: &mut Vec<Finding>,
) {
    let tag = tag_of(&delivered.body.payload);
    let Some(of_tag) = tag.and_then(|tag| sent.get(&tag)) else {
        return found.push(("NO-PHANTOM", format!("{name} has a payload that nobody sent")));
    };
    // A caller may have given it another priority: see `as_stored`.
    let is_updated = stored.is_some_and(|item| item.phases.iter().any(|phase| phase.has_other_values()));
    let same = |of: &&(&Call, &SentItem, CallerKnowledge)| {
        let (by, item, _) = **of;
        by.namespace == call.namespace
            && item.topic == delivered.topic
            && (item.priority == delivered.priority || is_updated)
            && item.policy == delivered.policy
    };
    if of_tag.iter().find(same).is_none() {
        let foreign = of_tag.iter().all(|(by, ..)| by.namespace != call.namespace);
        let invariant = if foreign { "ISOLATION" } else { "NO-PHANTOM" };
        found.push((invariant, format!("{name} is not as it was sent")));
    }
    if of_tag.iter().all(|(.., known)| *known == CallerKnowledge::Not) {
        found.push(("UNKNOWN-STAYS-UNKNOWN", format!("{name} was refused when it was sent")));
    }
}

/// A delivery's lease or removal is committed during the call, and the lease is still open at its end.
fn before(
    record: &RunRecord,
    call: &Call,
    delivered: &DeliveredItem,
    item: &Item,
    items: &Items,
    name: &str,
    found: &mut Vec<Finding>,
) {
    let Some(receipt) = delivered.receipt else {
        let mut during = item.phases.iter().filter(|phase| {
            phase.deleted() && phase.done.event > call.start.event && phase.done.event <= call.end.event
        });
        if during.next().is_none() {
            found.push(("LEASE-BEFORE-DELIVERY", format!("{name} was delivered before it was removed")));
        }
        return;
    };
    let lease = items.leases.get(&(receipt.item, receipt.nonce));
    let Some(lease) = lease.filter(|_| receipt.item == item.id) else {
        return found.push(("LEASE-BEFORE-DELIVERY", format!("{name} has no lease")));
    };
    let opened = &item.phases[lease.opened];
    if opened.done.event > call.end.event {
        found.push(("LEASE-BEFORE-DELIVERY", format!("{name} was delivered before its lease")));
    }
    if opened.done.event <= call.start.event {
        found.push(("LEASE-EXCLUSIVE", format!("{name} has a lease from before the call")));
    }
    let told = (receipt.delivery, delivered.attempt, delivered.lease_expires_at);
    if told != (lease.entry.delivery(), lease.entry.delivery(), Some(lease.entry.deadline)) {
        found.push(("LEASE-EXCLUSIVE", format!("{name} reports {told:?}, its lease is {:?}", lease.entry)));
    }
    let over = lease.closed.is_some_and(|closed| {
        let phase = &item.phases[closed];
        // A caller or an operation may end it while the engine does not know of that commit yet.
        let removes = |change: &Change| matches!(change, Change::Cancelled(_) | Change::Purged(_));
        let by_others = phase.resets || phase.changes.iter().any(removes);
        let known = !by_others || phase.done.at.plus(COMMIT_KNOWN_AFTER) < call.end.at;
        phase.done.event < call.end.event && known
    });
    // Where clocks are off, the next owner may end it early.
    if over && record.exact_time && !record.stood_still(call) {
        found.push(("LEASE-EXCLUSIVE", format!("{name} was delivered after the end of its lease")));
    }
}

/// The delivery numbers of an item increase.
fn grows(item: &Item, found: &mut Vec<Finding>) {
    let mut last = 0;
    let changes = item.phases.iter().flat_map(|phase| &phase.changes);
    for change in changes {
        if let Change::Leased(entry) = change {
            if entry.delivery() <= last {
                let (id, delivery) = (item.id, entry.delivery());
                found.push(("LEASE-EXCLUSIVE", format!("{id}: delivery {delivery} after {last}")));
            }
            last = entry.delivery();
        }
    }
}

/// An at-most-once item is delivered when it is removed, or it returns.
fn at_most_once(record: &RunRecord, item: &Item, found: &mut Vec<Finding>) {
    if item.policy != DeliveryPolicy::AtMostOnce {
        return;
    }
    for (at, phase) in item.phases.iter().enumerate().filter(|(_, phase)| phase.deleted()) {
        // It may have expired between its removal and the answer, which then omits it.
        let over = record.calls.iter().filter(|call| {
            let during = call.start.event < phase.done.event && phase.done.event <= call.end.event;
            during && matches!(call.what, What::Dequeue { .. })
        });
        let over = over.map(|call| call.end.at).max().unwrap_or(phase.done.at);
        let expired = phase.expires_at.is_some_and(|end| end <= over) || !record.exact_time;
        let back = item.phases.get(at + 1).is_some();
        // Another node leases it first, and takes it out before it hands it out.
        let fetched = at.checked_sub(1).and_then(|before| item.phases[before].lease.as_ref());
        let taken = phase.changes.iter().find_map(|change| match (change, fetched) {
            (Change::Deleted(_), Some(lease)) => Some(lease.delivery()),
            (Change::Deleted(row), None) => Some(row.attributes.deliveries + 1),
            _ => None,
        });
        // Nobody may have it if that node does not hear that it is out, or its caller is gone.
        let unheard = fetched.is_some() && record.forwards;
        let handed =
            all(record).any(|(_, delivered)| delivered.id == item.id && Some(delivered.attempt) == taken);
        // The item may be lost with a process that died or lost the shard.
        let died = record
            .deaths
            .iter()
            .any(|(process, moment)| *process == phase.process && moment.event > phase.done.event);
        let mut owners =
            record.shards.iter().filter(|shard| shard.id == item.id.shard).flat_map(|shard| &shard.owners);
        let lost = owners.any(|owner| owner.done.event > phase.done.event);
        if handed && back {
            found.push(("LEASE-EXCLUSIVE", format!("{} was delivered and returned", item.id)));
        }
        if !(expired || back || handed || died || lost || unheard) {
            found.push(("NO-LOST-ENQUEUE", format!("{} was removed and delivered to nobody", item.id)));
        }
    }
}
