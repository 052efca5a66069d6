//! New items: their numbers, their topics, their calls, and what their keys remember.

use forebay_types::{Reason, Refusal, State};

use super::*;
use crate::{
    api::SettingsTable,
    shard::work::{ItemKey, RememberedAnswers, decode_remembered},
};

/// The topics and priorities of a batch's new items, in the order of their numbers.
fn inserted(batch: &Batch) -> Vec<(u32, i32)> {
    assert!(batch.inserts.is_sorted_by_key(|row| row.key.seq));
    batch.inserts.iter().map(|row| (row.topic.0, row.key.priority)).collect()
}

fn refusals(shard: &OwnedShard) -> Vec<Option<Reason>> {
    let planned = &shard.commit.in_flight.as_ref().unwrap().planned;
    let [PlannedAction::Enqueue { results, .. }] = &planned[..] else { panic!("{planned:?}") };
    results.iter().map(|result| result.as_ref().err().map(|refusal| refusal.reason)).collect()
}

#[test]
fn a_calls_items_are_numbered_in_delivery_order() {
    let mut shard = shard();
    put(&mut shard, part(1, vec![item_of("b", 0), item_of("a", 5), item_of("a", 1)]));
    let (batch, committed) = run(&mut shard, 0);
    assert_eq!(inserted(&batch), [(1, 1), (1, 5), (2, 0)]);
    let seqs: Vec<u64> = keys(&committed).iter().map(|key| key.seq.0).collect();
    assert_eq!(seqs, [3, 2, 1], "answers are in the order of the call");
}

#[test]
fn items_of_one_topic_and_priority_keep_the_order_of_their_call() {
    let mut shard = shard();
    let keys = store(&mut shard, 0, items(5));
    assert!(keys.is_sorted() && keys.is_sorted_by_key(|key| key.seq));
}

#[test]
fn what_is_committed_enters_windows_and_counts() {
    let mut shard = shard();
    let keys = store(&mut shard, 0, vec![item(5), item(1), item_due(50)]);
    assert_eq!((counts(&shard, T), window_len(&shard, T)), ((2, 1, 0), 2));
    assert_eq!(head(&shard).unwrap().0, keys[1]);
    let mut changed = Vec::new();
    shard.drain_changed(|name| changed.push(name.clone()));
    assert_eq!(changed, [TopicName::new("ns", "t")]);
}

#[test]
fn nothing_is_in_a_window_before_its_commit() {
    let mut shard = shard();
    store(&mut shard, 0, items(1));
    put(&mut shard, part(1, items(1)));
    build(&mut shard, 0);
    assert_eq!((counts(&shard, T).0, window_len(&shard, T)), (1, 1));
}

#[test]
fn a_due_time_is_the_rank_and_one_that_has_passed_is_ready() {
    let mut shard = shard();
    put(&mut shard, part(1, vec![item_due(50), item_due(5)]));
    let (batch, _) = run(&mut shard, 10);
    let rows = batch.inserts.iter().map(|row| (row.state, row.key.rank));
    let ranks = [time(50).as_micros(), time(5).as_micros()];
    assert_eq!(rows.collect::<Vec<_>>(), [(State::Scheduled, ranks[0]), (State::Ready, ranks[1])]);
}

#[test]
fn a_topic_is_created_with_its_first_item_and_once_a_batch() {
    let mut shard = shard();
    put(&mut shard, part(1, items(1)));
    put(&mut shard, part(2, items(1)));
    let (batch, committed) = run(&mut shard, 0);
    assert_eq!((batch.new_topics.len(), committed.new_topics.len()), (1, 1));
    put(&mut shard, part(3, vec![item(0), item_of("u", 0)]));
    let (batch, _) = run(&mut shard, 0);
    assert_eq!((batch.new_topics.len(), batch.new_topics[0].id), (1, TopicId(2)));
}

#[test]
fn topics_of_one_name_in_two_namespaces_are_two() {
    let mut shard = shard();
    put(&mut shard, part(1, items(1)));
    put(&mut shard, ShardEnqueue { namespace: "other".into(), ..part(2, items(1)) });
    assert_eq!(run(&mut shard, 0).0.new_topics.len(), 2);
}

