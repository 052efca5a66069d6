//! Reads of the sweeps.

use forebay_store::{Checkpoint, DueItem, ItemRow, PutOff, Sweep};
use forebay_types::{ItemAttributes, Seq, Timestamp, Waits};

use super::{
    Subject,
    bench::{Bench, TOPIC, as_ready, at, due_key, expiring, item, scheduled},
};

/// In order of time, then seq, with both bounds included, and no more than the limit.
pub async fn what_is_due_is_found(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let items = [scheduled(1, at(30)), scheduled(2, at(10)), scheduled(3, at(20)), scheduled(4, at(20))];
    bench.owner.commit(|batch| batch.inserts.extend(items.clone())).await;
    let seqs = async |from: Timestamp, to: Timestamp, limit| {
        let rows = bench.owner.reader.due(Sweep::Due, from, to, limit).await.expect("reads");
        rows.iter().map(|row| (row.at, row.seq.0)).collect::<Vec<_>>()
    };
    let all = [(at(10), 2), (at(20), 3), (at(20), 4), (at(30), 1)];
    assert_eq!(seqs(Timestamp::MIN, Timestamp::MAX, 10).await, all);
    assert_eq!(seqs(at(10), at(20), 10).await, all[..3]);
    assert_eq!(seqs(at(11), at(30), 2).await, all[1..3]);
    assert_eq!(seqs(at(21), at(29), 10).await, []);
    let row = bench.owner.reader.due(Sweep::Due, at(30), at(30), 1).await.expect("reads").remove(0);
    let mut expected = as_ready(&items[0]);
    expected.body = None;
    assert_eq!((row.topic, row.item), (TOPIC, DueItem::Scheduled(expected)));
}

/// The item enters the delivery order with its rank, and its `schedule` row is deleted.
pub async fn a_promotion_makes_ready(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let items: Vec<ItemRow> = (1..=300).map(|seq| scheduled(seq, at(1_000 - seq as i64))).collect();
    bench.owner.commit(|batch| batch.inserts.clone_from(&items)).await;
    let promoted =
        items[..299].iter().map(|item| due_key(Timestamp::from_micros(item.key.rank), item.key.seq.0));
    bench.owner.commit(|batch| batch.promotes.extend(promoted)).await;
    assert_eq!(bench.owner.ready_seqs(TOPIC).await, (1..=299).rev().collect::<Vec<u64>>());
    let left = bench.owner.reader.due(Sweep::Due, Timestamp::MIN, Timestamp::MAX, 10).await.expect("reads");
    assert_eq!(left.iter().map(|row| row.seq.0).collect::<Vec<_>>(), [300]);
}

/// It waits on with another time, and is found then alone.
pub async fn what_is_put_off_is_due_later(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let items: Vec<ItemRow> = (1..=20).map(|seq| scheduled(seq, at(seq as i64))).collect();
    bench.owner.commit(|batch| batch.inserts.clone_from(&items)).await;
    let off = (1..=15).map(|seq| PutOff { seq: Seq(seq), from: at(seq as i64), to: at(100 + seq as i64) });
    bench.owner.commit(|batch| batch.put_offs.extend(off)).await;
    let rows = bench.owner.reader.due(Sweep::Due, Timestamp::MIN, Timestamp::MAX, 99).await.expect("reads");
    let found: Vec<(Timestamp, u64)> = rows.iter().map(|row| (row.at, row.seq.0)).collect();
    let expected = (16..=20).map(|seq| (at(seq), seq as u64));
    assert_eq!(found, expected.chain((1..=15).map(|seq| (at(100 + seq), seq as u64))).collect::<Vec<_>>());
    let DueItem::Scheduled(item) = &rows[5].item else { panic!("{:?}", rows[5]) };
    assert_eq!(item.key.rank, at(101).as_micros(), "its place in the delivery order is the later time");
}

