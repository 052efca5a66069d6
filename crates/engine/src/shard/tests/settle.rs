//! Ends of deliveries: acks, nacks, extensions, receipts of deliveries that are over, and leases that time
//! out.

use forebay_types::{DeathCause, FailureCause, State};

use super::{batch::store_leased_of, *};
use crate::{api::Settlement, shard::work::ReplySlot};

/// Stores and leases one item that may fail so often.
fn leased_once(shard: &mut OwnedShard, max_attempts: u32) -> Receipt {
    let attributes = ItemAttributes { max_attempts, ..attributes() };
    store_leased(shard, 0, vec![AdmittedItem { attributes, ..item(0) }])[0]
}

#[test]
fn an_acked_item_is_deleted_with_its_expiry() {
    let mut shard = shard();
    let receipt = store_leased(&mut shard, 0, vec![item_expiring(9_000)])[0];
    ack(&mut shard, receipt);
    let (batch, committed) = run(&mut shard, 1);
    assert_eq!((batch.deletes, batch.expiry_deletes.len()), (vec![receipt.item.seq], 1));
    assert!(matches!(effects(&committed)[..], [SettleEffect::Deleted]));
    assert!(!shard.is_open(&receipt) && shard.contents.topics.get(T).unwrap().is_empty());
}

#[test]
fn a_released_item_keeps_its_old_place() {
    let mut shard = shard();
    let keys = store(&mut shard, 0, items(2));
    let receipt = lease(&mut shard, 0, 1)[0];
    nack(&mut shard, receipt, NackAction::Release(Duration::ZERO));
    let (batch, _) = run(&mut shard, 10);
    assert_eq!((batch.requeues[0].state, batch.requeues[0].failures), (State::Ready, 0));
    let (key, item) = head(&shard).unwrap();
    assert_eq!((key, item.attributes.deliveries, item.attributes.failures), (keys[0], 1, 0));
    assert!(item.body.is_none(), "the body stayed in the store");
}

#[test]
fn a_released_item_is_ready_at_once_also_where_ranks_are_ahead_of_time() {
    let mut shard = shard();
    shard.set_rank_floor(time(60_000).as_micros());
    let receipt = leased_once(&mut shard, 3);
    nack(&mut shard, receipt, NackAction::Release(Duration::ZERO));
    assert_eq!(run(&mut shard, 10).0.requeues[0].state, State::Ready);
}

#[test]
fn a_failed_item_without_a_delay_goes_behind_what_is_ready() {
    let mut shard = shard();
    let keys = store(&mut shard, 0, items(2));
    let receipt = lease(&mut shard, 0, 1)[0];
    nack(&mut shard, receipt, NackAction::Fail(Some(Duration::ZERO)));
    let (batch, _) = run(&mut shard, 10);
    let requeue = &batch.requeues[0];
    let rank = time(10).as_micros();
    assert_eq!((requeue.state, requeue.rank, requeue.failures), (State::Ready, rank, 1));
    assert_eq!((head(&shard).unwrap().0, window_len(&shard, T)), (keys[1], 2));
}

#[test]
fn a_failed_item_with_a_delay_is_scheduled() {
    let mut shard = shard();
    let receipt = leased_once(&mut shard, 3);
    nack(&mut shard, receipt, NackAction::Fail(Some(Duration::from_millis(30))));
    let (batch, committed) = run(&mut shard, 10);
    let requeue = &batch.requeues[0];
    assert_eq!((requeue.state, requeue.rank), (State::Scheduled, time(40).as_micros()));
    assert!(matches!(effects(&committed)[..], [SettleEffect::Scheduled(Settlement { delay_cut: false })]));
    assert_eq!((counts(&shard, T), window_len(&shard, T)), ((0, 1, 0), 0));
}

#[test]
fn a_failed_item_is_looked_for_once_its_delay_is_over() {
    let mut shard = shard();
    sweep_all(&mut shard, 0);
    let receipt = leased_once(&mut shard, 3);
    nack(&mut shard, receipt, NackAction::Fail(Some(Duration::from_millis(30))));
    run(&mut shard, 10);
    assert!(shard.begin_scan(1, moment(39)).is_none());
    scan(&mut shard, Sweep::Due, 1, 40);
}

#[test]
fn an_item_that_failed_too_often_becomes_a_dead_letter() {
    let mut shard = shard();
    let receipt = leased_once(&mut shard, 1);
    nack(&mut shard, receipt, NackAction::Fail(Some(Duration::ZERO)));
    let (batch, committed) = run(&mut shard, 10);
    let dead = &batch.dead_letters[0];
    assert_eq!((&*dead.reason, &*dead.last_error, dead.failures), ("nacked", "why", 1));
    assert_eq!((dead.deliveries, dead.died_at), (1, time(10)));
    assert!(matches!(
        effects(&committed)[..],
        [SettleEffect::DeadLettered(DeathCause::Failed(FailureCause::Nacked))]
    ));
    assert_eq!((counts(&shard, T), window_len(&shard, T)), ((0, 0, 1), 0));
}

