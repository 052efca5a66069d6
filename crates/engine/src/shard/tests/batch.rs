//! Building: the order of steps, how much one batch holds, and that no two things touch one item.

use std::time::Duration;

use forebay_store::ShardTopology;

use super::*;
use crate::shard::work::NextRecord;

/// The work of a batch, in a word each.
fn words(shard: &OwnedShard) -> Vec<&'static str> {
    let planned = &shard.commit.in_flight.as_ref().unwrap().planned;
    let word = |planned: &PlannedAction| match planned {
        PlannedAction::Enqueue { .. } => "enqueue",
        PlannedAction::Lease { .. } => "lease",
        PlannedAction::HandOff { .. } => "hand off",
        PlannedAction::Restore(_) => "restore",
        PlannedAction::MoveLease(_) => "move",
        PlannedAction::Order(_) => "order",
        PlannedAction::Change(_) => "change",
        PlannedAction::Settle(settle) => match settle.request.kind {
            SettleKind::Ack => "ack",
            SettleKind::LeaseTimeout | SettleKind::FetchTimeout => "timeout",
            SettleKind::Purge | SettleKind::Reset | SettleKind::Cancel => "operation",
            SettleKind::Nack { .. } | SettleKind::Extend { .. } => "settle",
        },
    };
    planned.iter().map(word).collect()
}

#[test]
fn nothing_is_built_where_nothing_waits() {
    let mut shard = shard();
    let built = build(&mut shard, 0);
    assert!(built.batch.is_none() && !built.atomic && built.rows == 0);
    assert!(!shard.is_committing());
}

#[test]
fn settlements_come_first_then_leases_then_enqueues() {
    let mut shard = shard();
    let first = store_leased(&mut shard, 0, items(2));
    store(&mut shard, 1, vec![item_once(), item(0), item(0)]);
    let once = reserve(&mut shard, T, 1);
    shard.lease(share(1, once.clone()), 0);
    run(&mut shard, 1);
    put(&mut shard, part(2, items(1)));
    ask_lease(&mut shard, 1);
    shard.restore(once[0].clone());
    ack(&mut shard, first[0]);
    build(&mut shard, 2_000);
    assert_eq!(words(&shard), ["ack", "timeout", "restore", "lease", "enqueue"]);
}

#[test]
fn a_batch_carries_the_next_number_and_the_highest_values() {
    let mut shard = shard();
    store(&mut shard, 0, items(3));
    put(&mut shard, part(1, items(2)));
    let batch = build(&mut shard, 5).batch.unwrap();
    let marks = batch.marks.unwrap();
    assert_eq!((batch.number, marks.seq, marks.topic, marks.time), (2, Seq(5), T, time(5)));
    assert_eq!(marks.rank, batch.inserts[1].key.rank);
}

#[test]
fn building_changes_nothing_that_the_shard_is_known_to_hold() {
    let mut shard = shard();
    put(&mut shard, part(1, items(3)));
    build(&mut shard, 0);
    assert_eq!((shard.contents.topics.len(), shard.tenure.batch, shard.tenure.marks.seq), (0, 0, Seq(0)));
}

#[test]
fn a_batch_has_no_more_rows_than_allowed() {
    let mut shard = shard_with(|settings| settings.batch_rows = 4);
    put(&mut shard, part(1, items(10)));
    let built = build(&mut shard, 0);
    assert_eq!((built.rows, built.batch.unwrap().inserts.len()), (4, 4));
    assert_eq!(shard.intake.enqueues.sum().rows, 6);
    commit(&mut shard, 0);
    assert_eq!(run(&mut shard, 0).0.inserts[0].key.seq, Seq(5), "the rest follows in order");
}