/// It is known of an item for what it waits.
pub async fn a_delay_is_known_from_a_time(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let waiting = |seq, waits| {
        let row = scheduled(seq, at(seq as i64));
        ItemRow { attributes: ItemAttributes { waits, ..row.attributes }, ..row }
    };
    let items = [waiting(1, Waits::Unsaid), waiting(2, Waits::Span), waiting(3, Waits::Point)];
    bench.owner.commit(|batch| batch.inserts.extend(items)).await;
    let rows = bench.owner.reader.due(Sweep::Due, at(0), at(99), 9).await.expect("reads");
    let waits = rows.iter().map(|row| match &row.item {
        DueItem::Scheduled(item) => item.attributes.waits,
        other => panic!("{other:?}"),
    });
    assert_eq!(waits.collect::<Vec<_>>(), [Waits::Unsaid, Waits::Span, Waits::Point]);
}

/// Its rows in `schedule` and `expiry` are deleted too.
pub async fn a_removed_item_is_no_longer_due(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let mortal = expiring(scheduled(1, at(30)), at(40));
    bench.owner.commit(|batch| batch.inserts.extend([mortal, scheduled(2, at(30))])).await;
    bench
        .owner
        .commit(|batch| {
            batch.deletes.push(Seq(1));
            batch.schedule_deletes.push(due_key(at(30), 1));
            // A missing row is no error.
            batch.expiry_deletes.extend([due_key(at(40), 1), due_key(at(41), 7)]);
        })
        .await;
    let left = bench.owner.reader.due(Sweep::Due, at(0), at(99), 10).await.expect("reads");
    assert_eq!(left.iter().map(|row| row.seq.0).collect::<Vec<_>>(), [2]);
    assert_eq!(bench.owner.reader.next_due(Sweep::Expiry, at(0)).await.expect("reads"), None);
}

/// For ready and for scheduled items.
pub async fn expiries_are_found(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let mortal = expiring(item(1), at(7));
    let later = expiring(scheduled(2, at(8)), at(9));
    bench.owner.commit(|batch| batch.inserts.extend([mortal, later, item(3)])).await;
    let rows = bench.owner.reader.due(Sweep::Expiry, at(0), at(100), 10).await.expect("reads");
    let read: Vec<_> = rows.iter().map(|row| (row.at, row.seq.0)).collect();
    assert_eq!(read, [(at(7), 1), (at(9), 2)]);
    let [DueItem::Ready(ready), DueItem::Scheduled(_)] = [&rows[0].item, &rows[1].item] else {
        panic!("{rows:?}")
    };
    assert_eq!(ready.attributes.expires_at, Some(at(7)));
    bench.owner.commit(|batch| batch.expiry_deletes.push(due_key(at(7), 1))).await;
    assert_eq!(bench.owner.reader.next_due(Sweep::Expiry, at(0)).await.expect("reads"), Some(at(9)));
    assert_eq!(bench.owner.ready_seqs(TOPIC).await, [1, 3], "only the row of `expiry` is deleted");
}

/// The earliest time at or after a time, in either table.
pub async fn the_next_time_is_read(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let reader = bench.owner.reader.clone();
    assert_eq!(reader.next_due(Sweep::Due, Timestamp::MIN).await.expect("reads"), None);
    bench.owner.commit(|batch| batch.inserts.extend([scheduled(1, at(30)), scheduled(2, at(10))])).await;
    assert_eq!(reader.next_due(Sweep::Due, Timestamp::MIN).await.expect("reads"), Some(at(10)));
    assert_eq!(reader.next_due(Sweep::Due, at(10)).await.expect("reads"), Some(at(10)));
    assert_eq!(reader.next_due(Sweep::Due, at(11)).await.expect("reads"), Some(at(30)));
    assert_eq!(reader.next_due(Sweep::Due, at(31)).await.expect("reads"), None);
    assert_eq!(reader.next_due(Sweep::Expiry, at(0)).await.expect("reads"), None);
}

/// They move forwards and backwards.
pub async fn checkpoints_are_kept(subject: Subject) {
    let due = |micros| Checkpoint { sweep: Sweep::Due, at: at(micros) };
    let expiry = Checkpoint { sweep: Sweep::Expiry, at: at(9) };
    let mut bench = Bench::new(subject).await;
    bench.owner.commit(|batch| batch.checkpoints.push(due(10))).await;
    assert_eq!(bench.owner.load().await.checkpoints, [due(10)]);
    bench.owner.commit(|batch| batch.checkpoints.extend([expiry, due(5)])).await;
    let mut checkpoints = bench.owner.load().await.checkpoints;
    checkpoints.sort_unstable();
    assert_eq!(checkpoints, [due(5), expiry]);
}