#[test]
fn an_item_becomes_a_dead_letter_at_once_if_asked() {
    let mut shard = shard();
    let receipt = store_leased(&mut shard, 0, vec![item_expiring(9_000)])[0];
    nack(&mut shard, receipt, NackAction::DeadLetter);
    let (batch, _) = run(&mut shard, 10);
    assert_eq!(batch.dead_letters[0].reason, "dead-lettered");
    assert_eq!(batch.expiry_deletes.len(), 1, "a dead letter does not expire");
}

#[test]
fn an_expired_item_is_deleted_whatever_is_asked() {
    for action in [NackAction::Fail(Some(Duration::ZERO)), NackAction::DeadLetter] {
        let mut shard = shard();
        let receipt = store_leased(&mut shard, 0, vec![item_expiring(9)])[0];
        nack(&mut shard, receipt, action);
        let (batch, _) = run(&mut shard, 10);
        assert_eq!((batch.deletes.len(), batch.dead_letters.len(), batch.requeues.len()), (1, 0, 0));
    }
}

#[test]
fn new_metadata_is_stored_and_its_bytes_count() {
    let mut shard = shard();
    let receipt = leased_once(&mut shard, 3);
    let action = NackAction::Release(Duration::ZERO);
    let metadata = Some(b"four".to_vec());
    settle(&mut shard, receipt, SettleKind::Nack { action, metadata, reason: String::new() });
    let (batch, _) = run(&mut shard, 0);
    assert_eq!(batch.requeues[0].metadata.as_deref(), Some(&b"four"[..]));
    assert_eq!(head(&shard).unwrap().1.bytes, 4);
}

#[test]
fn an_extended_lease_ends_later_under_the_same_receipt() {
    let mut shard = shard();
    let receipt = leased_once(&mut shard, 3);
    settle(&mut shard, receipt, SettleKind::Extend { lease: Some(Duration::from_secs(60)) });
    let (batch, committed) = run(&mut shard, 500);
    let end = time(60_500);
    assert_eq!((batch.leases[0].deadline, batch.lease_changes[0].open.len()), (end, 0));
    assert!(matches!(effects(&committed)[..], [SettleEffect::Extended(at)] if *at == end));
    assert!(shard.is_open(&receipt));
    assert_eq!((shard.contents.leases.next_deadline(), shard.contents.leases.len()), (Some(end), 1));
    assert!(build(&mut shard, 2_000).batch.is_none(), "the old end is forgotten");
    assert_eq!(counts(&shard, T), (1, 0, 0));
}

#[test]
fn an_extension_that_names_no_span_is_by_the_items_own() {
    let mut shard = shard();
    let receipt = leased_once(&mut shard, 3);
    settle(&mut shard, receipt, SettleKind::Extend { lease: None });
    assert_eq!(run(&mut shard, 500).0.leases[0].deadline, time(1_500));
}

#[test]
fn a_receipt_of_another_delivery_ends_nothing() {
    let mut shard = shard();
    let receipt = leased_once(&mut shard, 3);
    let strangers = [
        Receipt { nonce: receipt.nonce ^ 1, ..receipt },
        Receipt { delivery: 2, ..receipt },
        Receipt { item: item_id(Seq(99)), ..receipt },
    ];
    strangers.iter().for_each(|stranger| ack(&mut shard, *stranger));
    let built = build(&mut shard, 0);
    assert!(built.batch.is_none());
    assert_eq!(built.stale.iter().map(|request| request.receipt).collect::<Vec<_>>(), strangers);
    assert!(shard.is_open(&receipt));
}

#[test]
fn a_receipt_is_stale_after_its_ack() {
    let mut shard = shard();
    let receipt = leased_once(&mut shard, 3);
    ack(&mut shard, receipt);
    run(&mut shard, 0);
    ack(&mut shard, receipt);
    assert_eq!(build(&mut shard, 0).stale.len(), 1);
}

#[test]
fn a_lease_that_times_out_counts_as_a_failure() {
    let mut shard = shard();
    let receipt = leased_once(&mut shard, 3);
    assert!(build(&mut shard, 999).batch.is_none());
    let (batch, _) = run(&mut shard, 1_500);
    let requeue = &batch.requeues[0];
    assert_eq!((requeue.seq, requeue.failures), (receipt.item.seq, 1));
    assert_eq!(requeue.rank, time(1_000).as_micros(), "its place is that of the end of its lease");
    assert_eq!(head(&shard).unwrap().1.attributes.failures, 1);
    assert!(!shard.is_leased(receipt.item.seq));
}

