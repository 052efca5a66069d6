//! Deliveries that begin, the lease log, and items on their way there and back.

use forebay_store::{LeaseChange, LeaseEntry, LeaseRow};
use forebay_types::Reason;

use super::*;

#[test]
fn a_delivery_begins_with_its_commit() {
    let mut shard = shard();
    let key = store(&mut shard, 0, items(1))[0];
    ask_lease(&mut shard, 1);
    let batch = build(&mut shard, 10).batch.unwrap();
    assert!(!shard.is_leased(key.seq));
    let entry = &batch.leases[0];
    assert_eq!((entry.seq, entry.delivery(), entry.deadline), (key.seq, 1, time(1_010)));
    let receipt = receipts(&commit(&mut shard, 10))[0];
    assert!(shard.is_leased(key.seq) && shard.is_open(&receipt));
    assert!(!shard.is_open(&Receipt { nonce: receipt.nonce ^ 1, ..receipt }));
    let totals = shard.totals(T).unwrap();
    assert_eq!((totals.ready, totals.leased, counts(&shard, T)), (0, 1, (1, 0, 0)));
    assert!(shard.contents.reserved.is_empty());
}

#[test]
fn a_poll_may_name_how_long_its_leases_are() {
    let mut shard = shard();
    store(&mut shard, 0, items(1));
    let items = reserve(&mut shard, T, 1);
    shard.lease(ShardLease { lease: Some(Duration::from_secs(60)), ..share(1, items) }, 0);
    assert_eq!(run(&mut shard, 0).0.leases[0].deadline, time(60_000));
}

#[test]
fn an_item_delivered_at_most_once_leaves_the_shard() {
    let mut shard = shard();
    let mut once = item_once();
    once.attributes.expires_at = Some(time(9_000));
    let key = store(&mut shard, 0, vec![once])[0];
    ask_lease(&mut shard, 1);
    let (batch, committed) = run(&mut shard, 0);
    assert_eq!((batch.deletes, batch.leases.len(), batch.expiry_deletes.len()), (vec![key.seq], 0, 1));
    assert!(matches!(&committed.done[..], [PlannedAction::Lease { leased, .. }]
        if matches!(leased[..], [LeaseOutcome::Consumed])));
    assert!(!shard.is_leased(key.seq) && shard.contents.topics.get(T).unwrap().is_empty());
}

#[test]
fn an_at_most_once_item_is_leased_for_another_node_and_its_end_is_no_failure() {
    let mut shard = shard();
    let key = store(&mut shard, 0, vec![item_once()])[0];
    let taken = reserve(&mut shard, T, 1);
    shard.lease(ShardLease { is_fetch: true, lease: Some(Duration::from_secs(60)), ..share(1, taken) }, 0);
    let (batch, _) = run(&mut shard, 0);
    assert_eq!((batch.deletes.len(), batch.leases[0].deadline), (0, time(5_000)));
    let (batch, _) = run(&mut shard, 5_001);
    let back = &batch.requeues[0];
    assert_eq!((back.seq, back.failures, back.rank), (key.seq, 0, key.rank));
    assert_eq!(head(&shard).unwrap().0, key, "it has kept its place");
}

#[test]
fn an_at_most_once_item_that_nobody_received_is_inserted_again() {
    let mut shard = shard();
    let attributes = ItemAttributes { expires_at: Some(time(9_000)), ..item_once().attributes };
    let key = store(&mut shard, 0, vec![AdmittedItem { attributes, ..item(0) }])[0];
    let taken = reserve(&mut shard, T, 1);
    shard.lease(share(1, taken.clone()), 0);
    run(&mut shard, 0);
    shard.restore(taken[0].clone());
    let batch = build(&mut shard, 0).batch.unwrap();
    let added = shard.commit.in_flight.as_ref().unwrap().added;
    assert_eq!(added.of(Sweep::Expiry), time(9_000), "it has an expiry row again");
    commit(&mut shard, 0);
    assert_eq!((batch.inserts[0].key, batch.inserts[0].attributes.deliveries), (key, 1));
    assert_eq!((head(&shard).unwrap().0, counts(&shard, T)), (key, (1, 0, 0)));
}

