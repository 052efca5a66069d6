//! Tallies of items and deliveries, and the rates of a topic.

use forebay_store::{Tally, TopicTally};

use super::*;

fn tally(shard: &OwnedShard) -> Tally {
    shard.contents.topics.get(T).unwrap().tally().unwrap().tally
}

#[test]
fn each_end_of_a_delivery_is_counted_as_what_it_is() {
    let mut shard = shard();
    let receipts = store_leased(&mut shard, 0, items(6));
    assert_eq!(tally(&shard), Tally { enqueued: 6, ..Tally::default() }, "open deliveries are not stored");
    ack(&mut shard, receipts[0]);
    nack(&mut shard, receipts[1], NackAction::Fail(None));
    nack(&mut shard, receipts[2], NackAction::DeadLetter);
    nack(&mut shard, receipts[3], NackAction::Release(Duration::ZERO));
    settle(&mut shard, receipts[4], SettleKind::Extend { lease: None });
    let (batch, _) = run(&mut shard, 10);
    let delta = Tally { acked: 1, failed: 2, returned: 1, dead_lettered: 1, ..Tally::default() };
    assert_eq!(batch.tallies, [(T, delta)]);
    assert_eq!(tally(&shard), Tally { enqueued: 6, ..delta });
    let counted = shard.flow(T, at(10)).unwrap().counted;
    let counted = counted.unwrap();
    assert_eq!((counted.since, counted.enqueued, counted.delivered), (time(0), 6, 6));
    assert_eq!((counted.acked, counted.failed, counted.dead_lettered), (1, 2, 1));
}

#[test]
fn a_topic_knows_when_something_was_delivered_and_acked_last() {
    let mut shard = shard();
    store(&mut shard, 0, items(1));
    let last = |shard: &OwnedShard| {
        let last = shard.flow(T, at(0)).unwrap().last;
        (last.delivery(), last.ack())
    };
    assert_eq!(last(&shard), (None, None));
    let receipts = store_leased(&mut shard, 100, items(2));
    let (delivered, acked) = last(&shard);
    assert!(delivered.is_some() && acked.is_none(), "{delivered:?}, {acked:?}");
    nack(&mut shard, receipts[0], NackAction::Release(Duration::ZERO));
    run(&mut shard, 200);
    assert_eq!(last(&shard), (delivered, None), "what goes back is neither");
    ack(&mut shard, receipts[1]);
    run(&mut shard, 1_200);
    let (later, acked) = last(&shard);
    assert!(later == delivered && acked > delivered, "{acked:?}");
}

#[test]
fn a_lease_that_ran_out_is_a_failure() {
    let mut shard = shard();
    store_leased(&mut shard, 0, items(1));
    let (batch, _) = run(&mut shard, 3_600_000);
    assert_eq!(batch.tallies, [(T, Tally { failed: 1, ..Tally::default() })]);
}

#[test]
fn an_at_most_once_item_is_consumed_and_is_not_if_nobody_received_it() {
    let mut shard = shard();
    store(&mut shard, 0, vec![item_once()]);
    ask_lease(&mut shard, 1);
    assert_eq!(run(&mut shard, 0).0.tallies, [(T, Tally { consumed: 1, ..Tally::default() })]);
    let mut shard = super::shard();
    restore_one(&mut shard);
    assert_eq!(run(&mut shard, 0).0.tallies, [(T, Tally { consumed: -1, ..Tally::default() })]);
}

#[test]
fn a_batch_that_did_not_happen_is_not_counted() {
    let mut shard = shard();
    let receipts = store_leased(&mut shard, 0, items(2));
    ack(&mut shard, receipts[0]);
    ack(&mut shard, receipts[1]);
    let batch = build(&mut shard, 10).batch.unwrap();
    assert_eq!(batch.tallies, [(T, Tally { acked: 2, ..Tally::default() })]);
    shard.unstorable("x", &[], at(10)).unwrap();
    assert_eq!(tally(&shard), Tally { enqueued: 2, ..Tally::default() });
    run(&mut shard, 20);
    run(&mut shard, 30);
    assert_eq!(tally(&shard), Tally { enqueued: 2, acked: 2, ..Tally::default() });
}