#[test]
fn a_lease_that_times_out_once_too_often_makes_a_dead_letter() {
    let mut shard = shard();
    leased_once(&mut shard, 1);
    assert_eq!(run(&mut shard, 1_000).0.dead_letters[0].reason, "lease ended");
}

#[test]
fn an_ack_that_waits_comes_before_the_timeout() {
    let mut shard = shard();
    let receipt = leased_once(&mut shard, 1);
    ack(&mut shard, receipt);
    let (batch, _) = run(&mut shard, 5_000);
    assert_eq!((batch.deletes.len(), batch.dead_letters.len()), (1, 0));
}

#[test]
fn leases_are_left_alone_until_acks_on_their_way_have_come() {
    let mut shard = shard();
    leased_once(&mut shard, 3);
    shard.commit.timeouts_after = at(5_000);
    assert!(build(&mut shard, 4_999).batch.is_none());
    assert_eq!(run(&mut shard, 5_000).0.requeues.len(), 1);
}

#[test]
fn only_so_many_leases_time_out_in_one_batch() {
    let mut shard = shard();
    store_leased(&mut shard, 0, items(300));
    assert_eq!(run(&mut shard, 1_000).0.requeues.len(), 250);
    assert_eq!(run(&mut shard, 1_000).0.requeues.len(), 50);
}

/// How many settlements each thing that a batch does answers.
fn answered(shard: &OwnedShard) -> Vec<usize> {
    let planned = &shard.commit.in_flight.as_ref().unwrap().planned;
    let settles = planned.iter().filter_map(|planned| match planned {
        PlannedAction::Settle(settle) => Some(settle.requests().count()),
        _ => None,
    });
    settles.collect()
}

#[test]
fn an_ack_that_is_repeated_is_answered_with_the_first() {
    let mut shard = shard();
    let receipts = store_leased(&mut shard, 0, items(2));
    for _ in 0..1_000 {
        ack(&mut shard, receipts[0]);
    }
    ack(&mut shard, receipts[1]);
    let built = build(&mut shard, 1);
    assert_eq!((built.rows, answered(&shard), built.stale.len()), (2, vec![1_000, 1], 0));
    commit(&mut shard, 1);
    assert!(shard.is_idle());
}

#[test]
fn of_two_extensions_of_one_delivery_the_later_one_counts() {
    let mut shard = shard();
    let receipts = store_leased(&mut shard, 0, items(2));
    for (receipt, seconds) in [(0, 5), (1, 7), (0, 9), (0, 8)] {
        let lease = Some(Duration::from_secs(seconds));
        settle(&mut shard, receipts[receipt], SettleKind::Extend { lease });
    }
    let batch = build(&mut shard, 0).batch.unwrap();
    let ends: Vec<_> = batch.leases.iter().map(|lease| lease.deadline).collect();
    assert_eq!((ends, answered(&shard)), (vec![time(8_000), time(7_000)], vec![3, 1]));
    let committed = commit(&mut shard, 0);
    assert!(matches!(effects(&committed)[0], SettleEffect::Extended(end) if *end == time(8_000)));
}

#[test]
fn what_says_something_else_waits_and_what_comes_behind_it_too() {
    let mut shard = shard();
    let receipt = store_leased(&mut shard, 0, items(1))[0];
    ack(&mut shard, receipt);
    nack(&mut shard, receipt, NackAction::Fail(Some(Duration::ZERO)));
    ack(&mut shard, receipt);
    build(&mut shard, 0);
    assert_eq!(answered(&shard), [1]);
    commit(&mut shard, 0);
    let built = build(&mut shard, 0);
    assert_eq!((built.batch.is_none(), built.stale.len()), (true, 2));
}

#[test]
fn another_receipt_of_an_item_that_is_acked_is_stale() {
    let mut shard = shard();
    let receipt = store_leased(&mut shard, 0, items(1))[0];
    ack(&mut shard, receipt);
    ack(&mut shard, Receipt { nonce: receipt.nonce ^ 1, ..receipt });
    build(&mut shard, 0);
    assert_eq!(answered(&shard), [1]);
    commit(&mut shard, 0);
    assert_eq!(build(&mut shard, 0).stale.len(), 1);
}

/// A caller's ack.
fn ask(shard: &mut OwnedShard, namespace: &str, receipt: Receipt) -> Result<(), String> {
    let request = SettleRequest { namespace: namespace.into(), receipt, kind: SettleKind::Ack, slot: None };
    shard.ask_settle(request).map_err(|refused| refused.1.message)
}