#[test]
fn an_item_that_expired_on_its_way_is_not_leased() {
    let mut shard = shard();
    store(&mut shard, 0, vec![item_expiring(20)]);
    ask_lease(&mut shard, 1);
    let (batch, committed) = run(&mut shard, 20);
    assert!(batch.leases.is_empty() && shard.contents.reserved.is_empty() && head(&shard).is_none());
    assert!(matches!(&committed.done[..], [PlannedAction::Lease { leased, .. }]
        if matches!(leased[..], [LeaseOutcome::Expired])));
}

#[test]
fn an_expired_head_leaves_its_window() {
    let mut shard = shard();
    let keys = store(&mut shard, 0, vec![item_expiring(20), item(0)]);
    assert_eq!(shard.head(T, moment(19)).map(|(key, _)| key), Some(keys[0]));
    assert_eq!(shard.head(T, moment(20)).map(|(key, _)| key), Some(keys[1]));
    assert_eq!(window_len(&shard, T), 1);
}

#[test]
fn what_is_put_back_is_where_it_was() {
    let mut shard = shard();
    let keys = store(&mut shard, 0, items(2));
    let taken = reserve(&mut shard, T, 1);
    assert_eq!((head(&shard).unwrap().0, shard.contents.topics.get(T).unwrap().reserved), (keys[1], 1));
    shard.unreserve(taken);
    assert_eq!((head(&shard).unwrap().0, shard.contents.topics.get(T).unwrap().reserved), (keys[0], 0));
    assert_eq!(shard.check(), Ok(()));
}

#[test]
fn items_without_a_body_wait_until_it_is_read() {
    let mut shard = shard();
    let key = store(&mut shard, 0, items(1))[0];
    shard.contents.topics.with_window(T, |window| window.drop_bodies());
    let part = share(1, reserve(&mut shard, T, 1));
    assert_eq!(shard.lease(part, 5), [key.seq]);
    assert!(build(&mut shard, 0).batch.is_none());
    assert!(shard.bodies_read(5, Some(vec![(key.seq, Body::default())]), at(0)).is_none());
    assert_eq!(run(&mut shard, 0).0.leases.len(), 1);
}

#[test]
fn a_lease_whose_bodies_are_not_read_can_not_be_made() {
    let mut shard = shard();
    store(&mut shard, 0, items(1));
    shard.contents.topics.with_window(T, |window| window.drop_bodies());
    let part = share(1, reserve(&mut shard, T, 1));
    shard.lease(part, 5);
    let part = shard.bodies_read(5, None, at(0)).unwrap();
    shard.unreserve(part.items);
    assert!(shard.check().is_ok() && shard.is_idle() && window_len(&shard, T) == 1);
}

#[test]
fn an_item_that_is_not_in_the_store_leaves_the_index_and_the_third_shows_that_memory_is_wrong() {
    let mut shard = shard();
    let keys = store(&mut shard, 0, items(5));
    shard.contents.topics.with_window(T, |window| window.drop_bodies());
    let part = share(1, reserve(&mut shard, T, 2));
    shard.lease(part, 5);
    assert!(shard.bodies_read(5, Some(vec![(keys[1].seq, Body::default())]), at(100)).is_none());
    assert!(!shard.renewed(at(100)));
    assert_eq!(run(&mut shard, 0).0.leases[0].seq, keys[1].seq, "the other one is leased");
    for (read, wrong_memory) in [(6, false), (7, true), (8, false)] {
        let part = share(1, reserve(&mut shard, T, 1));
        shard.lease(part, read);
        let now = at(read * 100);
        assert!(shard.bodies_read(read, Some(Vec::new()), now).unwrap().items.is_empty());
        assert!(!shard.renewed(at(read * 100 - 1)), "another owner may have had it since");
        assert_eq!(shard.renewed(now), wrong_memory, "it is said once");
    }
    assert!(shard.check().is_ok() && shard.is_idle() && window_len(&shard, T) == 0);
}