#[test]
fn every_class_of_work_has_its_share_of_a_batch() {
    let mut shard = shard();
    let receipts = store_leased(&mut shard, 0, items(20));
    store(&mut shard, 0, items(10));
    shard.settings = Arc::new(Settings { batch_rows: 8, ..Settings::default() });
    receipts[..10].iter().for_each(|receipt| ack(&mut shard, *receipt));
    (0..9).for_each(|_| ask_lease(&mut shard, 1));
    put(&mut shard, part(1, items(3)));
    build(&mut shard, 2_000);
    let count = |shard: &OwnedShard, word| words(shard).iter().filter(|other| **other == word).count();
    let words = ["ack", "timeout", "lease", "enqueue"];
    assert_eq!(words.map(|word| count(&shard, word)), [2, 2, 2, 1], "a call of two items is one word");
    commit(&mut shard, 2_000);
    for _ in 0..3 {
        assert_eq!(build(&mut shard, 2_000).rows, 8, "what one does not use goes to the others");
        commit(&mut shard, 2_000);
    }
    assert!(build(&mut shard, 2_000).batch.is_none());
}

#[test]
fn an_item_with_an_ack_that_waits_does_not_time_out() {
    let mut shard = shard();
    let receipts = store_leased(&mut shard, 0, items(10));
    shard.settings = Arc::new(Settings { batch_rows: 4, ..Settings::default() });
    receipts[..8].iter().for_each(|receipt| ack(&mut shard, *receipt));
    for acked in [2, 4, 2] {
        let (batch, _) = run(&mut shard, 5_000);
        assert_eq!(batch.deletes.len(), acked);
        assert!(batch.requeues.iter().all(|requeue| requeue.seq > receipts[7].item.seq));
    }
    assert!(shard.contents.leases.next_deadline().is_none());
}

/// Stores and leases items of another tenant, whose first topic this is.
pub(super) fn store_leased_of(
    shard: &mut OwnedShard,
    (namespace, topic): (&str, TopicId),
    items: Vec<AdmittedItem>,
) -> Vec<Receipt> {
    let count = items.len();
    put(shard, ShardEnqueue { namespace: namespace.into(), ..part(topic.0.into(), items) });
    run(shard, 0);
    let items = reserve(shard, topic, count);
    assert!(shard.lease(ShardLease { namespace: namespace.into(), ..share(1, items) }, 0).is_empty());
    receipts(&run(shard, 0).1)
}

#[test]
fn tenants_take_turns_in_every_class_of_work() {
    let mut shard = shard_with(|settings| settings.batch_rows = 2_000);
    let receipts = store_leased(&mut shard, 0, items(150));
    let others = store_leased_of(&mut shard, ("other", TopicId(T.0 + 1)), items(3));
    shard.settings = Arc::new(Settings { batch_rows: 64, ..Settings::default() });
    for receipt in &receipts {
        settle(&mut shard, *receipt, SettleKind::Extend { lease: None });
    }
    for receipt in &others {
        let (receipt, kind) = (*receipt, SettleKind::Ack);
        shard.settle(SettleRequest { namespace: "other".into(), receipt, kind, slot: None });
    }
    let (batch, _) = run(&mut shard, 1);
    assert_eq!((batch.leases.len(), batch.deletes.len()), (61, 3), "the second tenant is served at once");
    put(&mut shard, part(1, items(500)));
    put(&mut shard, ShardEnqueue { namespace: "other".into(), ..part(2, items(40)) });
    let (batch, _) = run(&mut shard, 2);
    let others = batch.inserts.iter().filter(|row| row.topic != T).count();
    assert!(others >= 14 && batch.inserts.len() == 32, "{others} of {}", batch.inserts.len());
}

#[test]
fn a_batch_has_no_more_bytes_than_allowed() {
    let mut shard = shard();
    shard.tenure.batch_bytes = 1_000;
    put(&mut shard, part(1, items(5)));
    assert_eq!(run(&mut shard, 0).0.inserts.len(), 2, "an item of no bytes is charged with 385");
    assert_eq!(run(&mut shard, 0).0.inserts.len(), 2);
    assert_eq!(run(&mut shard, 0).0.inserts.len(), 1);
}

#[test]
fn an_item_of_more_bytes_than_a_batch_has_goes_alone() {
    let mut shard = shard();
    shard.tenure.batch_bytes = 1_000;
    put(&mut shard, part(1, vec![item_of_bytes(5_000), item(0)]));
    assert_eq!(run(&mut shard, 0).0.inserts.len(), 1);
    assert_eq!(run(&mut shard, 0).0.inserts.len(), 1);
}

