//! Batches that did not happen, and what is left of a shard that is lost.

use forebay_types::Reason;

use super::*;
use crate::shard::{LostWork, NamedTopic};

/// Items of calls, by call and position.
fn items_of(planned: &[PlannedAction]) -> Vec<(u64, usize)> {
    let parts = planned.iter().map(|planned| match planned {
        PlannedAction::Enqueue { part, .. } => part,
        other => panic!("{other:?}"),
    });
    parts.flat_map(|part| part.items.iter().map(|item| (part.call, item.index))).collect()
}

#[test]
fn a_batch_that_can_not_be_stored_is_halved_until_a_row_is_alone() {
    let mut shard = shard();
    put(&mut shard, part(1, items(8)));
    for rows in [8, 4, 2] {
        assert_eq!(build(&mut shard, 0).rows, rows);
        assert!(shard.unstorable("too long", &[], at(0)).unwrap().refused.is_empty());
    }
    assert_eq!(build(&mut shard, 0).rows, 1);
    let undone = shard.unstorable("too long", &[], at(0)).unwrap();
    assert_eq!(items_of(&undone.refused), [(1, 0)]);
    assert_eq!(undone.refusal.reason, Reason::InvalidField);
    assert!(undone.refusal.message.contains("too long"));
    assert_eq!(build(&mut shard, 0).rows, 7, "the rest goes at once");
}

#[test]
fn a_settlement_that_can_not_be_stored_stands_alone_beside_a_polls_many_items() {
    let mut shard = shard();
    let receipt = store_leased(&mut shard, 0, items(1))[0];
    store(&mut shard, 0, items(5));
    nack(&mut shard, receipt, NackAction::Release(Duration::ZERO));
    ask_lease(&mut shard, 5);
    for tries in 0..9 {
        let built = build(&mut shard, 0);
        let planned = &shard.commit.in_flight.as_ref().unwrap().planned;
        if planned.iter().all(|planned| !matches!(planned, PlannedAction::Settle(_))) {
            commit(&mut shard, 0);
        } else if !shard.unstorable("too long", &[], at(0)).unwrap().refused.is_empty() {
            assert_eq!(built.rows, 1, "after {tries} tries");
            return;
        }
    }
    panic!("it never stood alone");
}

#[test]
fn batches_grow_again_with_each_one_that_is_committed() {
    let mut shard = shard_with(|settings| settings.batch_rows = 8);
    put(&mut shard, part(1, items(30)));
    for _ in 0..2 {
        build(&mut shard, 0);
        shard.unstorable("too long", &[], at(0)).unwrap();
    }
    let rows: Vec<usize> = (0..4).map(|_| run(&mut shard, 0).0.inserts.len()).collect();
    assert_eq!(rows, [2, 4, 8, 8]);
}

#[test]
fn what_is_tried_again_has_the_same_number_and_order() {
    let mut shard = shard();
    let receipts = store_leased(&mut shard, 0, items(2));
    receipts.iter().for_each(|receipt| ack(&mut shard, *receipt));
    put(&mut shard, part(1, items(2)));
    put(&mut shard, part(2, items(2)));
    let first = build(&mut shard, 0).batch.unwrap();
    shard.unstorable("too long", &[], at(0)).unwrap();
    shard.commit.rows_max = None;
    assert_eq!(build(&mut shard, 0).batch.unwrap(), first);
}

#[test]
fn a_lease_that_can_not_be_stored_is_refused_and_its_items_are_back() {
    let mut shard = shard();
    let keys = store(&mut shard, 0, items(3));
    ask_lease(&mut shard, 3);
    build(&mut shard, 0);
    let undone = shard.unstorable("too long", &[], at(0)).unwrap();
    assert!(matches!(undone.refused[..], [PlannedAction::Lease { .. }]), "a poll's share is not cut");
    assert_eq!((head(&shard).unwrap().0, window_len(&shard, T)), (keys[0], 3));
    assert!(shard.contents.reserved.is_empty());
}

