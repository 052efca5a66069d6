//! Windows that are filled from the store, and the memory that they may take.

use super::*;

fn rows(seqs: std::ops::RangeInclusive<u64>) -> Option<Vec<ReadyRow>> {
    Some(seqs.map(ready_row).collect())
}

#[test]
fn a_window_is_read_from_its_beginning_after_a_take_over() {
    let mut shard = shard_with_topics(1, 3);
    assert!(!shard.is_fetched(T) && head(&shard).is_none());
    let request = fetch(&mut shard, T, 1);
    assert_eq!((request.topic, request.after, request.limit), (T, Key::MIN, 128));
    assert!(matches!(shard.fetch_next(T, 2, 1), Fetch::UnderWay));
    assert_eq!(shard.prefetched(T, 1, rows(1..=3)), [TopicName::new("ns", "t1")]);
    assert!(shard.is_fetched(T) && window_len(&shard, T) == 3);
    assert!(matches!(shard.fetch_next(T, 3, 1), Fetch::Complete));
}

#[test]
fn nothing_is_read_where_the_counts_show_that_nothing_is_there() {
    let mut shard = shard_with_topics(1, 3);
    fetch(&mut shard, T, 1);
    shard.prefetched(T, 1, rows(1..=3));
    shard.contents.topics.with_window(T, |window| window.evict(2));
    assert!(!shard.is_fetched(T));
    reserve(&mut shard, T, 2);
    shard.contents.topics.count(T, &TopicCounts { ready: -1, ..TopicCounts::default() }, at(0));
    assert!(shard.is_fetched(T), "all that is ready is reserved");
    assert!(matches!(shard.fetch_next(T, 2, 1), Fetch::Complete));
}

#[test]
fn a_failed_read_is_begun_again() {
    let mut shard = shard_with_topics(1, 3);
    fetch(&mut shard, T, 1);
    shard.prefetched(T, 1, None);
    assert!(!shard.is_fetching(T));
    assert_eq!(fetch(&mut shard, T, 2).after, Key::MIN);
}

#[test]
fn a_result_waits_for_the_batch_in_flight() {
    let mut shard = shard_with_topics(1, 3);
    fetch(&mut shard, T, 1);
    put(&mut shard, part(1, vec![item_of("t1", -1)]));
    build(&mut shard, 0);
    assert!(shard.prefetched(T, 1, rows(1..=3)).is_empty());
    assert_eq!(window_len(&shard, T), 0);
    let committed = commit(&mut shard, 0);
    assert_eq!(committed.fetched, [TopicName::new("ns", "t1")]);
    assert_eq!((window_len(&shard, T), head(&shard).unwrap().0.priority), (4, -1));
}

#[test]
fn a_read_that_may_have_seen_an_undone_batch_is_not_used() {
    let mut shard = shard_with_topics(1, 3);
    fetch(&mut shard, T, 1);
    put(&mut shard, part(1, vec![item_of("t1", 0)]));
    build(&mut shard, 0);
    shard.prefetched(T, 1, rows(1..=4));
    let undone = shard.unstorable("too long", &[], at(0)).unwrap();
    assert_eq!(undone.fetched, [TopicName::new("ns", "t1")], "its polls look again");
    assert_eq!((window_len(&shard, T), shard.contents.prefetches.under_way()), (0, 0));
    assert_eq!(fetch(&mut shard, T, 2).after, Key::MIN);
}

#[test]
fn a_read_that_ends_after_the_undo_is_not_used_either() {
    let mut shard = shard_with_topics(1, 3);
    fetch(&mut shard, T, 1);
    put(&mut shard, part(1, vec![item_of("t1", 0)]));
    build(&mut shard, 0);
    shard.unstorable("too long", &[], at(0)).unwrap();
    shard.prefetched(T, 1, rows(1..=4));
    assert_eq!(window_len(&shard, T), 0);
}

#[test]
fn what_is_leased_or_reserved_does_not_come_back_with_a_read() {
    let mut shard = shard_with_topics(1, 6);
    shard.contents.topics.get_mut(T).unwrap().fill = 1;
    let request = shard.fetch_head(T, 1).unwrap();
    assert_eq!(request.limit, 1);
    shard.prefetched(T, 1, rows(1..=1));
    fetch(&mut shard, T, 2);
    reserve(&mut shard, T, 1);
    shard.prefetched(T, 2, rows(1..=3));
    assert_eq!((head(&shard).unwrap().0.seq, window_len(&shard, T)), (Seq(2), 2));
}

