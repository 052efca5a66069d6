//! Checks a history that ended with healing and draining: at its end everything that was accepted is acked.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::Duration,
};

use crate::history::{Call, Event, Outcome, Settled, Verb};

/// Spans that a client measures and spans that the server counts agree to this.
const CLOCK_MARGIN: Duration = Duration::from_millis(50);

/// Something that must never happen: the invariant's name, and what was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub invariant: &'static str,
    pub seen: String,
}

/// Every violation in the history.
pub fn check(events: &[Event]) -> Vec<Violation> {
    let story = Story::new(events);
    let mut violations = Vec::new();
    story.no_lost_enqueue(&mut violations);
    story.no_phantom(&mut violations);
    story.one_item_an_enqueue(&mut violations);
    story.no_delivery_after_ack(&mut violations);
    story.lease_exclusive(&mut violations);
    story.stale_receipt_inert(&mut violations);
    violations
}

/// One delivery with all that was done with it.
struct Delivery<'a> {
    call: Call,
    receipt: &'a str,
    attempt: u32,
    lease: Duration,
    settlements: Vec<(Call, Verb, &'a Settled)>,
}

/// The history, put in order by item.
struct Story<'a> {
    /// By the number in the payload: every outcome of its enqueue.
    enqueues: BTreeMap<u64, Vec<&'a Outcome<String>>>,
    /// By item id, in order of attempts.
    items: BTreeMap<&'a str, Vec<Delivery<'a>>>,
    /// By the number in the payload: the ids under which it was delivered.
    ids: BTreeMap<u64, HashSet<&'a str>>,
    /// Ids of deliveries whose payload was damaged.
    damaged: Vec<&'a str>,
}

impl<'a> Story<'a> {
    fn new(events: &'a [Event]) -> Self {
        let mut story = Self {
            enqueues: BTreeMap::new(),
            items: BTreeMap::new(),
            ids: BTreeMap::new(),
            damaged: Vec::new(),
        };
        let mut settlements: HashMap<&str, Vec<(Call, Verb, &Settled)>> = HashMap::new();
        for event in events {
            if let Event::Settle { call, verb, receipt, settled } = event {
                settlements.entry(receipt).or_default().push((*call, *verb, settled));
            }
        }
        for event in events {
            match event {
                Event::Enqueue { item, outcome, .. } => {
                    story.enqueues.entry(*item).or_default().push(outcome)
                }
                Event::Delivery { call, item, id, receipt, attempt, lease } => {
                    match item {
                        Some(item) => drop(story.ids.entry(*item).or_default().insert(id)),
                        None => story.damaged.push(id),
                    }
                    let settlements = settlements.remove(receipt.as_str()).unwrap_or_default();
                    let delivery =
                        Delivery { call: *call, receipt, attempt: *attempt, lease: *lease, settlements };
                    story.items.entry(id).or_default().push(delivery);
                }
                Event::Settle { .. } => {}
            }
        }
        for deliveries in story.items.values_mut() {
            deliveries.sort_by_key(|delivery| delivery.attempt);
        }
        story
    }

    /// What was answered OK ends acked; here, because the history ends with a drain that acks everything.
    fn no_lost_enqueue(&self, violations: &mut Vec<Violation>) {
        for (item, outcomes) in &self.enqueues {
            let stored = outcomes.iter().find_map(|outcome| match outcome {
                Outcome::Ok(id) => Some(id.as_str()),
                _ => None,
            });
            let Some(id) = stored else { continue };
            let deliveries = self.items.get(id).map_or(&[][..], Vec::as_slice);
            let acked =
                deliveries.iter().flat_map(|delivery| &delivery.settlements).any(|(_, verb, settled)| {
                    *verb == Verb::Ack && matches!(settled, Settled::Ok | Settled::Unknown(_))
                });
            if !acked {
                let seen =
                    format!("item {item}, answered OK as {id}: {} deliveries, no ack", deliveries.len());
                violations.push(Violation { invariant: "NO-LOST-ENQUEUE", seen });
            }
        }
    }