#[test]
fn a_lease_that_times_out_is_found_again() {
    let mut shard = shard();
    store_leased(&mut shard, 0, items(2));
    build(&mut shard, 1_000);
    shard.unstorable("too long", &[], at(0)).unwrap();
    assert!(shard.intake.settles.is_empty());
    assert_eq!(run(&mut shard, 1_000).0.requeues.len(), 1);
}

#[test]
fn the_bad_items_of_an_atomic_call_are_refused_alone() {
    let mut shard = shard();
    put(&mut shard, ShardEnqueue { request: request(7), ..part(1, items(4)) });
    assert!(build(&mut shard, 0).atomic);
    let undone = shard.unstorable("too long", &[Seq(2)], at(0)).unwrap();
    assert!(undone.refused.is_empty() && shard.intake.keys.in_flight_count() == 1);
    let (batch, committed) = run(&mut shard, 0);
    assert_eq!(batch.inserts.len(), 3);
    let [PlannedAction::Enqueue { results, .. }] = &committed.done[..] else {
        panic!("{:?}", committed.done)
    };
    let refused: Vec<bool> = results.iter().map(Result::is_err).collect();
    assert_eq!(refused, [false, true, false, false]);
    assert_eq!(shard.intake.keys.in_flight_count(), 0);
}

#[test]
fn an_atomic_call_of_which_no_bad_item_is_known_is_refused_whole() {
    let mut shard = shard();
    put(&mut shard, ShardEnqueue { request: request(7), ..part(1, items(4)) });
    build(&mut shard, 0);
    let undone = shard.unstorable("too long", &[], at(0)).unwrap();
    assert_eq!((items_of(&undone.refused).len(), shard.intake.keys.in_flight_count()), (4, 0));
    assert!(shard.is_idle());
}

#[test]
fn a_full_disk_refuses_enqueues_and_keeps_the_rest() {
    let mut shard = shard_with(|settings| settings.batch_rows = 4);
    let receipt = store_leased(&mut shard, 0, items(1))[0];
    store(&mut shard, 0, items(1));
    ask_lease(&mut shard, 1);
    ack(&mut shard, receipt);
    put(&mut shard, part(8, items(2)));
    let keyed = AdmittedItem { dedupe: key(1), ..item(0) };
    put(&mut shard, part(9, vec![keyed]));
    build(&mut shard, 0);
    let undone = shard.disk_full(at(0)).unwrap();
    assert_eq!((items_of(&undone.refused), undone.refusal.reason), (vec![(8, 0), (8, 1)], Reason::DiskFull));
    let waiting: Vec<u64> = undone.refused_waiting.iter().map(|part| part.call).collect();
    assert_eq!((waiting, shard.intake.keys.in_flight_count()), (vec![9], 0));
    assert_eq!(shard.intake.budget.bytes(), 0);
    let (batch, _) = run(&mut shard, 0);
    assert_eq!((batch.deletes.len(), batch.leases.len(), batch.inserts.len()), (1, 1, 0));
}

#[test]
fn a_full_disk_refuses_what_comes_until_it_is_tried_again() {
    let mut shard = shard();
    put(&mut shard, part(1, items(1)));
    build(&mut shard, 0);
    shard.disk_full(at(0)).unwrap();
    assert_eq!(shard.over_budget("ns", 1, at(99)).unwrap().reason, Reason::DiskFull);
    assert!(shard.over_budget("ns", 1, at(100)).is_none());
}

/// A shard with an ack, an extension, a lease and an at-most-once item to be inserted again, all waiting. The
/// leases end at 1,000.
fn with_work_of_every_need() -> OwnedShard {
    let mut shard = shard();
    sweep_all(&mut shard, 0);
    shard.begin_generation_change(moment(0)).unwrap();
    store(&mut shard, 0, vec![item_once()]);
    let taken = reserve(&mut shard, T, 1);
    shard.lease(share(1, taken.clone()), 0);
    run(&mut shard, 0);
    let receipts = store_leased(&mut shard, 0, items(2));
    store(&mut shard, 0, items(1));
    ask_lease(&mut shard, 1);
    shard.restore(taken[0].clone());
    settle(&mut shard, receipts[0], SettleKind::Extend { lease: None });
    ack(&mut shard, receipts[1]);
    shard
}