#[test]
fn a_namespace_has_no_more_topics_than_its_limit() {
    let mut shard = shard_with(|settings| settings.limits.topics_per_namespace = 2);
    let new = vec![item_of("a", 0), item_of("b", 0), item_of("a", 1)];
    put(&mut shard, part(1, new));
    let one_elsewhere = |namespace: &str| usize::from(namespace == "ns");
    let batch = build_with(&mut shard, 0, &one_elsewhere, HashMap::new()).batch.unwrap();
    assert_eq!(refusals(&shard), [None, Some(Reason::TooManyTopics), None]);
    assert_eq!((batch.inserts.len(), batch.new_topics.len()), (2, 1));
    commit(&mut shard, 0);
    assert_eq!(shard.intake.budget.bytes(), 0, "what is refused is released too");
    put(&mut shard, part(2, vec![item_of("a", 0)]));
    build_with(&mut shard, 0, &|_| 2, HashMap::new());
    assert_eq!(refusals(&shard), [None], "a topic that is there has room");
}

#[test]
fn a_node_has_no_more_topics_than_its_bytes_allow() {
    let mut shard = shard_with(|settings| settings.topic_bytes = 5 << 10);
    put(&mut shard, part(1, vec![item_of("a", 0), item_of("b", 0), item_of("a", 1)]));
    let rng = &mut StdRng::seed_from_u64(1);
    let waiting = HashMap::new();
    shard.build(BuildContext {
        moment: moment(0),
        rng,
        topics_of: &|_| 4,
        topics_left: 1,
        waiting,
        set: &SettingsTable::default(),
    });
    assert_eq!(refusals(&shard), [None, Some(Reason::TooManyTopics), None]);
    let PlannedAction::Enqueue { results, .. } = &shard.commit.in_flight.as_ref().unwrap().planned[0] else {
        panic!()
    };
    let message = &results[1].as_ref().unwrap_err().message;
    assert_eq!(message, "the topics of this node take 5120 bytes, which is its limit");
}

#[test]
fn a_call_with_a_request_id_is_never_cut() {
    let mut shard = shard_with(|settings| settings.batch_rows = 4);
    put(&mut shard, part(1, items(3)));
    put(&mut shard, ShardEnqueue { request: request(7), ..part(2, items(6)) });
    let built = build(&mut shard, 0);
    assert_eq!((built.rows, built.atomic), (3, false), "it does not fit behind another call");
    commit(&mut shard, 0);
    let built = build(&mut shard, 0);
    assert_eq!((built.rows, built.atomic), (6, true), "the store must not cut it either");
}

#[test]
fn a_call_with_a_request_id_goes_along_with_settlements_however_long_it_is() {
    let mut shard = shard_with(|settings| settings.batch_rows = 4);
    let receipt = store_leased(&mut shard, 0, items(1))[0];
    ack(&mut shard, receipt);
    put(&mut shard, ShardEnqueue { request: request(7), ..part(2, items(6)) });
    let built = build(&mut shard, 0);
    assert_eq!((built.rows, built.atomic), (7, false));
}

#[test]
fn a_call_with_a_request_id_goes_alone_while_a_bad_row_is_searched() {
    let mut shard = shard();
    let receipt = store_leased(&mut shard, 0, items(1))[0];
    shard.commit.rows_max = Some(2);
    ack(&mut shard, receipt);
    put(&mut shard, ShardEnqueue { request: request(7), ..part(2, items(6)) });
    assert_eq!(run(&mut shard, 0).0.inserts.len(), 0);
    let built = build(&mut shard, 0);
    assert_eq!((built.rows, built.atomic), (6, true));
}

