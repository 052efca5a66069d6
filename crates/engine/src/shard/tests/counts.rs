//! Counts: their deltas, when they are folded into the topics' rows, and topics that nobody needs any more.

use super::*;
use crate::shard::NamedTopic;

/// The counts that a batch folds.
pub(super) fn folded(batch: &Batch) -> Vec<(TopicId, TopicCounts)> {
    batch.folds.iter().map(|(id, counts, _)| (*id, *counts)).collect()
}

fn ready(ready: i64) -> TopicCounts {
    TopicCounts { ready, ..TopicCounts::default() }
}

#[test]
fn a_batch_stores_how_counts_change() {
    let mut shard = shard();
    put(&mut shard, part(1, vec![item(0), item_due(50), item(0)]));
    let delta = TopicCounts { ready: 2, scheduled: 1, dead: 0 };
    assert_eq!(run(&mut shard, 0).0.count_deltas, [(T, delta)]);
}

#[test]
fn a_batch_that_changes_no_count_stores_none() {
    let mut shard = shard();
    store(&mut shard, 0, items(1));
    ask_lease(&mut shard, 1);
    assert!(run(&mut shard, 0).0.count_deltas.is_empty());
}

#[test]
fn where_one_item_comes_and_one_goes_no_count_changes() {
    let mut shard = shard();
    let receipt = store_leased(&mut shard, 0, items(1))[0];
    ack(&mut shard, receipt);
    put(&mut shard, part(1, items(1)));
    assert!(run(&mut shard, 0).0.count_deltas.is_empty());
}

#[test]
fn a_topic_is_folded_256_batches_after_its_first_delta() {
    let mut shard = shard();
    for number in 1..=256 {
        put(&mut shard, part(number, items(1)));
        let (batch, _) = run(&mut shard, 0);
        assert!(batch.folds.is_empty() && batch.drop_deltas.is_none(), "{number}");
    }
    put(&mut shard, part(257, items(1)));
    let (batch, _) = run(&mut shard, 0);
    assert_eq!((folded(&batch), batch.drop_deltas), (vec![(T, ready(257))], Some(0..257)));
    put(&mut shard, part(258, items(1)));
    assert_eq!(run(&mut shard, 0).0.drop_deltas, None, "it begins anew");
    assert_eq!(shard.contents.topics.get(T).unwrap().dirty_since, Some(258));
    let mut later = (259..).map(|number| {
        put(&mut shard, part(number, items(1)));
        run(&mut shard, 0).0.drop_deltas
    });
    let next = later.find_map(|deltas| deltas).unwrap();
    assert_eq!(next, 257..514, "what was deleted is not walked over again");
}

#[test]
fn deltas_stay_as_long_as_a_topic_in_them_is_not_folded() {
    let mut shard = shard();
    for number in 1..=256 {
        let topic = if number < 200 { "t" } else { "u" };
        put(&mut shard, part(number, vec![item_of(topic, 0)]));
        run(&mut shard, 0);
    }
    put(&mut shard, part(257, items(1)));
    let (batch, _) = run(&mut shard, 0);
    assert_eq!((folded(&batch), batch.drop_deltas), (vec![(T, ready(200))], Some(0..200)));
}

#[test]
fn a_fold_that_did_not_happen_is_done_with_the_next_batch() {
    let mut shard = shard_with_topics(1, 5);
    put(&mut shard, part(1, items(4)));
    assert_eq!(folded(&build(&mut shard, 0).batch.unwrap()), [(T, ready(5))]);
    shard.unstorable("too long", &[], at(0)).unwrap();
    shard.upkeep.not_before = at(0); // the pause is over
    assert_eq!(folded(&run(&mut shard, 0).0), [(T, ready(5))]);
}

#[test]
fn the_topics_of_a_take_over_are_folded_a_few_at_a_time() {
    let mut shard = shard_with_topics(100, 5);
    put(&mut shard, part(1, vec![item_of("t1", 0)]));
    let (batch, _) = run(&mut shard, 0);
    assert_eq!((batch.folds.len(), folded(&batch)[0]), (65, (T, ready(6))));
    assert_eq!(batch.drop_deltas, Some(0..0), "the others need the deltas that were added up");
    put(&mut shard, part(2, vec![item_of("t1", 0)]));
    let (batch, _) = run(&mut shard, 0);
    assert_eq!((batch.folds.len(), batch.drop_deltas), (35, Some(0..2)));
}

#[test]
fn a_topic_without_deltas_is_not_folded_after_a_take_over() {
    let row =
        |id| TopicRow { id: TopicId(id), name: TopicName::new("ns", format!("t{id}")), counts: ready(5) };
    let (topics, unfolded) = ((1..=3).map(row).collect(), vec![TopicId(2)]);
    let mut shard =
        loaded(Settings::default(), ShardSnapshot { topics, unfolded, ..ShardSnapshot::default() });
    put(&mut shard, part(1, vec![item_of("t1", 0)]));
    let (batch, _) = run(&mut shard, 0);
    assert_eq!((folded(&batch), batch.drop_deltas), (vec![(TopicId(2), ready(5))], Some(0..1)));
    put(&mut shard, part(2, vec![item_of("t1", 0)]));
    assert!(run(&mut shard, 0).0.folds.is_empty());
}