/// Deletes, leases and inserts of the next batch, for which the disk is full again.
fn next_full(shard: &mut OwnedShard, ms: u64) -> Option<[usize; 3]> {
    let batch = build(shard, ms).batch?;
    shard.disk_full(at(ms)).unwrap();
    Some([batch.deletes.len(), batch.leases.len(), batch.inserts.len()])
}

#[test]
fn after_a_full_disk_what_needs_less_is_tried_without_the_rest() {
    let mut shard = with_work_of_every_need();
    assert_eq!(next_full(&mut shard, 0), Some([1, 2, 1]));
    assert_eq!(next_full(&mut shard, 0), Some([1, 2, 0]), "without items: the lease is refused now");
    assert_eq!(shard.lease_refusal(T, 1, at(99)).unwrap().reason, Reason::DiskFull);
    assert_eq!(shard.lease_refusal(T, 1, at(100)), None, "one may try");
    assert_eq!(next_full(&mut shard, 0), Some([1, 0, 0]), "acks alone");
    assert_eq!(next_full(&mut shard, 0), None, "nothing is left to try");
    assert_eq!(shard.next_batch_rows(moment(0)), None);
    assert_eq!(shard.next_wake(moment(0), false), Some(at(100)), "until then");
    let (batch, _) = run(&mut shard, 100);
    assert_eq!((batch.deletes.len(), batch.leases.len()), (1, 0), "acks are tried first");
    let (batch, _) = run(&mut shard, 200);
    assert_eq!((batch.leases.len(), batch.inserts.len()), (1, 0), "the extension");
    assert_eq!(build(&mut shard, 399).batch, None);
    assert_eq!(run(&mut shard, 400).0.inserts.len(), 1);
    assert!(build(&mut shard, 401).batch.is_none() && shard.is_idle());
}

#[test]
fn an_ack_that_comes_while_all_else_is_held_back_is_committed_at_once() {
    let mut shard = shard();
    let receipts = store_leased(&mut shard, 0, items(2));
    settle(&mut shard, receipts[0], SettleKind::Extend { lease: None });
    assert_eq!(next_full(&mut shard, 0), Some([0, 1, 0]));
    assert_eq!(next_full(&mut shard, 0), None);
    assert_eq!(shard.next_batch_rows(moment(0)), None, "there is no use in trying");
    ack(&mut shard, receipts[1]);
    assert_eq!(shard.next_batch_rows(moment(0)), Some(2));
    assert_eq!(run(&mut shard, 0).0.deletes.len(), 1);
}

#[test]
fn a_lease_that_ends_as_a_dead_letter_waits_for_room_and_others_do_not() {
    let mut shard = shard();
    sweep_all(&mut shard, 0);
    shard.begin_generation_change(moment(0)).unwrap();
    let last = ItemAttributes { max_attempts: 1, ..attributes() };
    store_leased(&mut shard, 0, vec![AdmittedItem { attributes: last, ..item(0) }, item(0)]);
    put(&mut shard, part(9, items(1)));
    build(&mut shard, 0);
    shard.disk_full(at(0)).unwrap();
    let now = 1_001;
    shard.commit.disk.full(crate::shard::commit::disk_room::Need::Items, at(now));
    let (batch, _) = run(&mut shard, now);
    assert_eq!((batch.requeues.len(), batch.dead_letters.len()), (1, 0));
    assert!(build(&mut shard, now).batch.is_none());
    assert!(shard.next_wake(moment(now), false).unwrap() > at(now));
    assert_eq!(run(&mut shard, 3_000).0.dead_letters.len(), 1);
}

#[test]
fn an_at_most_once_item_that_is_inserted_again_is_not_lost_with_a_full_disk() {
    let mut shard = shard();
    restore_one(&mut shard);
    build(&mut shard, 0);
    shard.disk_full(at(0)).unwrap();
    assert!(build(&mut shard, 99).batch.is_none());
    assert_eq!(run(&mut shard, 100).0.inserts[0].attributes.deliveries, 1);
}

