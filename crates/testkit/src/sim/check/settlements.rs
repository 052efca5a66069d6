//! STALE-RECEIPT-INERT, NO-STALE-OK, NO-LOST-ENQUEUE, EVENTUAL-REDELIVERY: compares acks, nacks and
//! extensions with the ends of deliveries in the log, and every end with its reason.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use forebay_engine::NackAction;
use forebay_types::{DeathCause, DeliveryPolicy, Fate, ItemId, Receipt, Refusal, Timestamp};

use super::{
    deliveries,
    items::{Item, Items, Lease, Location, Phase},
    record::{Finding, RunRecord},
};
use crate::{
    fake::Change,
    sim::history::{Call, CallerKnowledge, What},
};

/// An item that fails with less than this left before its expiry becomes a dead letter, if it was to wait for
/// longer.
const LAST_RETRY: Duration = Duration::from_secs(1);

/// One member of an ack or nack: its delivery, its answer, what its caller knows, and what a nack asked for.
type Member<'a> = (Receipt, Option<Result<(), &'a Refusal>>, CallerKnowledge, Option<NackAction>);

/// A request to end a delivery that was not refused.
struct EndRequest {
    start: u64,
    nack: Option<NackAction>,
}

/// Acks of each delivery: when each began, and when it was answered.
type Acks = HashMap<(ItemId, u64), Vec<(u64, u64)>>;

/// The acks of a run.
fn acks(record: &RunRecord) -> Acks {
    let mut acks = Acks::new();
    for call in &record.calls {
        let What::Ack { receipts, answer } = &call.what else { continue };
        for (at, receipt) in receipts.iter().enumerate() {
            let answered = if answer.member(at).is_some() { call.end.event } else { u64::MAX };
            acks.entry((receipt.item, receipt.nonce)).or_default().push((call.start.event, answered));
        }
    }
    acks
}

pub(super) fn check(record: &RunRecord, items: &Items, found: &mut Vec<Finding>) {
    // Whether a delivery was ended by a nack.
    let mut ended: HashMap<(ItemId, u64), bool> = HashMap::new();
    let acks = acks(record);
    let mut requests: HashMap<(ItemId, u64), Vec<EndRequest>> = HashMap::new();
    for call in &record.calls {
        let members: Vec<Member<'_>> = match &call.what {
            What::Ack { receipts, answer } => receipts
                .iter()
                .enumerate()
                .map(|(at, receipt)| {
                    (*receipt, answer.member(at).map(|r| r.map(drop)), answer.known(at), None)
                })
                .collect(),
            What::Nack { nacks, answer } => nacks
                .iter()
                .enumerate()
                .map(|(at, nack)| {
                    let result = answer.member(at).map(|r| r.map(drop));
                    (nack.receipt, result, answer.known(at), Some(nack.action))
                })
                .collect(),
            What::Extend { .. } => {
                extended(call, items, found);
                continue;
            }
            _ => continue,
        };
        for (receipt, result, known, nack) in members {
            let key = (receipt.item, receipt.nonce);
            match result {
                Some(Ok(_)) => {
                    // An ack that is repeated before the first is answered has the same answer.
                    let nacked = nack.is_some();
                    if ended.insert(key, nacked).is_some_and(|before| before || nacked) {
                        let what =
                            format!("{} was ended twice, again in call {}", receipt.item, call.start.event);
                        found.push(("STALE-RECEIPT-INERT", what));
                    }
                    done(call, receipt, nack, items, &acks, found);
                }
                Some(Err(refusal)) => lost(call, receipt, refusal, items, found),
                None => {}
            }
            if known != CallerKnowledge::Not {
                requests.entry(key).or_default().push(EndRequest { start: call.start.event, nack });
            }
        }
    }
    let handed: HashSet<(ItemId, u64)> = deliveries::all(record)
        .filter_map(|(_, delivered)| Some((delivered.id, delivered.receipt?.nonce)))
        .collect();
    for (key, lease) in &items.leases {
        if let (Some(item), Some(closed)) = (items.by_id.get(&key.0), lease.closed) {
            let none = Vec::new();
            let requests = requests.get(key).unwrap_or(&none);
            reason(item, lease, &item.phases[closed], requests, handed.contains(key), found);
        }
    }
    for item in items.by_id.values() {
        removed(item, found);
    }
}