/// A shard with an item of priority 5 whose body is being read by 9, and a window that holds one of
/// priority 1 and does not reach that far.
fn reserved_beyond_the_window(far: AdmittedItem) -> (OwnedShard, Key) {
    let mut shard = shard();
    let key = store(&mut shard, 0, vec![AdmittedItem { priority: 5, ..far }])[0];
    shard.contents.topics.with_window(T, |window| window.drop_bodies());
    let taken = reserve(&mut shard, T, 1);
    assert_eq!(shard.lease(share(1, taken), 9), [key.seq]);
    store(&mut shard, 1, vec![item(1), item(2)]);
    shard.contents.topics.with_window(T, |window| window.evict(1));
    (shard, key)
}

fn stored_row(key: Key) -> ReadyRow {
    ReadyRow { key, ..ready_row(1) }
}

#[test]
fn an_item_that_was_reserved_before_a_read_does_not_come_back_with_it() {
    let (mut shard, key) = reserved_beyond_the_window(item(0));
    fetch(&mut shard, T, 1);
    shard.prefetched(T, 1, Some(vec![stored_row(key)]));
    assert_eq!(window_len(&shard, T), 1);
}

#[test]
fn an_at_most_once_item_that_left_during_a_read_does_not_come_back_with_it() {
    let (mut shard, key) = reserved_beyond_the_window(item_once());
    fetch(&mut shard, T, 1);
    shard.bodies_read(9, Some(vec![(key.seq, Body::default())]), at(0));
    run(&mut shard, 1);
    shard.prefetched(T, 1, Some(vec![stored_row(key)]));
    assert_eq!(window_len(&shard, T), 1);
}

#[test]
fn a_window_is_read_on_before_it_runs_empty() {
    let mut shard = shard_with_topics(1, 500);
    fetch(&mut shard, T, 1);
    shard.prefetched(T, 1, rows(1..=128));
    reserve(&mut shard, T, 64);
    assert!(shard.top_up(T, 2).is_none());
    reserve(&mut shard, T, 1);
    let request = shard.top_up(T, 2).unwrap();
    assert_eq!((request.after.seq, request.limit), (Seq(128), 128));
    assert!(shard.top_up(T, 3).is_none(), "one read at a time");
}

#[test]
fn a_read_brings_a_quarter_of_what_is_free_and_all_of_them_a_quarter_of_the_budget() {
    let mut shard = shard_with_topics(40, 500);
    shard.contents.index_budget = 16 << 20;
    let bytes = |request: &PrefetchRequest| request.limit * ITEM_OVERHEAD_BYTES + request.max_bytes;
    let first = fetch(&mut shard, T, 1);
    assert_eq!((first.limit, bytes(&first)), (128, 4 << 20));
    let second = fetch(&mut shard, TopicId(2), 2);
    assert_eq!((second.limit, second.max_bytes), (16, 0), "all that reads may bring is under way");
    assert_eq!(shard.held_bytes(), (4 << 20) + 16 * ITEM_OVERHEAD_BYTES);
    shard.prefetched(T, 1, rows(1..=128));
    let third = fetch(&mut shard, T, 3);
    assert!(third.max_bytes > 3 << 20, "a read that ended gives its room back");
    shard.prefetched(T, 3, None);
    shard.prefetched(TopicId(2), 2, None);
    assert_eq!(shard.held_bytes(), 128 * ITEM_OVERHEAD_BYTES);
}

#[test]
fn a_read_of_few_items_takes_no_more_room_than_they_can_need() {
    let mut shard = shard_with_topics(2, 1);
    shard.contents.index_budget = 64 << 20;
    let request = fetch(&mut shard, T, 1);
    assert_eq!(request.max_bytes, shard.settings.limits.body_bytes());
    assert_eq!(shard.held_bytes(), request.max_bytes + ITEM_OVERHEAD_BYTES);
    let mut shard = shard_with_topics(1, 5_000);
    shard.contents.index_budget = 1 << 30;
    assert_eq!(fetch(&mut shard, T, 1).max_bytes, 8 << 20, "one read is never larger");
}

#[test]
fn windows_make_room_for_what_is_being_read() {
    let mut shard = shard_with_topics(1, 500);
    shard.contents.index_budget = 64 * ITEM_OVERHEAD_BYTES;
    fetch(&mut shard, T, 1);
    assert_eq!(shard.held_bytes(), 16 * ITEM_OVERHEAD_BYTES);
    put(&mut shard, part(1, (0..60).map(|_| item_of("u", 0)).collect()));
    run(&mut shard, 0);
    assert!(shard.held_bytes() <= 64 * ITEM_OVERHEAD_BYTES, "{}", shard.held_bytes());
}