#[test]
fn no_more_items_are_leased_than_allowed() {
    let mut shard = shard_with(|settings| {
        settings.limits.leased_per_topic = 3;
        settings.limits.leased_per_shard = 4;
    });
    store(&mut shard, 0, vec![item(0), item(0), item_of("u", 0), item_of("u", 0)]);
    lease(&mut shard, 0, 1);
    ask_lease(&mut shard, 1);
    let refused = |topic, more| shard.lease_refusal(topic, more, at(0)).map(|refusal| refusal.message);
    assert_eq!(refused(T, 1), None, "one is leased, one is reserved");
    assert!(refused(T, 2).unwrap().starts_with("3 items of the topic are leased in shard 1"));
    assert_eq!(refused(TopicId(2), 2), None);
    assert!(refused(TopicId(2), 3).unwrap().starts_with("4 items of all namespaces are leased"));
}

#[test]
fn no_more_items_of_a_tenant_are_leased_than_its_share() {
    let mut shard = shard_with(|settings| settings.limits.leased_per_tenant = 3);
    put(&mut shard, part(1, vec![item(0), item(0), item_of("u", 0), item_of("u", 0)]));
    put(&mut shard, ShardEnqueue { namespace: "other".into(), ..part(2, items(4)) });
    run(&mut shard, 0);
    let receipt = lease(&mut shard, 0, 1)[0];
    ask_lease(&mut shard, 1);
    let refused = |shard: &OwnedShard, topic, more| shard.lease_refusal(topic, more, at(0)).is_some();
    assert!(!refused(&shard, TopicId(2), 1) && refused(&shard, TopicId(2), 2));
    assert!(!refused(&shard, TopicId(3), 3), "another tenant has its own share");
    ack(&mut shard, receipt);
    run(&mut shard, 0);
    assert!(!refused(&shard, TopicId(2), 2) && refused(&shard, TopicId(2), 3));
}

#[test]
fn bodies_on_their_way_to_a_lease_have_a_bound_for_each_tenant_and_for_the_shard() {
    let mut shard = shard_with(|settings| {
        settings.limits.answer_bytes_max = 1_000;
        settings.admit_shard_bytes = 1_000;
    });
    put(&mut shard, part(1, vec![item_of_bytes(900), item_of_bytes(900)]));
    put(&mut shard, ShardEnqueue { namespace: "other".into(), ..part(2, vec![item_of_bytes(900)]) });
    put(&mut shard, ShardEnqueue { namespace: "third".into(), ..part(3, vec![item_of_bytes(900)]) });
    run(&mut shard, 0);
    ask_lease(&mut shard, 1);
    let refused =
        |shard: &OwnedShard, topic| shard.lease_refusal(topic, 1, at(0)).map(|refusal| refusal.message);
    assert!(refused(&shard, T).unwrap().starts_with("1000 bytes of items of the namespace are about"));
    assert_eq!(refused(&shard, TopicId(2)), None);
    let part = share(2, reserve(&mut shard, TopicId(2), 1));
    shard.lease(part, 0);
    assert!(refused(&shard, TopicId(3)).unwrap().starts_with("2000 bytes of items of all namespaces"));
    run(&mut shard, 0);
    assert_eq!((refused(&shard, T), refused(&shard, TopicId(3))), (None, None));
}

#[test]
fn while_too_much_is_to_be_inserted_again_a_tenant_leases_nothing_more() {
    let mut shard = shard_with(|settings| {
        settings.limits.answer_bytes_max = 1_000;
        settings.admit_shard_bytes = 1_000;
    });
    let bytes = item_of_bytes(900).body.bytes() as u32;
    store(&mut shard, 0, vec![AdmittedItem { attributes: item_once().attributes, ..item_of_bytes(900) }]);
    let taken = reserve(&mut shard, T, 1);
    shard.lease(share(1, taken.clone()), 0);
    run(&mut shard, 0);
    assert_eq!((taken[0].item.bytes, shard.lease_refusal(T, 1, at(0))), (bytes, None));
    shard.restore(taken[0].clone());
    let refusal = shard.lease_refusal(T, 1, at(0)).expect("its item waits for a batch");
    assert_eq!(refusal.reason, Reason::Overloaded);
    assert_eq!(shard.new_topic_lease_refusal("other", 1, at(0)), None, "others may");
    run(&mut shard, 0);
    assert_eq!(shard.lease_refusal(T, 1, at(0)), None);
}