/// An operation that was answered OK took effect during the call. An ack may have taken effect through an
/// earlier one that had no answer yet.
fn done(
    call: &Call,
    receipt: Receipt,
    nack: Option<NackAction>,
    items: &Items,
    acks: &Acks,
    found: &mut Vec<Finding>,
) {
    let name = format!("{}.{} in call {}", receipt.item, receipt.delivery, call.start.event);
    let lease = items.leases.get(&(receipt.item, receipt.nonce));
    let closed = lease.and_then(|lease| Some(&items.by_id[&receipt.item].phases[lease.closed?]));
    let Some(phase) = closed.filter(|phase| phase.done.event < call.end.event) else {
        return found
            .push(("NO-STALE-OK", format!("{name} was answered OK, and its delivery is still open")));
    };
    let repeats = |&(start, answered): &(u64, u64)| start < phase.done.event && answered > call.start.event;
    let of_delivery = acks.get(&(receipt.item, receipt.nonce));
    let repeated = nack.is_none() && of_delivery.is_some_and(|acks| acks.iter().any(repeats));
    if phase.done.event <= call.start.event && !repeated {
        return found.push(("STALE-RECEIPT-INERT", format!("{name} was answered OK after its delivery")));
    }
    let expired = phase.expires_at.is_some() && phase.deleted();
    let fits = match nack {
        None => phase.deleted(),
        Some(NackAction::DeadLetter) => phase.location == Location::Dead || expired,
        Some(_) => phase.location != Location::Absent || expired,
    };
    if !fits {
        found.push(("NO-STALE-OK", format!("{name} was answered OK, and its item is {:?}", phase.location)));
    }
}

/// The fate that LEASE_LOST reports was true at some moment of the call.
fn lost(call: &Call, receipt: Receipt, refusal: &Refusal, items: &Items, found: &mut Vec<Finding>) {
    let (Some(fate), Some(item)) = (refusal.fate, items.by_id.get(&receipt.item)) else { return };
    let fits = |phase: &Phase| {
        let over = phase.lease.as_ref().is_none_or(|lease| lease.nonce != receipt.nonce);
        let location = match (phase.location, phase.lease.is_some()) {
            (Location::Absent, _) => Fate::Gone,
            (Location::Dead, _) => Fate::Dead,
            (_, true) => Fate::Leased,
            (_, false) => Fate::Waiting,
        };
        let expired = phase.expires_at.is_some_and(|end| end <= call.end.at) && fate == Fate::Gone;
        over && (location == fate || expired)
    };
    if !item.between(call.start.event, call.end.event).any(fits) {
        let name = format!("{}.{} in call {}", receipt.item, receipt.delivery, call.start.event);
        let seen: Vec<_> = item
            .between(call.start.event, call.end.event)
            .map(|phase| (phase.location, phase.lease.as_ref().map(|lease| lease.delivery())))
            .collect();
        found.push(("NO-STALE-OK", format!("{name} was answered lost, {}: it was {seen:?}", fate.as_str())));
    }
}

/// An extension that was answered OK is in the log.
fn extended(call: &Call, items: &Items, found: &mut Vec<Finding>) {
    let What::Extend { extensions, answer } = &call.what else { return };
    for (at, extension) in extensions.iter().enumerate() {
        let receipt = extension.receipt;
        match answer.member(at) {
            Some(Ok(end)) => {
                let stands = |change: &Change| match change {
                    Change::Moved(entry) => entry.nonce == receipt.nonce && entry.deadline == *end,
                    _ => false,
                };
                let item = items.by_id.get(&receipt.item);
                let mut phases = item
                    .into_iter()
                    .flat_map(|item| &item.phases)
                    .filter(|phase| phase.done.event > call.start.event && phase.done.event < call.end.event);
                if !phases.any(|phase| phase.changes.iter().any(stands)) {
                    let name = format!("{}.{} in call {}", receipt.item, receipt.delivery, call.start.event);
                    found.push(("NO-STALE-OK", format!("{name} was extended, which is not in the log")));
                }
            }
            Some(Err(refusal)) => lost(call, receipt, refusal, items, found),
            None => {}
        }
    }
}