/// A shard with one topic, which has been empty since the test began.
fn shard_with_idle_topic() -> OwnedShard {
    let mut shard = shard_with(|settings| settings.idle_topic = Duration::from_secs(1));
    let receipt = store_leased(&mut shard, 0, items(1))[0];
    ack(&mut shard, receipt);
    run(&mut shard, 0);
    shard
}

#[test]
fn a_topic_that_has_been_empty_for_long_is_dropped() {
    let mut shard = shard_with_idle_topic();
    assert!(build(&mut shard, 999).batch.is_none());
    let (batch, committed) = run(&mut shard, 1_000);
    assert_eq!(batch.drop_topics, [T]);
    assert_eq!(committed.dropped, [NamedTopic { id: T, name: TopicName::new("ns", "t") }]);
    assert_eq!(shard.topics().count(), 0);
    assert_eq!(store(&mut shard, 1_000, items(1)).len(), 1, "it comes back under another number");
    assert!(shard.contents.topics.get(TopicId(2)).is_some());
}

#[test]
fn a_topic_that_is_used_again_is_kept() {
    let mut shard = shard_with_idle_topic();
    put(&mut shard, part(1, items(1)));
    assert!(run(&mut shard, 1_000).0.drop_topics.is_empty(), "in the same batch");
    assert!(build(&mut shard, 5_000).batch.is_none(), "or later");
}

#[test]
fn a_topic_that_was_used_meanwhile_is_kept_as_long_as_any_other() {
    let mut shard = shard_with_idle_topic();
    let receipt = store_leased(&mut shard, 500, items(1))[0];
    ack(&mut shard, receipt);
    run(&mut shard, 500);
    assert!(build(&mut shard, 1_499).batch.is_none());
    assert_eq!(run(&mut shard, 1_500).0.drop_topics, [T]);
}

#[test]
fn a_topic_that_was_empty_at_the_take_over_is_dropped() {
    let mut shard = shard_with_topics(1, 0);
    assert!(build(&mut shard, 3_599_999).batch.is_none());
    assert_eq!(run(&mut shard, 3_600_000).0.drop_topics, [T]);
}

#[test]
fn a_topic_is_dropped_after_a_batch_that_did_not_happen() {
    for disk_full in [false, true] {
        let mut shard = shard_with_idle_topic();
        put(&mut shard, part(1, vec![item_of("u", 0), item_of("u", 0)]));
        assert_eq!(build(&mut shard, 1_000).batch.unwrap().drop_topics, [T]);
        let undone =
            if disk_full { shard.disk_full(at(1_000)) } else { shard.unstorable("too long", &[], at(0)) };
        assert!(undone.is_some());
        shard.upkeep.not_before = at(0); // the pause is over
        assert_eq!(run(&mut shard, 1_000).0.drop_topics, [T]);
    }
}

#[test]
fn an_idle_topic_whose_window_is_being_read_is_dropped_once_the_read_ended() {
    let mut shard = shard_with_topics(1, 1);
    fetch(&mut shard, T, 1);
    shard.contents.topics.count(T, &ready(-1), at(0));
    let hour = 3_600_000;
    assert!(build(&mut shard, hour).batch.is_none());
    assert_eq!(
        shard.contents.topics.next_unused(),
        None,
        "nothing wakes the shard for what can't be dropped yet"
    );
    shard.prefetched(T, 1, Some(Vec::new()));
    assert_eq!(shard.contents.topics.next_unused(), Some((at(0), T)));
    assert_eq!(run(&mut shard, hour).0.drop_topics, [T]);
    assert_eq!(shard.contents.topics.next_unused(), None);
}

#[test]
fn changes_of_topics_that_are_gone_are_deleted_too() {
    let mut shard = shard_with(|settings| settings.idle_topic = Duration::from_millis(1));
    let mut deleted = Vec::new();
    for number in 1..=80 {
        let ms = 10 * u64::from(number);
        put(&mut shard, part(ms, vec![item_of(&format!("t{number}"), 0)]));
        let mut batches = vec![run(&mut shard, ms).0];
        let reserved = reserve(&mut shard, TopicId(number), 1);
        shard.lease(share(1, reserved), 0);
        let (batch, committed) = run(&mut shard, ms);
        batches.push(batch);
        ack(&mut shard, receipts(&committed)[0]);
        batches.push(run(&mut shard, ms).0);
        let (batch, _) = run(&mut shard, ms + 5);
        assert_eq!(batch.drop_topics, [TopicId(number)]);
        batches.push(batch);
        deleted.extend(batches.into_iter().filter_map(|batch| batch.drop_deltas));
    }
    assert_eq!(deleted.len(), 1, "{deleted:?}");
    assert!(deleted[0].start == 0 && (256..=258).contains(&deleted[0].end), "{deleted:?}");
    assert!(shard.contents.topics.dirty.len() <= 1, "topics that are gone are not looked at for ever");
}
