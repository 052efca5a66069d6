//! Rows that the database refuses are isolated: each stands alone, and is refused or left alone.

use forebay_store::DueRow;

use super::*;

/// Builds and fails batches as long as they have what the database refuses. Returns how many it took until a
/// batch was committed that had none of it, and what was refused by then.
fn isolate(shard: &mut OwnedShard, ms: u64, is_bad: impl Fn(&Batch) -> bool) -> (usize, Vec<PlannedAction>) {
    let (mut tries, mut refused) = (0, Vec::new());
    while let Some(batch) = build(shard, ms).batch {
        tries += 1;
        assert!(tries < 50, "it never stands alone");
        if is_bad(&batch) {
            refused.extend(shard.unstorable("bad", &[], at(ms)).unwrap().refused);
        } else {
            commit(shard, ms);
        }
    }
    (tries, refused)
}

#[test]
fn a_bad_settlement_stands_alone_beside_items_that_are_inserted_again() {
    let mut shard = shard();
    (0..5).for_each(|_| restore_one(&mut shard));
    let receipts = store_leased(&mut shard, 0, items(20));
    let bad = receipts[3].item.seq;
    (0..3).for_each(|_| restore_one(&mut shard));
    receipts.iter().for_each(|receipt| nack(&mut shard, *receipt, NackAction::DeadLetter));
    let (tries, refused) =
        isolate(&mut shard, 0, |batch| batch.dead_letters.iter().any(|letter| letter.seq == bad));
    let [PlannedAction::Settle(settle)] = &refused[..] else { panic!("{refused:?}") };
    assert_eq!((settle.lease.seq, counts(&shard, T).2), (bad, receipts.len() as i64 - 1));
    assert!(tries < 30, "{tries} tries");
}

#[test]
fn an_item_that_can_not_be_inserted_again_is_left_out() {
    let mut shard = shard();
    let key = store(&mut shard, 0, vec![item_once()])[0];
    let taken = reserve(&mut shard, T, 1);
    shard.lease(share(1, taken.clone()), 0);
    run(&mut shard, 0);
    shard.restore(taken[0].clone());
    put(&mut shard, part(1, items(10)));
    let (_, refused) = isolate(&mut shard, 0, |batch| batch.inserts.iter().any(|row| row.key == key));
    assert!(matches!(refused[..], [PlannedAction::Restore(_)]), "{refused:?}");
    assert_eq!(counts(&shard, T).0, 10);
}

#[test]
fn a_lease_whose_end_can_not_be_stored_lasts_longer() {
    let mut shard = shard();
    let bad = store_leased(&mut shard, 0, items(5))[2].item.seq;
    let is_bad = |batch: &Batch| batch.requeues.iter().any(|requeue| requeue.seq == bad);
    isolate(&mut shard, 2_000, is_bad);
    assert_eq!((shard.contents.leases.len(), window_len(&shard, T)), (1, 4));
    assert_eq!(shard.contents.leases.next_deadline(), Some(time(601_000)));
    assert!(build(&mut shard, 600_999).batch.is_none());
    assert_eq!(run(&mut shard, 601_000).0.requeues[0].seq, bad, "then it is tried again");
}

#[test]
fn a_row_of_a_sweep_that_can_not_be_stored_is_left_alone() {
    let mut shard = shard();
    let keys = store(&mut shard, 0, (0..6).map(|n| item_due(50 + n)).collect());
    let bad = keys[2].seq;
    let row = |key: Key| due_row(Timestamp::from_micros(key.rank), key);
    let is_bad = |batch: &Batch| batch.promotes.iter().any(|promote| promote.seq == bad);
    let mut left: Vec<Key> = keys.clone();
    for round in 0..40 {
        let ms = 60 + 200 * round;
        let Some(scan) = shard.begin_scan(round, moment(ms)) else { break };
        if scan.sweep != Sweep::Due {
            shard.scanned(scan.sweep, round, Vec::new(), None);
            continue;
        }
        let found: Vec<DueRow> = left.iter().map(|key| row(*key)).filter(|row| row.at >= scan.from).collect();
        shard.scanned(Sweep::Due, round, found, None);
        while let Some(batch) = build(&mut shard, ms).batch {
            if is_bad(&batch) {
                shard.unstorable("bad", &[], at(ms)).unwrap();
            } else {
                left.retain(|key| batch.promotes.iter().all(|promote| promote.seq != key.seq));
                commit(&mut shard, ms);
            }
        }
    }
    assert_eq!(left, [keys[2]], "the others are ready");
    assert_eq!(
        shard.upkeep.sweeps.due.checkpoint,
        Timestamp::from_micros(keys[2].rank),
        "it does not pass the row"
    );
    assert!(shard.begin_scan(99, moment(60_000)).is_none(), "and the sweep rests");
}

#[test]
fn upkeep_that_can_not_be_stored_holds_nobody_up() {
    let mut shard = shard_with(|settings| settings.idle_topic = Duration::from_millis(100));
    let receipt = store_leased(&mut shard, 0, items(1))[0];
    ack(&mut shard, receipt);
    run(&mut shard, 0);
    put(&mut shard, part(1, vec![item_of("u", 0)]));
    let is_bad = |batch: &Batch| !batch.drop_topics.is_empty();
    let (tries, refused) = isolate(&mut shard, 200, is_bad);
    assert_eq!((tries, refused.len(), window_len(&shard, TopicId(2))), (2, 0, 1));
    assert_eq!(shard.next_batch_rows(moment(60_199)), None, "it is left out for a minute");
    assert_eq!(isolate(&mut shard, 60_200, is_bad).0, 1, "it is tried alone");
    assert_eq!(run(&mut shard, 120_200).0.drop_topics, [T]);
}