#[test]
fn an_ack_that_is_repeated_while_the_first_is_in_flight_is_answered_with_it() {
    let mut shard = shard();
    let receipts = store_leased(&mut shard, 0, items(2));
    ack(&mut shard, receipts[0]);
    build(&mut shard, 0);
    ask(&mut shard, "ns", receipts[0]).unwrap();
    ask(&mut shard, "ns", receipts[1]).unwrap();
    assert_eq!((answered(&shard), shard.intake.settles.sum().rows), (vec![2], 1));
    shard.commit.rows_max = Some(8);
    shard.disk_full(at(0)).unwrap();
    assert_eq!(shard.intake.settles.sum().rows, 3, "all of them wait again");
    build(&mut shard, 900);
    assert_eq!(answered(&shard), [2, 1]);
}

#[test]
fn settlements_of_a_tenant_and_of_a_shard_wait_up_to_so_many_bytes() {
    let mut shard = shard_with(|settings| {
        settings.admit_tenant_bytes = 1_000;
        settings.admit_shard_bytes = 2_000;
    });
    let tenants = [("a", 4), ("b", 4), ("c", 2)];
    let mut leased = Vec::new();
    for (topic, (namespace, count)) in (1..).map(TopicId).zip(tenants) {
        let receipts = store_leased_of(&mut shard, (namespace, topic), items(count));
        leased.extend(receipts.into_iter().map(|receipt| (namespace, receipt)));
    }
    let asked: Vec<_> =
        leased.into_iter().map(|(namespace, receipt)| ask(&mut shard, namespace, receipt)).collect();
    let waits: Vec<bool> = asked.iter().map(Result::is_ok).collect();
    assert_eq!(waits, [true, true, true, false, true, true, true, false, true, false]);
    assert!(asked[3].as_ref().unwrap_err().contains("of this namespace are waiting in shard 1"));
    assert!(asked[9].as_ref().unwrap_err().contains("extensions are waiting in shard 1"));
    run(&mut shard, 0);
    assert_eq!(shard.intake.settles.sum().bytes, 0);
}

#[test]
fn a_receipt_of_another_tenants_item_settles_nothing() {
    let mut shard = shard();
    let receipt = store_leased(&mut shard, 0, items(1))[0];
    let ack = |namespace: &str| SettleRequest {
        namespace: namespace.into(),
        receipt,
        kind: SettleKind::Ack,
        slot: None,
    };
    shard.settle(ack("other"));
    assert!(build(&mut shard, 1).batch.is_none_or(|batch| batch.deletes.is_empty()));
    assert!(shard.is_open(&receipt));
    shard.settle(ack("ns"));
    assert_eq!(run(&mut shard, 1).0.deletes, [receipt.item.seq]);
}

#[test]
fn after_an_outage_leases_are_left_alone_for_as_long_as_it_took() {
    for (took, grace) in [(900, 0), (2_000, 2_000), (60_000, 5_000)] {
        let mut shard = shard();
        let receipts = store_leased(&mut shard, 0, items(2));
        ack(&mut shard, receipts[0]);
        build(&mut shard, 500);
        commit(&mut shard, 500 + took);
        let end = 500 + took + grace;
        assert!(grace == 0 || build(&mut shard, end - 1).batch.is_none(), "{took}");
        assert_eq!(run(&mut shard, end).0.requeues.len(), 1, "{took}");
    }
}

#[test]
fn a_row_that_can_not_be_stored_is_no_outage() {
    let mut shard = shard();
    let receipts = store_leased(&mut shard, 0, items(2));
    // A caller waits for it: otherwise it would be left alone, and not refused.
    let slot = Some(ReplySlot { call: 1, index: 0 });
    let (namespace, kind) = ("ns".into(), SettleKind::Ack);
    shard.settle(SettleRequest { namespace, receipt: receipts[0], kind, slot });
    build(&mut shard, 500);
    shard.unstorable("too long", &[], at(500)).unwrap();
    shard.commit.timeouts_after = at(9_000);
    ack(&mut shard, receipts[1]);
    run(&mut shard, 8_999);
    assert_eq!(run(&mut shard, 9_000).0.requeues.len(), 1);
}

#[test]
fn a_receipt_that_is_made_up_holds_up_no_timeout() {
    let mut shard = loaded(Settings { batch_rows: 4, ..Settings::default() }, ShardSnapshot::default());
    store(&mut shard, 0, items(3));
    store(&mut shard, 0, items(3));
    let receipts: Vec<Receipt> = [lease(&mut shard, 0, 3), lease(&mut shard, 0, 3)].concat();
    // More acks than a batch takes, and behind them somebody guesses at the last item.
    receipts[..5].iter().for_each(|receipt| ack(&mut shard, *receipt));
    ack(&mut shard, Receipt { nonce: receipts[5].nonce ^ 1, ..receipts[5] });
    let (batch, _) = run(&mut shard, 2_000);
    assert!(batch.deletes.len() < 5, "some acks wait");
    assert_eq!(batch.requeues.iter().map(|back| back.seq).collect::<Vec<_>>(), [receipts[5].item.seq]);
}