#[test]
fn a_sweeps_page_is_put_back() {
    let mut shard = shard();
    let keys = store(&mut shard, 0, vec![item_due(50), item_due(50)]);
    scan(&mut shard, Sweep::Due, 1, 60);
    let rows = keys.into_iter().map(|key| due_row(time(50), key)).collect();
    shard.scanned(Sweep::Due, 1, rows, None);
    put(&mut shard, part(1, items(1)));
    build(&mut shard, 60);
    let undone = shard.unstorable("too long", &[], at(0)).unwrap();
    assert!(undone.refused.is_empty(), "the row that can't be stored may be the page's");
    let (batch, _) = run(&mut shard, 60);
    assert_eq!((batch.inserts.len(), batch.promotes.len()), (1, 0), "it waits for a batch of its own");
    assert_eq!(run(&mut shard, 60).0.promotes.len(), 2);
}

#[test]
fn a_call_with_a_request_id_is_not_atomic_along_with_a_page() {
    let mut shard = shard();
    let key = store(&mut shard, 0, vec![item_due(50)])[0];
    scan(&mut shard, Sweep::Due, 1, 60);
    shard.scanned(Sweep::Due, 1, vec![due_row(time(50), key)], None);
    put(&mut shard, ShardEnqueue { request: request(7), ..part(1, items(2)) });
    assert!(!build(&mut shard, 60).atomic);
    assert!(shard.unstorable("too long", &[], at(0)).unwrap().refused.is_empty());
    let built = build(&mut shard, 60);
    assert_eq!((built.rows, built.atomic), (2, true));
}

#[test]
fn nothing_is_undone_where_nothing_is_in_flight() {
    let mut shard = shard();
    assert!(shard.unstorable("too long", &[], at(0)).is_none() && shard.disk_full(at(0)).is_none());
    assert!(shard.committed(1, at(0), Duration::ZERO).is_none());
}

#[test]
fn a_lost_shard_gives_back_everything_that_waited() {
    let mut shard = shard_with(|settings| settings.batch_rows = 2);
    let receipts = store_leased(&mut shard, 0, items(2));
    store(&mut shard, 0, items(2));
    put(&mut shard, part(1, items(3)));
    build(&mut shard, 0);
    ack(&mut shard, receipts[0]);
    ask_lease(&mut shard, 1);
    shard.contents.topics.with_window(T, |window| window.drop_bodies());
    let bodyless = share(2, reserve(&mut shard, T, 1));
    assert_eq!(shard.lease(bodyless, 5).len(), 1);
    shard.pause_for_keys(part(2, items(1)));
    shard.begin_lookup(6, part(3, items(1)));
    (7..9).for_each(|call| changes::ask(&mut shard, call, Seq(call)).unwrap());
    shard.begin_change(1).unwrap();
    changes::ask(&mut shard, 9, Seq(9)).unwrap();
    let (abandoned, mut topics) = shard.abandon();
    let slice = vec![NamedTopic { id: T, name: TopicName::new("ns", "t") }];
    assert_eq!((abandoned.epoch, topics.next_slice(9)), (3, Some(slice)));
    assert_eq!(topics.next_slice(9), None);
    let (mut in_flight, mut others) = (Vec::new(), Vec::new());
    for work in abandoned.work {
        match work {
            LostWork::InFlight(planned) => in_flight.push(planned),
            LostWork::Settle(request) => others.push(("settle", request.receipt.item.seq.0)),
            LostWork::Lease(part) => others.push(("lease", part.poll)),
            LostWork::Enqueue(part) => others.push(("enqueue", part.call)),
            LostWork::Order(request) => others.push(("order", request.call)),
            LostWork::Change(request) => others.push(("change", request.slot.call)),
        }
    }
    assert_eq!(items_of(&in_flight), [(1, 0), (1, 1)]);
    assert_eq!(others[0], ("settle", receipts[0].item.seq.0));
    assert_eq!(others[1..4], [("change", 7), ("change", 8), ("change", 9)]);
    assert_eq!(others[4..6], [("lease", 1), ("lease", 2)]);
    assert_eq!(others[6..], [("enqueue", 1), ("enqueue", 2), ("enqueue", 3)]);
}
