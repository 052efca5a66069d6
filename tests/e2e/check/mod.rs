//! Checks a history that ended with a drain: at its end every stored item is acked.

mod timeline;

use crate::history::{Event, Outcome, SettlementEnd, Verb};
use timeline::Timeline;

/// A broken invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The invariant's name.
    pub invariant: &'static str,
    /// The events that break it.
    pub seen: String,
}

/// Every violation in the history.
pub fn check(events: &[Event]) -> Vec<Violation> {
    let timeline = Timeline::new(events);
    let mut violations = Vec::new();
    no_lost_enqueue(&timeline, &mut violations);
    no_phantom(&timeline, &mut violations);
    one_item_per_enqueue(&timeline, &mut violations);
    no_delivery_after_ack(&timeline, &mut violations);
    lease_exclusive(&timeline, &mut violations);
    stale_receipt_inert(&timeline, &mut violations);
    violations
}

/// Every enqueue that was answered OK ends with an ack, because the drain acks everything.
fn no_lost_enqueue(timeline: &Timeline<'_>, violations: &mut Vec<Violation>) {
    for (item, outcomes) in &timeline.enqueues {
        let stored = outcomes.iter().find_map(|outcome| match outcome {
            Outcome::Ok(id) => Some(id.as_str()),
            _ => None,
        });
        let Some(id) = stored else { continue };
        let deliveries = timeline.items.get(id).map_or(&[][..], Vec::as_slice);
        let acked = deliveries.iter().flat_map(|delivery| &delivery.settlements).any(|(_, verb, settled)| {
            *verb == Verb::Ack && matches!(settled, SettlementEnd::Ok | SettlementEnd::Unknown(_))
        });
        if !acked {
            let seen = format!("item {item}, answered OK as {id}: {} deliveries, no ack", deliveries.len());
            violations.push(Violation { invariant: "NO-LOST-ENQUEUE", seen });
        }
    }
}

/// Each delivery is of an enqueued item (OK or unknown), with its payload intact.
fn no_phantom(timeline: &Timeline<'_>, violations: &mut Vec<Violation>) {
    let mut add = |seen| violations.push(Violation { invariant: "NO-PHANTOM", seen });
    for id in &timeline.damaged {
        add(format!("{id}: the payload is damaged"));
    }
    for (item, ids) in &timeline.ids {
        let outcomes = timeline.enqueues.get(item).map_or(&[][..], Vec::as_slice);
        if outcomes.iter().all(|outcome| matches!(outcome, Outcome::Failed(_))) {
            add(format!("item {item}, delivered as {ids:?}: {outcomes:?}"));
        }
    }
}

/// An enqueue makes one item, however often it is retried with its request id.
fn one_item_per_enqueue(timeline: &Timeline<'_>, violations: &mut Vec<Violation>) {
    for (item, outcomes) in &timeline.enqueues {
        let mut ids = timeline.ids.get(item).cloned().unwrap_or_default();
        ids.extend(outcomes.iter().filter_map(|outcome| match outcome {
            Outcome::Ok(id) => Some(id.as_str()),
            _ => None,
        }));
        if ids.len() > 1 {
            let seen = format!("item {item} is {ids:?}");
            violations.push(Violation { invariant: "IDEMPOTENT-ENQUEUE", seen });
        }
    }
}

/// No dequeue that began after an ack's OK returns the item.
fn no_delivery_after_ack(timeline: &Timeline<'_>, violations: &mut Vec<Violation>) {
    for (id, deliveries) in &timeline.items {
        let acks = deliveries.iter().flat_map(|delivery| &delivery.settlements);
        let acked = acks.filter(|(_, verb, settled)| *verb == Verb::Ack && **settled == SettlementEnd::Ok);
        let Some(acked) = acked.map(|(call, ..)| call.ended).min() else { continue };
        for late in deliveries.iter().filter(|delivery| delivery.call.began >= acked) {
            let seen = format!("{id}: acked at {acked:?}, delivery {} at {:?}", late.attempt, late.call);
            violations.push(Violation { invariant: "NO-DELIVERY-AFTER-ACK", seen });
        }
    }
}

/// Live leases of one item never overlap, and attempts grow.
fn lease_exclusive(timeline: &Timeline<'_>, violations: &mut Vec<Violation>) {
    let mut add = |seen| violations.push(Violation { invariant: "LEASE-EXCLUSIVE", seen });
    for (id, deliveries) in &timeline.items {
        for (index, first) in deliveries.iter().enumerate() {
            for second in &deliveries[index + 1..] {
                if first.attempt == second.attempt {
                    add(format!("{id}: attempt {} twice", first.attempt));
                } else if second.call.ended < first.call.began {
                    let (one, two) = (first.attempt, second.attempt);
                    add(format!("{id}: attempt {two} was over before attempt {one} began"));
                }
                if let Some(end) = first.certainly_live_until(second.call.ended) {
                    let (one, two, at) = (first.attempt, second.attempt, second.call);
                    add(format!("{id}: attempt {one} is live until {end:?}, attempt {two} came {at:?}"));
                }
            }
        }
    }
}

/// A receipt whose delivery is over changes nothing, and is refused.
fn stale_receipt_inert(timeline: &Timeline<'_>, violations: &mut Vec<Violation>) {
    let mut add = |seen| violations.push(Violation { invariant: "STALE-RECEIPT-INERT", seen });
    for (id, deliveries) in &timeline.items {
        for (index, delivery) in deliveries.iter().enumerate() {
            let done = delivery.settlements.iter().filter(|(.., settled)| **settled == SettlementEnd::Ok);
            for (call, verb, _) in done {
                let next = deliveries[index + 1..]
                    .iter()
                    .find(|next| next.attempt > delivery.attempt && next.call.ended <= call.began);
                if let Some(next) = next {
                    let (old, new) = (delivery.attempt, next.attempt);
                    add(format!("{id}: {verb:?} of attempt {old} was OK after attempt {new}"));
                }
                let earlier = delivery.ends().find(|end| end.ended <= call.began);
                if earlier.is_some() {
                    let (receipt, attempt) = (delivery.receipt, delivery.attempt);
                    add(format!("{id}: {verb:?} of attempt {attempt} was OK after its end ({receipt})"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