#[test]
fn a_long_call_leaves_room_for_others_and_the_next_one_waits_until_it_is_paid() {
    let mut shard = shard_with(|settings| settings.batch_rows = 60);
    let receipts = store_leased(&mut shard, 0, items(30));
    shard.settings = Arc::new(Settings { batch_rows: 40, ..Settings::default() });
    receipts.iter().for_each(|receipt| ack(&mut shard, *receipt));
    for call in 1..=2 {
        put(&mut shard, ShardEnqueue { request: request(call), ..part(u64::from(call), items(40)) });
    }
    put(&mut shard, ShardEnqueue { namespace: "other".into(), ..part(3, items(1)) });
    let next = |shard: &mut OwnedShard| {
        let (batch, committed) = run(shard, 0);
        (batch.inserts.len(), effects(&committed).len())
    };
    assert_eq!(next(&mut shard), (41, 4), "the long call, a single item beside it, and some acks");
    assert_eq!(next(&mut shard), (0, 26), "the long call has had the enqueues' share");
    assert_eq!(next(&mut shard), (40, 0), "nobody else wants the rows");
}

#[test]
fn calls_of_two_namespaces_take_turns() {
    let mut shard = shard_with(|settings| settings.batch_rows = 2);
    for call in 1..=3 {
        put(&mut shard, part(call, items(1)));
    }
    put(&mut shard, ShardEnqueue { namespace: "other".into(), ..part(4, vec![item_of("o", 0)]) });
    let (batch, _) = run(&mut shard, 0);
    let names: Vec<_> = batch.new_topics.iter().map(|row| &*row.name.namespace).collect();
    assert_eq!(names, ["ns", "other"]);
}

#[test]
fn keys_remember_their_answers_in_the_generation_that_takes_keys() {
    let second = u64::try_from(time(0).as_micros() / 1_000_000).unwrap();
    let generations = vec![second - 600, second, second + 600];
    let mut shard = loaded(Settings::default(), ShardSnapshot { generations, ..ShardSnapshot::default() });
    let refused = Some(Refusal::new(Reason::InvalidField, "no"));
    put(&mut shard, part(1, vec![AdmittedItem { dedupe: key(1), ..item(0) }, item(0)]));
    let whole = vec![item(0), AdmittedItem { refused, ..item(0) }];
    put(&mut shard, ShardEnqueue { request: request(2), ..part(2, whole) });
    let (batch, _) = run(&mut shard, 0);
    let remembered: Vec<_> = batch.dedupes.iter().map(|entry| (entry.generation, entry.hash)).collect();
    let hashes = [[1; 16], [0x81; 16], [2; 16]];
    assert_eq!(remembered, hashes.map(|hash| (second, hash)), "the release before looks the second one up");
    let of_key = RememberedAnswers { answers: vec![Ok(Seq(1))], of: Some([1; 16]) };
    let answers = vec![Ok(Seq(3)), Err(Refusal::new(Reason::InvalidField, "no"))];
    let of_request = RememberedAnswers { answers, of: Some([2; 16]) };
    let expected = [of_key.clone(), of_key, of_request];
    let read = batch.dedupes.iter().map(|entry| decode_remembered(&entry.answer).unwrap());
    assert_eq!(read.collect::<Vec<_>>(), expected);
}

#[test]
fn what_the_release_before_stored_of_another_topic_is_not_overwritten() {
    let second = u64::try_from(time(0).as_micros() / 1_000_000).unwrap();
    let generations = vec![second];
    let mut shard = loaded(Settings::default(), ShardSnapshot { generations, ..ShardSnapshot::default() });
    let dedupe = key(1).map(|key| ItemKey { is_shared_taken: true, ..key });
    put(&mut shard, part(1, vec![AdmittedItem { dedupe, ..item(0) }]));
    let (batch, _) = run(&mut shard, 0);
    assert_eq!(batch.dedupes.iter().map(|entry| entry.hash).collect::<Vec<_>>(), [[1; 16]]);
}

#[test]
fn ranks_of_a_shard_that_is_far_ahead_begin_above_its_floor() {
    let mut shard = shard();
    let floor = time(60_000).as_micros();
    shard.set_rank_floor(floor);
    let ranks: Vec<i64> = store(&mut shard, 0, items(2)).iter().map(|key| key.rank).collect();
    assert_eq!(ranks, [floor + 1, floor + 2]);
}
