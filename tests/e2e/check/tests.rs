//! The checker passes a valid history and finds each violation.

use std::time::Duration;

use super::check;
use crate::history::{Call, Event, Outcome, SettlementEnd, Verb};

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

fn settle(at: u64, verb: Verb, receipt: &str, settled: SettlementEnd) -> Event {
    Event::Settle { call: call(at, at + 1), verb, receipt: receipt.into(), settled }
}

fn lost(fate: &str) -> SettlementEnd {
    SettlementEnd::Lost(fate.into())
}

fn unknown<T>() -> Outcome<T> {
    Outcome::Unknown("cut".into())
}

fn found(events: &[Event]) -> Vec<&'static str> {
    check(events).into_iter().map(|violation| violation.invariant).collect()
}

/// A history with everything that may happen, and no violation.
fn valid() -> Vec<Event> {
    vec![
        // An ack, retried.
        enqueue(1, Outcome::Ok("a")),
        delivery(2, 1, "a", 1),
        settle(4, Verb::Ack, "a#1", SettlementEnd::Ok),
        settle(6, Verb::Ack, "a#1", lost("gone")),
        // A nack, then the next delivery.
        enqueue(2, Outcome::Ok("b")),
        delivery(2, 2, "b", 1),
        settle(4, Verb::Nack, "b#1", SettlementEnd::Ok),
        delivery(5, 2, "b", 2),
        settle(7, Verb::Ack, "b#2", SettlementEnd::Ok),
        // A lease that ended, then a late ack.
        enqueue(3, Outcome::Ok("c")),
        delivery(2, 3, "c", 1),
        delivery(12, 3, "c", 2),
        settle(14, Verb::Ack, "c#1", lost("leased")),
        settle(15, Verb::Ack, "c#2", SettlementEnd::Unknown("cut".into())),
        // Unknown, stored, retried.
        enqueue(4, unknown()),
        enqueue(4, Outcome::Ok("d")),
        delivery(2, 4, "d", 1),
        settle(4, Verb::Extend(LEASE), "d#1", SettlementEnd::Ok),
        delivery(14, 4, "d", 2),
        settle(16, Verb::Ack, "d#2", SettlementEnd::Ok),
        // Unknown and not stored; failed.
        enqueue(5, unknown()),
        enqueue(6, Outcome::Failed("full".into())),
    ]
}

#[test]
fn a_valid_history_passes() {
    assert_eq!(check(&valid()), []);
}

#[test]
fn a_lost_item_is_found() {
    assert_eq!(found(&[enqueue(1, Outcome::Ok("a"))]), ["NO-LOST-ENQUEUE"]);
}

#[test]
fn an_item_that_vanished_while_leased_is_found() {
    let events =
        [enqueue(1, Outcome::Ok("a")), delivery(2, 1, "a", 1), settle(4, Verb::Ack, "a#1", lost("gone"))];
    assert_eq!(found(&events), ["NO-LOST-ENQUEUE"]);
}

#[test]
fn an_item_that_nobody_enqueued_is_found() {
    let events = [delivery(2, 1, "a", 1), settle(4, Verb::Ack, "a#1", SettlementEnd::Ok)];
    assert_eq!(found(&events), ["NO-PHANTOM"]);
}

#[test]
fn an_item_whose_enqueue_failed_is_found() {
    let events = [enqueue(1, Outcome::Failed("no".into())), delivery(2, 1, "a", 1)];
    assert_eq!(found(&events), ["NO-PHANTOM"]);
}

#[test]
fn a_damaged_payload_is_found() {
    let mut events = valid();
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
    let mut events = valid();
    events.extend([delivery(2, 1, "z", 1), settle(4, Verb::Ack, "z#1", SettlementEnd::Ok)]);
    assert_eq!(found(&events), ["IDEMPOTENT-ENQUEUE"]);
}

#[test]
fn a_delivery_after_an_ack_is_found() {
    let mut events = valid();
    events.push(delivery(20, 1, "a", 2));
    assert_eq!(found(&events), ["NO-DELIVERY-AFTER-ACK"]);
}

#[test]
fn a_delivery_that_began_before_the_ack_is_not() {
    let mut events = valid();
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
        settle(7, Verb::Ack, "a#2", SettlementEnd::Ok),
    ];
    assert_eq!(found(&events), ["LEASE-EXCLUSIVE"]);
}

#[test]
fn a_lease_that_was_extended_is_live_longer() {
    let events = [
        enqueue(1, Outcome::Ok("a")),
        delivery(2, 1, "a", 1),
        settle(8, Verb::Extend(LEASE), "a#1", SettlementEnd::Ok),
        delivery(13, 1, "a", 2),
        settle(15, Verb::Ack, "a#2", SettlementEnd::Ok),
    ];
    assert_eq!(found(&events), ["LEASE-EXCLUSIVE"]);
}

#[test]
fn one_attempt_twice_is_found() {
    let events = [
        enqueue(1, Outcome::Ok("a")),
        delivery(2, 1, "a", 1),
        delivery(14, 1, "a", 1),
        settle(16, Verb::Ack, "a#1", SettlementEnd::Ok),
    ];
    assert_eq!(found(&events), ["LEASE-EXCLUSIVE"]);
}

#[test]
fn an_attempt_that_shrinks_is_found() {
    let events = [
        enqueue(1, Outcome::Ok("a")),
        delivery(2, 1, "a", 2),
        delivery(14, 1, "a", 1),
        settle(16, Verb::Ack, "a#1", SettlementEnd::Ok),
    ];
    assert!(found(&events).contains(&"LEASE-EXCLUSIVE"), "{:?}", check(&events));
}

#[test]
fn an_old_receipt_that_works_is_found() {
    let events = [
        enqueue(1, Outcome::Ok("a")),
        delivery(2, 1, "a", 1),
        delivery(14, 1, "a", 2),
        settle(16, Verb::Ack, "a#1", SettlementEnd::Ok),
    ];
    assert_eq!(found(&events), ["STALE-RECEIPT-INERT"]);
}

#[test]
fn a_receipt_that_works_twice_is_found() {
    let mut events = valid();
    events.push(settle(20, Verb::Nack, "a#1", SettlementEnd::Ok));
    assert_eq!(found(&events), ["STALE-RECEIPT-INERT"]);
}