#[test]
fn the_second_thing_on_an_item_waits_for_the_next_batch() {
    let mut shard = shard();
    let receipt = store_leased(&mut shard, 0, items(1))[0];
    settle(&mut shard, receipt, SettleKind::Extend { lease: Some(Duration::from_secs(9)) });
    ack(&mut shard, receipt);
    let (batch, committed) = run(&mut shard, 1);
    assert_eq!((batch.leases.len(), batch.deletes.len()), (1, 0));
    assert!(matches!(effects(&committed)[..], [SettleEffect::Extended(_)]));
    let (batch, committed) = run(&mut shard, 1);
    assert_eq!(batch.deletes, [receipt.item.seq]);
    assert!(matches!(effects(&committed)[..], [SettleEffect::Deleted]));
}

#[test]
fn what_had_to_wait_goes_before_what_came_later() {
    let mut shard = shard();
    let receipts = store_leased(&mut shard, 0, items(2));
    let fail = |seconds| NackAction::Fail(Some(Duration::from_secs(seconds)));
    for (seconds, receipt) in [1, 2, 3, 4].into_iter().zip([0, 0, 0, 1]) {
        nack(&mut shard, receipts[receipt], fail(seconds));
    }
    build(&mut shard, 1);
    nack(&mut shard, receipts[1], fail(5));
    let waiting = shard.intake.settles.iter().map(|request| match request.kind {
        SettleKind::Nack { action, .. } => action,
        _ => panic!("{request:?}"),
    });
    assert_eq!(waiting.collect::<Vec<_>>(), [fail(2), fail(3), fail(5)]);
}

#[test]
fn the_first_batch_of_an_owner_records_another_set_of_shards() {
    let mut shard = shard();
    let topology = ShardTopology { shards: vec![ShardId(1)], ..ShardTopology::default() };
    shard.set_next_record(Some(NextRecord { topology: topology.clone(), is_change: true }));
    let built = build(&mut shard, 0);
    assert_eq!((built.rows, built.batch.unwrap().topology_history), (1, Some(topology.clone())));
    assert!(shard.is_recording_topology(), "until that is committed");
    assert_eq!(commit(&mut shard, 0).topology, Some(topology));
    assert!(!shard.is_recording_topology());
}

#[test]
fn a_set_of_shards_that_became_known_during_a_commit_is_recorded_by_the_next_batch() {
    let mut shard = shard();
    let of = |shards: &[u32]| {
        let shards = shards.iter().copied().map(ShardId).collect();
        ShardTopology { shards, ..ShardTopology::default() }
    };
    let record = |shards| Some(NextRecord { topology: of(shards), is_change: true });
    shard.set_next_record(record(&[1]));
    build(&mut shard, 0);
    shard.set_next_record(record(&[1, 2]));
    assert_eq!(commit(&mut shard, 0).topology, Some(of(&[1])));
    assert!(shard.is_recording_topology());
    build(&mut shard, 1);
    assert_eq!(commit(&mut shard, 1).topology, Some(of(&[1, 2])));
    assert!(!shard.is_recording_topology());
}

#[test]
fn another_set_of_shards_is_recorded_once_no_key_is_on_its_way() {
    let mut shard = shard();
    let topology = ShardTopology { shards: vec![ShardId(1)], ..ShardTopology::default() };
    let mut keyed = part(1, items(1));
    keyed.items[0].dedupe = key(7);
    shard.hold_keys(&keyed.keys());
    put(&mut shard, keyed);
    let record = |is_change| Some(NextRecord { topology: topology.clone(), is_change });
    shard.set_next_record(record(true));
    assert!(shard.changes_homes());
    assert_eq!(build(&mut shard, 0).batch.unwrap().topology_history, None, "the key comes first");
    commit(&mut shard, 0);
    assert_eq!(build(&mut shard, 1).batch.unwrap().topology_history, Some(topology.clone()));
    commit(&mut shard, 1);
    // A record that only adds to the same set need not wait.
    let mut keyed = part(2, items(1));
    keyed.items[0].dedupe = key(8);
    shard.hold_keys(&keyed.keys());
    put(&mut shard, keyed);
    shard.set_next_record(record(false));
    assert!(!shard.changes_homes());
    assert_eq!(build(&mut shard, 2).batch.unwrap().topology_history, Some(topology));
}