#[test]
fn a_read_asks_for_what_fits_into_the_memory() {
    let mut shard = shard_with_topics(2, 5_000);
    shard.contents.index_budget = 40 * 4 * ITEM_OVERHEAD_BYTES;
    assert_eq!(fetch(&mut shard, T, 1).limit, 40);
    shard.contents.index_budget = 0;
    assert_eq!(fetch(&mut shard, TopicId(2), 2).limit, 16, "some are read however little there is");
}

#[test]
fn windows_are_cut_when_they_hold_more_than_they_may() {
    let mut shard = shard();
    shard.contents.index_budget = 16 * ITEM_OVERHEAD_BYTES;
    let keys = store(&mut shard, 0, items(10));
    shard.contents.topics.get_mut(T).unwrap().fill = 2_000;
    store(&mut shard, 1, items(10));
    assert!(shard.status().index_bytes <= 14 * ITEM_OVERHEAD_BYTES, "with an eighth to spare");
    assert_eq!((head(&shard).unwrap().0, window_len(&shard, T)), (keys[0], 10));
    assert!(!shard.is_fetched(T) && counts(&shard, T).0 == 20);
    assert_eq!(shard.contents.topics.get(T).unwrap().fill, 1_000, "less is read ahead");
    assert!(fetch(&mut shard, T, 1).after >= keys[9]);
}

#[test]
fn nothing_is_cut_within_the_budget() {
    let mut shard = shard();
    shard.contents.index_budget = 20 * ITEM_OVERHEAD_BYTES;
    store(&mut shard, 0, items(20));
    assert_eq!(window_len(&shard, T), 20);
}

#[test]
fn the_greatest_window_is_cut_first() {
    let mut shard = shard();
    shard.contents.index_budget = 16 * ITEM_OVERHEAD_BYTES;
    store(&mut shard, 0, (0..20).map(|n| item_of(if n < 18 { "t" } else { "u" }, 0)).collect());
    assert_eq!((window_len(&shard, T), window_len(&shard, TopicId(2))), (9, 2));
}

#[test]
fn an_eighth_of_the_budget_is_spared() {
    let mut shard = shard();
    shard.contents.index_budget = 16 * ITEM_OVERHEAD_BYTES;
    store(&mut shard, 0, (0..18).map(|n| item_of(&format!("{}", n / 2), 0)).collect());
    assert_eq!(shard.status().index_bytes, 14 * ITEM_OVERHEAD_BYTES);
}

#[test]
fn a_head_stays_without_its_body() {
    let mut shard = shard();
    shard.contents.index_budget = 4 * ITEM_OVERHEAD_BYTES;
    let items = (0..4).map(|n| AdmittedItem { topic: format!("{n}").into(), ..item_of_bytes(1_000) });
    store(&mut shard, 0, items.collect());
    let lens: Vec<usize> = (1..=4).map(|id| window_len(&shard, TopicId(id))).collect();
    assert_eq!((lens, shard.status().index_bytes), (vec![1; 4], 4 * ITEM_OVERHEAD_BYTES));
}

#[test]
fn the_heads_of_a_take_over_are_read_a_few_at_a_time() {
    let mut shard = shard_with_topics(40, 1);
    let first: Vec<u32> = (0..40).map_while(|read| shard.next_head(read)).map(|read| read.topic.0).collect();
    assert_eq!(first, (1..=16).collect::<Vec<_>>());
    assert!(shard.fetch_head(TopicId(40), 99).is_none(), "nor is any other in the background");
    shard.prefetched(T, 0, rows(1..=1));
    assert_eq!(shard.next_head(50).unwrap().topic, TopicId(17));
    assert!(shard.next_head(51).is_none());
}

#[test]
fn a_head_that_is_known_is_not_read_in_the_background() {
    let mut shard = shard_with_topics(2, 1);
    fetch(&mut shard, T, 1);
    shard.prefetched(T, 1, rows(1..=1));
    assert_eq!(shard.next_head(2).unwrap().topic, TopicId(2));
    assert!(shard.next_head(3).is_none());
}

#[test]
fn a_demand_waits_since_the_first_that_asked() {
    let mut shard = shard_with_topics(1, 1);
    fetch(&mut shard, T, 1);
    assert_eq!(shard.outstanding_until(T, at(5)), at(55));
    assert_eq!(shard.outstanding_until(T, at(9)), at(55));
    shard.prefetched(T, 1, None);
    assert_eq!(shard.outstanding_until(T, at(20)), at(70));
}
