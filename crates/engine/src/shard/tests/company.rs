//! Batches in which other tenants wait are cut by what their rows take. Those of one tenant alone are not.

use super::*;

/// As many as a batch has rows.
const ROWS: usize = 1_000;
/// The time that a batch takes beside its rows, in microseconds.
const OVERHEAD: u64 = 2_000;

/// A shard whose items go back and forth, until it knows that a nack takes so many microseconds. All are
/// leased in the end.
fn shard_of_nacks(micros: u64) -> (OwnedShard, Vec<Receipt>) {
    let mut shard = shard();
    shard.set_index_budget(16 << 20);
    put(&mut shard, part(1, items(ROWS)));
    let took = commit_after(&mut shard, OVERHEAD);
    assert_eq!(took.inserts.len(), ROWS);
    let mut receipts = lease(&mut shard, 0, ROWS);
    for _ in 0..8 {
        release(&mut shard, &receipts);
        let batch = commit_after(&mut shard, OVERHEAD + micros * ROWS as u64);
        assert_eq!(batch.requeues.len(), ROWS, "a tenant that is alone has the whole batch");
        receipts = lease_again(&mut shard);
    }
    (shard, receipts)
}

/// Leases what was returned. Its bodies are read before.
fn lease_again(shard: &mut OwnedShard) -> Vec<Receipt> {
    let part = share(1, reserve(shard, T, ROWS));
    let bodies = shard.lease(part, 1).into_iter().map(|seq| (seq, Body::default())).collect();
    shard.bodies_read(1, Some(bodies), at(0));
    receipts(&run(shard, 0).1)
}

/// Builds a batch, which takes so many microseconds.
fn commit_after(shard: &mut OwnedShard, micros: u64) -> Batch {
    let batch = build(shard, 0).batch.unwrap();
    shard.committed(batch.number, at(0), Duration::from_micros(micros)).unwrap();
    batch
}

/// Builds a batch at a time. Its nacks take 200 µs each. Returns how many it has.
fn nacks_at(shard: &mut OwnedShard, ms: u64) -> usize {
    let batch = build(shard, ms).batch.unwrap();
    let rows = batch.requeues.len();
    shard.committed(batch.number, at(ms), Duration::from_micros(OVERHEAD + 200 * rows as u64)).unwrap();
    rows
}

/// All deliveries are to be ended, and their items returned.
fn release(shard: &mut OwnedShard, receipts: &[Receipt]) {
    receipts.iter().for_each(|receipt| nack(shard, *receipt, NackAction::Release(Duration::ZERO)));
}

/// Another tenant enqueues items, each in a topic of its own.
fn another_comes(shard: &mut OwnedShard, count: usize) {
    let items = (0..count).map(|number| item_of(&format!("other {number}"), 0)).collect();
    put(shard, ShardEnqueue { namespace: "other".into(), ..part(9, items) });
}

#[test]
fn a_batch_beside_another_tenant_is_cut_by_what_its_rows_took() {
    let (mut shard, receipts) = shard_of_nacks(200);
    release(&mut shard, &receipts);
    another_comes(&mut shard, 1);
    let batch = build(&mut shard, 0).batch.unwrap();
    assert!((5..=40).contains(&batch.requeues.len()), "{} nacks of 200 µs", batch.requeues.len());
    assert_eq!(batch.inserts.len(), 1, "the other tenant is served");
}

#[test]
fn the_other_tenant_counts_as_there_for_a_while() {
    let (mut shard, receipts) = shard_of_nacks(200);
    another_comes(&mut shard, 1);
    run(&mut shard, 0);
    release(&mut shard, &receipts);
    let shared = [1, 10_000].map(|ms| nacks_at(&mut shard, ms));
    assert!(shared.iter().all(|rows| (5..=40).contains(rows)), "{shared:?}");
    let (alone, _) = run(&mut shard, 10_001);
    let rest = ROWS - shared[0] - shared[1];
    assert_eq!(alone.requeues.len(), rest, "alone again, it has the whole batch");
}

#[test]
fn cheap_rows_are_more_beside_another_tenant() {
    let (mut shard, receipts) = shard_of_nacks(10);
    another_comes(&mut shard, 1);
    run(&mut shard, 0);
    release(&mut shard, &receipts);
    let batch = build(&mut shard, 0).batch.unwrap();
    assert!((150..=ROWS).contains(&batch.requeues.len()), "{} nacks of 10 µs", batch.requeues.len());
}

#[test]
fn new_topics_are_dear_and_a_call_is_cut_where_they_are() {
    let mut shard = shard();
    for round in 0..8 {
        let items = (0..ROWS).map(|number| item_of(&format!("{round} {number}"), 0)).collect();
        put(&mut shard, part(round, items));
        let batch = commit_after(&mut shard, OVERHEAD + 200 * ROWS as u64);
        assert_eq!(batch.new_topics.len(), ROWS);
    }
    put(&mut shard, part(20, items(1)));
    another_comes(&mut shard, ROWS);
    let batch = build(&mut shard, 0).batch.unwrap();
    assert!((5..=50).contains(&batch.new_topics.len()), "{}", batch.new_topics.len());
}

#[test]
fn a_bad_row_is_searched_by_rows_alone() {
    let (mut shard, receipts) = shard_of_nacks(200);
    release(&mut shard, &receipts);
    another_comes(&mut shard, 1);
    let rows = build(&mut shard, 0).rows;
    shard.unstorable("bad", &[], at(0)).unwrap();
    let half = build(&mut shard, 0).rows;
    assert_eq!(half, rows / 2);
}

#[test]
fn a_page_of_a_sweep_is_as_short_as_half_a_batch() {
    let (mut shard, _) = shard_of_nacks(200);
    let most = |shard: &OwnedShard| shard.page_rows_max(Sweep::Due, at(0));
    assert_eq!(most(&shard), Settings::default().sweep_rows);
    another_comes(&mut shard, 1);
    run(&mut shard, 0);
    assert!((10..=60).contains(&most(&shard)), "{}", most(&shard));
}

#[test]
fn folds_of_topics_that_one_made_alone_do_not_hold_up_others() {
    let mut shard = shard();
    for round in 0..100 {
        let items = (0..1_000).map(|number| item_of(&format!("{round} {number}"), 0)).collect();
        put(&mut shard, part(round, items));
        run(&mut shard, 0);
    }
    let mut folds = |namespace: &str, ms: u64| {
        put(&mut shard, ShardEnqueue { namespace: namespace.into(), ..part(100, items(1)) });
        run(&mut shard, ms).0.folds.len()
    };
    assert!((0..1_200).any(|_| folds("ns", 0) == 512), "alone, it makes up for them");
    folds("other", 1);
    let shared: Vec<_> = (0..20).map(|_| folds("ns", 1)).collect();
    assert!(shared.iter().all(|folds| (60..=66).contains(folds)), "{shared:?}");
}
