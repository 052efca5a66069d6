//! Batches that did not happen, and what is left of a shard that is lost.

use forebay_store::DueRow;
use forebay_types::Reason;

use super::*;
use crate::shard::NamedTopic;

/// Items of calls, by call and position.
fn items_of(planned: &[Planned]) -> Vec<(u64, usize)> {
    let parts = planned.iter().map(|planned| match planned {
        Planned::Enqueue { part, .. } => part,
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
        assert!(shard.unstorable("too long", &[]).unwrap().refused.is_empty());
    }
    assert_eq!(build(&mut shard, 0).rows, 1);
    let undone = shard.unstorable("too long", &[]).unwrap();
    assert_eq!(items_of(&undone.refused), [(1, 0)]);
    assert_eq!(undone.refusal.reason, Reason::InvalidField);
    assert!(undone.refusal.message.contains("too long"));
    assert_eq!(build(&mut shard, 0).rows, 7, "the rest goes at once");
}

#[test]
fn batches_grow_again_with_each_one_that_is_committed() {
    let mut shard = shard_with(|settings| settings.batch_rows = 8);
    put(&mut shard, part(1, items(30)));
    for _ in 0..2 {
        build(&mut shard, 0);
        shard.unstorable("too long", &[]).unwrap();
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
    shard.unstorable("too long", &[]).unwrap();
    shard.rows_max = None;
    assert_eq!(build(&mut shard, 0).batch.unwrap(), first);
}

#[test]
fn a_lease_that_can_not_be_stored_is_refused_and_its_items_are_back() {
    let mut shard = shard();
    let keys = store(&mut shard, 0, items(3));
    ask_lease(&mut shard, 3);
    build(&mut shard, 0);
    let undone = shard.unstorable("too long", &[]).unwrap();
    assert!(matches!(undone.refused[..], [Planned::Lease { .. }]), "a poll's share is not cut");
    assert_eq!((head(&shard).unwrap().0, window_len(&shard, T)), (keys[0], 3));
    assert!(shard.reserved.is_empty());
}

#[test]
fn a_lease_that_times_out_is_found_again() {
    let mut shard = shard();
    store_leased(&mut shard, 0, items(2));
    build(&mut shard, 1_000);
    shard.unstorable("too long", &[]).unwrap();
    assert!(shard.settles.is_empty());
    assert_eq!(run(&mut shard, 1_000).0.requeues.len(), 1);
}

#[test]
fn the_bad_items_of_an_atomic_call_are_refused_alone() {
    let mut shard = shard();
    put(&mut shard, ShardEnqueue { request: Some([7; 16]), ..part(1, items(4)) });
    assert!(build(&mut shard, 0).atomic);
    let undone = shard.unstorable("too long", &[Seq(2)]).unwrap();
    assert!(undone.refused.is_empty() && shard.keys.in_flight_count() == 1);
    let (batch, committed) = run(&mut shard, 0);
    assert_eq!(batch.inserts.len(), 3);
    let [Planned::Enqueue { results, .. }] = &committed.done[..] else { panic!("{:?}", committed.done) };
    let refused: Vec<bool> = results.iter().map(Result::is_err).collect();
    assert_eq!(refused, [false, true, false, false]);
    assert_eq!(shard.keys.in_flight_count(), 0);
}

#[test]
fn an_atomic_call_of_which_no_bad_item_is_known_is_refused_whole() {
    let mut shard = shard();
    put(&mut shard, ShardEnqueue { request: Some([7; 16]), ..part(1, items(4)) });
    build(&mut shard, 0);
    let undone = shard.unstorable("too long", &[]).unwrap();
    assert_eq!((items_of(&undone.refused).len(), shard.keys.in_flight_count()), (4, 0));
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
    let keyed = AdmittedItem { dedupe: Some([1; 16]), ..item(0) };
    put(&mut shard, part(9, vec![keyed]));
    build(&mut shard, 0);
    let undone = shard.disk_full(at(0)).unwrap();
    assert_eq!((items_of(&undone.refused), undone.refusal.reason), (vec![(8, 0), (8, 1)], Reason::DiskFull));
    let waiting: Vec<u64> = undone.refused_waiting.iter().map(|part| part.call).collect();
    assert_eq!((waiting, shard.keys.in_flight_count()), (vec![9], 0));
    assert_eq!(shard.budget.bytes(), 0);
    let (batch, _) = run(&mut shard, 0);
    assert_eq!((batch.deletes.len(), batch.leases.len(), batch.inserts.len()), (1, 1, 0));
}

#[test]
fn a_full_disk_refuses_what_comes_within_a_second() {
    let mut shard = shard();
    put(&mut shard, part(1, items(1)));
    build(&mut shard, 0);
    shard.disk_full(at(0)).unwrap();
    assert_eq!(shard.over_budget("ns", 1, at(999)).unwrap().reason, Reason::DiskFull);
    assert!(shard.over_budget("ns", 1, at(1_000)).is_none());
}

#[test]
fn an_at_most_once_item_that_is_inserted_again_is_not_lost_with_a_full_disk() {
    let mut shard = shard();
    restore_one(&mut shard);
    build(&mut shard, 0);
    shard.disk_full(at(0)).unwrap();
    assert_eq!(run(&mut shard, 0).0.inserts[0].attributes.deliveries, 1);
}

#[test]
fn a_sweeps_page_is_put_back() {
    let mut shard = shard();
    let keys = store(&mut shard, 0, vec![item_due(50), item_due(50)]);
    scan(&mut shard, Sweep::Due, 1, 60);
    let row =
        |key| DueRow { at: time(50), topic: T, scheduled: true, item: ReadyRow { key, ..ready_row(1) } };
    shard.scanned(Sweep::Due, 1, keys.into_iter().map(row).collect(), None);
    put(&mut shard, part(1, items(1)));
    build(&mut shard, 60);
    let undone = shard.unstorable("too long", &[]).unwrap();
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
    let item = ReadyRow { key, ..ready_row(1) };
    shard.scanned(Sweep::Due, 1, vec![DueRow { at: time(50), topic: T, scheduled: true, item }], None);
    put(&mut shard, ShardEnqueue { request: Some([7; 16]), ..part(1, items(2)) });
    assert!(!build(&mut shard, 60).atomic);
    assert!(shard.unstorable("too long", &[]).unwrap().refused.is_empty());
    let built = build(&mut shard, 60);
    assert_eq!((built.rows, built.atomic), (2, true));
}

#[test]
fn nothing_is_undone_where_nothing_is_in_flight() {
    let mut shard = shard();
    assert!(shard.unstorable("too long", &[]).is_none() && shard.disk_full(at(0)).is_none());
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
    shard.topics.with_window(T, |window| window.drop_bodies());
    let bodyless = share(2, reserve(&mut shard, T, 1));
    assert_eq!(shard.lease(bodyless, 5).len(), 1);
    shard.pause_for_keys(part(2, items(1)));
    shard.begin_lookup(6, part(3, items(1)));
    let abandoned = shard.abandon();
    assert_eq!(
        (abandoned.epoch, abandoned.topics),
        (3, vec![NamedTopic { id: T, name: TopicName::new("ns", "t") }])
    );
    assert_eq!(items_of(&abandoned.in_flight), [(1, 0), (1, 1)]);
    assert_eq!(abandoned.settles.len(), 1);
    assert_eq!(abandoned.leases.iter().map(|part| part.poll).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(abandoned.enqueues.iter().map(|part| part.call).collect::<Vec<_>>(), [1, 2, 3]);
}
