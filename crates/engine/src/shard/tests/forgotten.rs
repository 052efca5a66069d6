//! The counts of topics that are forgotten.

use std::ops::Bound;

use forebay_store::{NamespaceTally, Tally, TopicTally};
use forebay_types::Namespace;

use super::*;
use crate::api::LifetimeCounts;

fn hasty() -> OwnedShard {
    shard_with(|settings| settings.idle_topic = Duration::from_millis(100))
}

/// The only item of the topic, which has this number, is acked. It may be forgotten 100 ms later.
fn use_up(shard: &mut OwnedShard, ms: u64, topic: u32) {
    store(shard, ms, items(1));
    take(shard, ms, topic);
}

/// The topic's only item is acked.
fn take(shard: &mut OwnedShard, ms: u64, topic: u32) {
    let reserved = reserve(shard, TopicId(topic), 1);
    shard.lease(share(1, reserved), 0);
    let receipt = receipts(&run(shard, ms).1)[0];
    ack(shard, receipt);
    run(shard, ms);
}

fn row(enqueued: i64, changed_in: u64) -> NamespaceTally {
    let tally = Tally { enqueued, acked: enqueued, ..Tally::default() };
    let tally = Some(TopicTally { since: time(0), tally });
    NamespaceTally { namespace: "ns".into(), tally, deleted_through: TopicId(0), changed_in }
}

fn seen(shard: &OwnedShard) -> Vec<(Namespace, LifetimeCounts)> {
    shard.forgotten(&Bound::Unbounded, None).collect()
}

fn enqueued(shard: &OwnedShard) -> u64 {
    seen(shard).first().map_or(0, |(_, counted)| counted.enqueued)
}

#[test]
fn a_topic_that_is_forgotten_leaves_its_counts_to_its_namespace() {
    let mut shard = hasty();
    use_up(&mut shard, 0, 1);
    let batch = run(&mut shard, 200).0;
    assert_eq!((&*batch.drop_topics, &*batch.namespace_tallies), (&[T][..], &[row(1, batch.number)][..]));
    use_up(&mut shard, 300, 2);
    assert_eq!(enqueued(&shard), 1, "those of its successor are its own");
    let batch = run(&mut shard, 500).0;
    assert_eq!(batch.namespace_tallies, [row(2, batch.number)]);
    let (namespace, counted) = seen(&shard).remove(0);
    assert_eq!((&*namespace, counted.acked, counted.since), ("ns", 2, time(0)));
    // It is at its place before the topics of its namespace.
    let from = |topic: &str| Bound::Included(TopicName::new("ns", topic));
    assert_eq!(shard.forgotten(&from(""), None).count(), 1);
    assert_eq!(shard.forgotten(&from("t"), None).count(), 0);
    assert_eq!(shard.forgotten(&Bound::Unbounded, Some(&TopicName::new("nr", "z"))).count(), 0);
}

#[test]
fn a_topic_that_keeps_its_row_for_its_dead_letters_leaves_its_counts_too() {
    let mut shard = hasty();
    let receipt = store_leased(&mut shard, 0, items(1))[0];
    nack(&mut shard, receipt, NackAction::DeadLetter);
    run(&mut shard, 0);
    let batch = run(&mut shard, 200).0;
    assert_eq!(batch.folds.iter().map(|(id, _, tally)| (*id, *tally)).collect::<Vec<_>>(), [(T, None)]);
    let tally = batch.namespace_tallies[0].tally.unwrap().tally;
    assert_eq!((tally.enqueued, tally.failed, tally.dead_lettered), (1, 1, 1));
}

#[test]
fn a_batch_that_did_not_happen_forgets_nothing() {
    let mut shard = hasty();
    use_up(&mut shard, 0, 1);
    assert!(!build(&mut shard, 200).batch.unwrap().namespace_tallies.is_empty());
    shard.disk_full(at(200)).unwrap();
    assert!(seen(&shard).is_empty() && shard.contents.topics.get(T).is_some());
    assert!(build(&mut shard, 250).batch.is_none(), "what it counted needs room");
    assert_eq!(run(&mut shard, 1_500).0.namespace_tallies[0].tally, row(1, 0).tally);
}

#[test]
fn a_namespace_that_is_deleted_counts_anew() {
    let mut shard = hasty();
    use_up(&mut shard, 0, 1);
    run(&mut shard, 200);
    use_up(&mut shard, 300, 2);
    assert!(shard.forget_counts(&"ns".into()) && shard.forget_counts(&"unknown".into()));
    assert_eq!(shard.next_wake(moment(300), false), Some(at(0)), "a batch is due");
    let batch = build(&mut shard, 300).batch.unwrap();
    let gone = NamespaceTally { tally: None, deleted_through: TopicId(2), ..row(0, batch.number) };
    assert_eq!(batch.namespace_tallies, [gone]);
    shard.unstorable("x", &[], at(300)).unwrap();
    shard.upkeep.not_before = at(0);
    run(&mut shard, 300);
    assert_eq!(enqueued(&shard), 0);
    // The counts of the topic of then are not added. A later one counts.
    put(&mut shard, part(9, vec![item_of("later", 0)]));
    let batch = run(&mut shard, 500).0;
    assert_eq!((&*batch.drop_topics, batch.namespace_tallies.len()), (&[TopicId(2)][..], 0));
    take(&mut shard, 500, 3);
    run(&mut shard, 700);
    assert_eq!(enqueued(&shard), 1);
}

#[test]
fn nothing_stays_of_a_namespace_that_is_deleted_and_has_no_topic() {
    let mut shard = hasty();
    use_up(&mut shard, 0, 1);
    shard.forget_counts(&"ns".into());
    run(&mut shard, 0);
    let batch = run(&mut shard, 200).0;
    assert_eq!((&*batch.namespace_tally_deletes, batch.namespace_tallies.len()), (&["ns".into()][..], 0));
    use_up(&mut shard, 300, 2);
    run(&mut shard, 500);
    shard.forget_counts(&"ns".into());
    assert_eq!(run(&mut shard, 600).0.namespace_tally_deletes, ["ns".into()]);
    assert!(!shard.has_forgotten() && build(&mut shard, 700).batch.is_none());
}

#[test]
fn namespaces_without_topics_give_way_to_others_those_first_that_changed_longest_ago() {
    let mut shard = hasty();
    use_up(&mut shard, 0, 1);
    let many = (0..3_000).map(|number| NamespaceTally {
        namespace: format!("tenant-{number:04}").into(),
        ..row(1, 3_000 - number)
    });
    shard.contents.topics.forgotten.load(many.collect());
    let batch = run(&mut shard, 200).0;
    assert_eq!(batch.namespace_tallies, [row(1, batch.number)], "who comes stays");
    let gone = &batch.namespace_tally_deletes;
    assert_eq!((gone.len(), &*gone[0], &*gone[1]), (512, "tenant-2999", "tenant-2998"));
    assert_eq!(seen(&shard).len(), 3_001 - 512);
}

#[test]
fn counts_are_not_forgotten_before_they_are_read() {
    let mut shard = hasty();
    use_up(&mut shard, 0, 1);
    shard.contents.topics.tally_load.begin(true);
    assert!(!shard.forget_counts(&"ns".into()));
    assert!(build(&mut shard, 200).batch.is_none());
}