#[test]
fn leases_that_were_taken_over_count_for_their_tenant() {
    let entry = |seq| LeaseEntry {
        seq: Seq(seq),
        topic: T,
        priority: 0,
        rank: 0,
        attributes: attributes(),
        bytes: 0,
        nonce: 1,
        leased_at: time(0),
        deadline: time(1_000),
        consumer: String::new(),
        began: 1,
    };
    let row = LeaseRow { id: 7, entries: vec![entry(1), entry(2)], open: vec![false, true] };
    let topics = vec![TopicRow { id: T, name: TopicName::new("ns", "t"), counts: TopicCounts::default() }];
    let snapshot = ShardSnapshot { topics, leases: vec![row], ..ShardSnapshot::default() };
    let shard = loaded(Settings::default(), snapshot);
    assert_eq!((shard.contents.tenants.of("ns").leased, shard.check()), (1, Ok(())));
}

#[test]
fn a_lease_row_shows_which_deliveries_are_open() {
    let mut shard = shard();
    let receipts = store_leased(&mut shard, 0, items(3));
    let mut change = |receipt| {
        ack(&mut shard, receipt);
        run(&mut shard, 0).0.lease_changes
    };
    let (first, second) = (vec![true, false, true], vec![false, false, true]);
    assert_eq!(change(receipts[1]), [LeaseChange { id: 2, partly: false, open: first }]);
    assert_eq!(change(receipts[0]), [LeaseChange { id: 2, partly: true, open: second }]);
    assert_eq!(change(receipts[2]), [LeaseChange { id: 2, partly: true, open: Vec::new() }]);
}

/// A shard with a lease row of 32 deliveries of which two are open, and their receipts.
fn sparse() -> (OwnedShard, Vec<Receipt>) {
    let mut shard = shard();
    let receipts = store_leased(&mut shard, 0, items(32));
    receipts[2..].iter().for_each(|receipt| ack(&mut shard, *receipt));
    run(&mut shard, 0);
    (shard, receipts[..2].to_vec())
}

#[test]
fn a_sparse_lease_row_moves_to_the_next_batch() {
    let (mut shard, receipts) = sparse();
    assert!(build(&mut shard, 0).batch.is_none(), "that alone is no reason for a batch");
    put(&mut shard, part(1, items(1)));
    let (batch, _) = run(&mut shard, 0);
    assert_eq!(batch.lease_changes, [LeaseChange { id: 2, partly: true, open: Vec::new() }]);
    assert_eq!(batch.leases.len(), 2);
    assert!(receipts.iter().all(|receipt| shard.is_open(receipt)), "the deliveries go on");
    let rows = receipts.iter().map(|receipt| shard.contents.leases.find(receipt.item.seq).unwrap().0.row);
    assert_eq!(rows.collect::<Vec<_>>(), [batch.number, batch.number]);
    assert!(shard.contents.leases.sparse().is_none());
}

#[test]
fn a_delivery_that_ends_in_the_batch_does_not_move() {
    let (mut shard, receipts) = sparse();
    ack(&mut shard, receipts[0]);
    let (batch, _) = run(&mut shard, 0);
    assert_eq!((batch.leases.len(), batch.leases[0].seq), (1, receipts[1].item.seq));
    assert_eq!(batch.lease_changes, [LeaseChange { id: 2, partly: true, open: Vec::new() }]);
}

#[test]
fn a_row_with_more_than_one_open_in_sixteen_stays() {
    let mut shard = shard();
    let receipts = store_leased(&mut shard, 0, items(32));
    receipts[3..].iter().for_each(|receipt| ack(&mut shard, *receipt));
    run(&mut shard, 0);
    assert!(shard.contents.leases.sparse().is_none());
}

#[test]
fn a_topic_is_kept_as_long_as_one_of_its_items_is_to_be_inserted_again() {
    let mut shard = shard();
    restore_one(&mut shard);
    assert_eq!((counts(&shard, T), shard.contents.topics.next_unused()), ((0, 0, 0), None));
    run(&mut shard, 0);
    assert_eq!((counts(&shard, T), shard.contents.topics.get(T).unwrap().restores), ((1, 0, 0), 0));
}

#[test]
fn a_topic_that_miscounts_what_is_to_be_inserted_again_is_found() {
    let what = check::wrong(|shard| shard.contents.topics.get_mut(T).unwrap().restores = 1);
    assert_eq!(what, "{} are to be inserted again, topics say {TopicId(1): 1}");
}