/// Every delivery that ended had a reason to end.
fn reason(
    item: &Item,
    lease: &Lease,
    phase: &Phase,
    requests: &[EndRequest],
    handed: bool,
    found: &mut Vec<Finding>,
) {
    let name = format!("{}.{} at {}", item.id, lease.entry.delivery(), phase.done.event);
    let requested = |fits: &dyn Fn(Option<NackAction>) -> bool| {
        requests.iter().any(|request| request.start < phase.done.event && fits(request.nack))
    };
    let passed = |at: Timestamp| at <= phase.time;
    let expired = phase.expires_at.is_some_and(passed);
    let ran_out = passed(deadline(item, lease, phase));
    for change in &phase.changes {
        match change {
            // Another node took it out before it handed it out: `deliveries.rs` checks that.
            Change::Deleted(_) if item.policy == DeliveryPolicy::AtMostOnce => {}
            Change::Deleted(_) if !requested(&|nack| nack.is_none()) && !expired => {
                found.push(("NO-LOST-ENQUEUE", format!("{name} was removed without an ack")));
            }
            Change::DeadLettered(letter) => {
                // It failed, and had no time left to be tried again.
                let left = phase.expires_at.map(|end| end.since(phase.time));
                let too_late = letter.reason == DeathCause::ExpiredFailing.as_str()
                    && left.is_some_and(|left| !left.is_zero() && left < LAST_RETRY);
                let failed = (letter.failures >= item.max_attempts || too_late)
                    && (ran_out || requested(&|nack| matches!(nack, Some(NackAction::Fail(_)))));
                if !failed && !requested(&|nack| nack == Some(NackAction::DeadLetter)) {
                    found.push(("NO-LOST-ENQUEUE", format!("{name} was dead_letters without need")));
                }
            }
            Change::Requeued(requeue) => {
                let failed = requeue.failures == lease.entry.attributes.failures + 1;
                let kept = requeue.failures == lease.entry.attributes.failures;
                let by_nack = requested(&|nack| matches!(nack, Some(NackAction::Fail(_))));
                let by_release = requested(&|nack| matches!(nack, Some(NackAction::Release(_))));
                if !(failed && (by_nack || ran_out) || kept && (by_release || !handed || phase.resets)) {
                    found.push(("LEASE-EXCLUSIVE", format!("{name} ended without a reason: {requeue:?}")));
                }
                if requeue.failures >= item.max_attempts {
                    found.push((
                        "EVENTUAL-REDELIVERY",
                        format!("{name} was requeued after too many failures"),
                    ));
                }
                let due = Timestamp::from_micros(requeue.rank);
                if phase.expires_at.is_some_and(|end| phase.time < end && end <= due) {
                    let what = format!("{name} is back at {due:?}, and expires at {:?}", phase.expires_at);
                    found.push(("EVENTUAL-REDELIVERY", what));
                }
                if requeue.deliveries != lease.entry.delivery() {
                    found.push(("LEASE-EXCLUSIVE", format!("{name} was requeued as {requeue:?}")));
                }
            }
            _ => {}
        }
    }
}

/// The deadline of a delivery when it ended.
fn deadline(item: &Item, lease: &Lease, end: &Phase) -> Timestamp {
    let phases = item.phases.iter().filter(|phase| phase.done.event < end.done.event);
    let moved = phases.flat_map(|phase| &phase.changes).filter_map(|change| match change {
        Change::Moved(entry) if entry.nonce == lease.entry.nonce => Some(entry.deadline),
        _ => None,
    });
    moved.last().unwrap_or(lease.entry.deadline)
}

/// An item that needs an ack is removed without a delivery only if it has expired.
fn removed(item: &Item, found: &mut Vec<Finding>) {
    use forebay_types::DeliveryPolicy::AtLeastOnce;
    for (at, phase) in item.phases.iter().enumerate() {
        let leased = at > 0 && item.phases[at - 1].lease.is_some();
        if !phase.deleted() || leased || item.policy != AtLeastOnce {
            continue;
        }
        let expired = phase.expires_at.is_some_and(|end| end <= phase.time);
        if !expired {
            found.push(("NO-LOST-ENQUEUE", format!("{} was removed without having been delivered", item.id)));
        }
    }
}