    /// Each delivery is of an item that was enqueued, ok or unknown, payload intact.
    fn no_phantom(&self, violations: &mut Vec<Violation>) {
        let mut add = |seen| violations.push(Violation { invariant: "NO-PHANTOM", seen });
        for id in &self.damaged {
            add(format!("{id}: the payload is damaged"));
        }
        for (item, ids) in &self.ids {
            let outcomes = self.enqueues.get(item).map_or(&[][..], Vec::as_slice);
            if outcomes.iter().all(|outcome| matches!(outcome, Outcome::Failed(_))) {
                add(format!("item {item}, delivered as {ids:?}: {outcomes:?}"));
            }
        }
    }

    /// An enqueue, however often repeated with its request id, makes one item.
    fn one_item_an_enqueue(&self, violations: &mut Vec<Violation>) {
        for (item, outcomes) in &self.enqueues {
            let mut ids = self.ids.get(item).cloned().unwrap_or_default();
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
    fn no_delivery_after_ack(&self, violations: &mut Vec<Violation>) {
        for (id, deliveries) in &self.items {
            let acks = deliveries.iter().flat_map(|delivery| &delivery.settlements);
            let acked = acks.filter(|(_, verb, settled)| *verb == Verb::Ack && **settled == Settled::Ok);
            let Some(acked) = acked.map(|(call, ..)| call.ended).min() else { continue };
            for late in deliveries.iter().filter(|delivery| delivery.call.began >= acked) {
                let seen = format!("{id}: acked at {acked:?}, delivery {} at {:?}", late.attempt, late.call);
                violations.push(Violation { invariant: "NO-DELIVERY-AFTER-ACK", seen });
            }
        }
    }

    /// Live leases of one item never overlap, and attempts grow.
    fn lease_exclusive(&self, violations: &mut Vec<Violation>) {
        let mut add = |seen| violations.push(Violation { invariant: "LEASE-EXCLUSIVE", seen });
        for (id, deliveries) in &self.items {
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

    /// An old receipt changes nothing and says so.
    fn stale_receipt_inert(&self, violations: &mut Vec<Violation>) {
        let mut add = |seen| violations.push(Violation { invariant: "STALE-RECEIPT-INERT", seen });
        for (id, deliveries) in &self.items {
            for (index, delivery) in deliveries.iter().enumerate() {
                let done = delivery.settlements.iter().filter(|(.., settled)| **settled == Settled::Ok);
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
}

impl Delivery<'_> {
    /// Settlements that were answered OK and ended this delivery.
    fn ends(&self) -> impl Iterator<Item = Call> {
        let ends = self
            .settlements
            .iter()
            .filter(|(_, verb, settled)| matches!(verb, Verb::Ack | Verb::Nack) && **settled == Settled::Ok);
        ends.map(|(call, ..)| *call)
    }

    /// The end of this lease, if it was live at `time` beyond doubt: nobody had begun to give it up, and the
    /// lease, counted from the earliest time it can have begun, was not over.
    fn certainly_live_until(&self, time: Duration) -> Option<Duration> {
        let given_up = self.settlements.iter().any(|(call, verb, settled)| {
            let may_end = matches!(verb, Verb::Ack | Verb::Nack) && !matches!(settled, Settled::Failed(_));
            let may_shorten = matches!(verb, Verb::Extend(_));
            call.began <= time && (may_end || (may_shorten && **settled != Settled::Ok))
        });
        if given_up {
            return None;
        }
        let extension = self.settlements.iter().filter_map(|(call, verb, settled)| match (verb, settled) {
            (Verb::Extend(span), Settled::Ok) if call.began <= time => Some((call.began, *span)),
            _ => None,
        });
        let (from, span) = extension.max().unwrap_or((self.call.began, self.lease));
        // A shard's clock is slewed by at most a tenth.
        let end = (from + span * 9 / 10).checked_sub(CLOCK_MARGIN)?;
        (time < end).then_some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(10);

    fn call(began: u64, ended: u64) -> Call {
        Call { began: Duration::from_secs(began), ended: Duration::from_secs(ended) }
    }

    fn enqueue(item: u64, outcome: Outcome<&str>) -> Event {
        let outcome = match outcome {
            Outcome::Ok(id) => Outcome::Ok(id.to_owned()),
            Outcome::Failed(why) => Outcome::Failed(why),
            Outcome::Unknown(why) => Outcome::Unknown(why),
        };
        Event::Enqueue { call: call(0, 1), item, outcome }
    }

    fn delivery(at: u64, item: u64, id: &str, attempt: u32) -> Event {
        let receipt = format!("{id}#{attempt}");
        Event::Delivery {
            call: call(at, at + 1),
            item: Some(item),
            id: id.into(),
            receipt,
            attempt,
            lease: LEASE,
        }
    }

    fn settle(at: u64, verb: Verb, receipt: &str, settled: Settled) -> Event {
        Event::Settle { call: call(at, at + 1), verb, receipt: receipt.into(), settled }
    }

    fn lost(fate: &str) -> Settled {
        Settled::Lost(fate.into())
    }

    fn unknown<T>() -> Outcome<T> {
        Outcome::Unknown("cut".into())
    }

    fn found(events: &[Event]) -> Vec<&'static str> {
        check(events).into_iter().map(|violation| violation.invariant).collect()
    }

    /// Everything that may happen, rightly.
    fn right() -> Vec<Event> {
        vec![
            // An ack, repeated.
            enqueue(1, Outcome::Ok("a")),
            delivery(2, 1, "a", 1),
            settle(4, Verb::Ack, "a#1", Settled::Ok),
            settle(6, Verb::Ack, "a#1", lost("gone")),
            // A nack, then the next delivery.
            enqueue(2, Outcome::Ok("b")),
            delivery(2, 2, "b", 1),
            settle(4, Verb::Nack, "b#1", Settled::Ok),
            delivery(5, 2, "b", 2),
            settle(7, Verb::Ack, "b#2", Settled::Ok),
            // A lease that ran out, then a late ack.
            enqueue(3, Outcome::Ok("c")),
            delivery(2, 3, "c", 1),
            delivery(12, 3, "c", 2),
            settle(14, Verb::Ack, "c#1", lost("leased")),
            settle(15, Verb::Ack, "c#2", Settled::Unknown("cut".into())),
            // Unknown, stored, repeated.
            enqueue(4, unknown()),
            enqueue(4, Outcome::Ok("d")),
            delivery(2, 4, "d", 1),
            settle(4, Verb::Extend(LEASE), "d#1", Settled::Ok),
            delivery(14, 4, "d", 2),
            settle(16, Verb::Ack, "d#2", Settled::Ok),
            // Unknown and not stored; failed.
            enqueue(5, unknown()),
            enqueue(6, Outcome::Failed("full".into())),
        ]
    }

    #[test]
    fn a_right_history_passes() {
        assert_eq!(check(&right()), []);
    }

    #[test]
    fn a_lost_item_is_found() {
        assert_eq!(found(&[enqueue(1, Outcome::Ok("a"))]), ["NO-LOST-ENQUEUE"]);
    }

    #[test]
    fn an_item_that_vanished_while_it_was_out_is_found() {
        let events =
            [enqueue(1, Outcome::Ok("a")), delivery(2, 1, "a", 1), settle(4, Verb::Ack, "a#1", lost("gone"))];
        assert_eq!(found(&events), ["NO-LOST-ENQUEUE"]);
    }

    #[test]
    fn an_item_that_nobody_enqueued_is_found() {
        let events = [delivery(2, 1, "a", 1), settle(4, Verb::Ack, "a#1", Settled::Ok)];
        assert_eq!(found(&events), ["NO-PHANTOM"]);
    }

    #[test]
    fn an_item_whose_enqueue_failed_is_found() {
        let events = [enqueue(1, Outcome::Failed("no".into())), delivery(2, 1, "a", 1)];
        assert_eq!(found(&events), ["NO-PHANTOM"]);
    }

    #[test]
    fn a_damaged_payload_is_found() {
        let mut events = right();
        let damaged = Event::Delivery {
            call: call(2, 3),
            item: None,
            id: "x".into(),
            receipt: "x#1".into(),
            attempt: 1,
            lease: LEASE,
        };
        events.push(damaged);
        assert_eq!(found(&events), ["NO-PHANTOM"]);
    }

    #[test]
    fn a_second_item_of_one_enqueue_is_found() {
        let mut events = right();
        events.extend([delivery(2, 1, "z", 1), settle(4, Verb::Ack, "z#1", Settled::Ok)]);
        assert_eq!(found(&events), ["IDEMPOTENT-ENQUEUE"]);
    }

    #[test]
    fn a_delivery_after_an_ack_is_found() {
        let mut events = right();
        events.push(delivery(20, 1, "a", 2));
        assert_eq!(found(&events), ["NO-DELIVERY-AFTER-ACK"]);
    }

    #[test]
    fn a_delivery_that_began_before_the_ack_is_not() {
        let mut events = right();
        let late = Event::Delivery {
            call: call(4, 9),
            item: Some(1),
            id: "a".into(),
            receipt: "a#2".into(),
            attempt: 2,
            lease: LEASE,
        };
        events.push(late);
        assert_eq!(found(&events), [""; 0]);
    }

    #[test]
    fn overlapping_leases_are_found() {
        let events = [
            enqueue(1, Outcome::Ok("a")),
            delivery(2, 1, "a", 1),
            delivery(5, 1, "a", 2),
            settle(7, Verb::Ack, "a#2", Settled::Ok),
        ];
        assert_eq!(found(&events), ["LEASE-EXCLUSIVE"]);
    }

    #[test]
    fn a_lease_that_was_extended_is_live_longer() {
        let events = [
            enqueue(1, Outcome::Ok("a")),
            delivery(2, 1, "a", 1),
            settle(8, Verb::Extend(LEASE), "a#1", Settled::Ok),
            delivery(13, 1, "a", 2),
            settle(15, Verb::Ack, "a#2", Settled::Ok),
        ];
        assert_eq!(found(&events), ["LEASE-EXCLUSIVE"]);
    }

    #[test]
    fn one_attempt_twice_is_found() {
        let events = [
            enqueue(1, Outcome::Ok("a")),
            delivery(2, 1, "a", 1),
            delivery(14, 1, "a", 1),
            settle(16, Verb::Ack, "a#1", Settled::Ok),
        ];
        assert_eq!(found(&events), ["LEASE-EXCLUSIVE"]);
    }

    #[test]
    fn an_attempt_that_shrinks_is_found() {
        let events = [
            enqueue(1, Outcome::Ok("a")),
            delivery(2, 1, "a", 2),
            delivery(14, 1, "a", 1),
            settle(16, Verb::Ack, "a#1", Settled::Ok),
        ];
        assert!(found(&events).contains(&"LEASE-EXCLUSIVE"), "{:?}", check(&events));
    }

    #[test]
    fn an_old_receipt_that_works_is_found() {
        let events = [
            enqueue(1, Outcome::Ok("a")),
            delivery(2, 1, "a", 1),
            delivery(14, 1, "a", 2),
            settle(16, Verb::Ack, "a#1", Settled::Ok),
        ];
        assert_eq!(found(&events), ["STALE-RECEIPT-INERT"]);
    }

    #[test]
    fn a_receipt_that_works_twice_is_found() {
        let mut events = right();
        events.push(settle(20, Verb::Nack, "a#1", Settled::Ok));
        assert_eq!(found(&events), ["STALE-RECEIPT-INERT"]);
    }
}