#[test]
fn a_tally_is_folded_with_the_counts_and_goes_on_after_a_take_over() {
    let topics = vec![TopicRow { id: T, name: TopicName::new("ns", "t"), counts: TopicCounts::default() }];
    let before = Tally { enqueued: 40, acked: 40, ..Tally::default() };
    let tallies = vec![(T, TopicTally { since: time(0), tally: before })];
    let snapshot = ShardSnapshot { topics, tallies, unfolded: vec![T], ..ShardSnapshot::default() };
    let mut shard = loaded(Settings::default(), snapshot);
    put(&mut shard, part(1, items(2)));
    let (batch, _) = run(&mut shard, 5_000);
    let now = TopicTally { since: time(0), tally: Tally { enqueued: 42, ..before } };
    assert_eq!(batch.folds.iter().map(|fold| (fold.0, fold.2)).collect::<Vec<_>>(), [(T, Some(now))]);
    assert_eq!(tally(&shard), now.tally, "the fold has the batch's own part");
}

#[test]
fn a_nack_alone_makes_the_topic_one_to_be_folded() {
    let mut shard = shard();
    let receipt = store_leased(&mut shard, 0, items(1))[0];
    shard.contents.topics.get_mut(T).unwrap().dirty_since = None;
    shard.contents.topics.dirty.clear();
    nack(&mut shard, receipt, NackAction::Fail(None));
    let (batch, _) = run(&mut shard, 10);
    assert!(batch.count_deltas.is_empty() && !batch.tallies.is_empty());
    assert_eq!(shard.contents.topics.get(T).unwrap().dirty_since, Some(batch.number));
}

#[test]
fn rates_have_what_happened_in_the_last_seconds() {
    let mut shard = shard();
    let receipts = store_leased(&mut shard, 0, items(20));
    receipts.iter().take(10).for_each(|receipt| ack(&mut shard, *receipt));
    run(&mut shard, 10);
    // An extension begins no delivery.
    settle(&mut shard, receipts[15], SettleKind::Extend { lease: None });
    run(&mut shard, 20);
    let rates = shard.flow(T, at(3_000)).unwrap().rates;
    assert_eq!((rates.enqueued, rates.delivered, rates.acked, rates.failed), (2.0, 2.0, 1.0, 0.0));
    assert_eq!(shard.flow(T, at(30_000)).unwrap().rates, crate::api::Rates::default());
}

#[test]
fn nothing_is_folded_or_forgotten_before_all_tallies_are_read() {
    let topics = vec![TopicRow { id: T, name: TopicName::new("ns", "t"), counts: TopicCounts::default() }];
    let snapshot = ShardSnapshot { topics, unfolded: vec![T], ..ShardSnapshot::default() };
    let mut shard = loaded(Settings { idle_topic: Duration::ZERO, ..Settings::default() }, snapshot);
    shard.contents.topics.tally_load.begin(true);
    assert!(build(&mut shard, 5_000).batch.is_none() && !shard.has_tallies());
    put(&mut shard, part(1, items(2)));
    let (batch, _) = run(&mut shard, 5_000);
    assert!(batch.folds.is_empty() && batch.drop_topics.is_empty());
    let request = shard.begin_tallies(1, at(5_000)).unwrap();
    assert!(
        request.after == TalliesAfter::Topic(TopicId(0)) && shard.begin_tallies(2, at(5_000)).is_none(),
        "one read at a time"
    );
    let before = TopicTally { since: time(0), tally: Tally { enqueued: 40, ..Tally::default() } };
    shard.tallies_read(1, Some(TallyRows::Topics(vec![(T, before)])), at(5_000));
    assert!(shard.begin_tallies(2, at(5_000)).is_some() && !shard.has_tallies());
    shard.tallies_read(2, Some(TallyRows::Namespaces(Vec::new())), at(5_000));
    put(&mut shard, part(2, items(1)));
    let (batch, _) = run(&mut shard, 5_000);
    assert_eq!(batch.folds[0].2.unwrap().tally.enqueued, 43);
}
