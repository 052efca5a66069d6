//! Items, and the order in which they are delivered.

use bytes::Bytes;
use forebay_store::{CommitError, ErrorClass, ItemLocation, ItemRow, ReadyRow};
use forebay_types::{Body, DeliveryPolicy, ItemAttributes, Key, Seq, Timestamp, TopicId};

use super::{
    Subject,
    bench::{Bench, TOPIC, as_ready, at, item, scheduled, topic},
};

/// Every column, with and without the body.
pub async fn an_item_is_read_as_it_was_written(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let full = ItemRow {
        key: Key { priority: -7, rank: i64::MAX - 1, seq: Seq(1 << 40) },
        attributes: ItemAttributes {
            enqueued_at: at(-3),
            expires_at: Some(at(99)),
            lease_ms: 43_200_000,
            max_attempts: 1_000,
            policy: DeliveryPolicy::AtMostOnce,
            deliveries: 4,
            failures: 3,
            redrives: 0,
            updated_by: 0,
            waits: forebay_types::Waits::Unsaid,
        },
        body: Body {
            payload: (0..=255).collect::<Vec<u8>>().into(),
            metadata: Bytes::from_static(&[0, 255, b'\'', b'\\']),
            headers: vec![("content-type".into(), "text/plain; ü".into()), ("empty".into(), String::new())],
        },
        ..item(1)
    };
    let bare = ItemRow { body: Body::default(), ..item(2) };
    bench.owner.commit(|batch| batch.inserts.extend([full.clone(), bare.clone()])).await;
    let expected = vec![as_ready(&full), as_ready(&bare)];
    assert_eq!(bench.owner.ready(TOPIC).await, expected);
    let without = bench.owner.reader.ready(TOPIC, Key::MIN, 9, 0).await.expect("reads");
    assert!(without.iter().all(|row| row.body.is_none()));
    assert_eq!(without[0].bytes, expected[0].bytes);
    let mut bodies = bench.owner.reader.bodies(&[Seq(2), Seq(99), full.key.seq]).await.expect("reads");
    bodies.sort_by_key(|(seq, _)| *seq);
    assert_eq!(bodies, [(Seq(2), bare.body), (full.key.seq, full.body)]);
    assert_eq!(bench.owner.reader.bodies(&[]).await.expect("reads"), []);
}

/// By priority, then rank, then seq, including negative values.
pub async fn items_come_in_delivery_order(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let mut items = shuffled();
    bench.owner.commit(|batch| batch.inserts.clone_from(&items)).await;
    items.sort_by_key(|item| item.key);
    let expected: Vec<Key> = items.iter().map(|item| item.key).collect();
    let read: Vec<Key> = bench.owner.ready(TOPIC).await.into_iter().map(|row| row.key).collect();
    assert_eq!(read, expected);
    // After every key, with several limits.
    for from in 0..expected.len() {
        for limit in [0, 1, 3, 100] {
            let rows = bench.owner.reader.ready(TOPIC, expected[from], limit, 0).await.expect("reads");
            let read: Vec<Key> = rows.into_iter().map(|row| row.key).collect();
            let rest = &expected[from + 1..];
            assert_eq!(read, rest[..limit.min(rest.len())], "{limit} after {:?}", expected[from]);
        }
    }
    let between = Key { priority: 0, rank: 150, seq: Seq(0) };
    let rows = bench.owner.reader.ready(TOPIC, between, 100, 0).await.expect("reads");
    assert_eq!(rows.len(), expected.iter().filter(|key| **key > between).count());
}

/// Items that share priorities and ranks.
fn shuffled() -> Vec<ItemRow> {
    let mut items = Vec::new();
    for priority in [3, 0, i32::MIN, -1, i32::MAX] {
        for rank in [200, 100, 300] {
            for copy in 0..2 {
                let seq = 1_000 - 10 * items.len() as u64 + copy;
                items.push(ItemRow { key: Key { priority, rank, seq: Seq(seq) }, ..item(1) });
            }
        }
    }
    items
}

/// All pages together are complete, whatever the page size.
pub async fn pages_miss_nothing(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    bench.owner.commit(|batch| batch.inserts = shuffled()).await;
    for size in [1, 4, 7] {
        let (mut after, mut keys) = (Key::MIN, Vec::new());
        loop {
            let page = bench.owner.reader.ready(TOPIC, after, size, 0).await.expect("reads");
            let Some(last) = page.last() else { break };
            after = last.key;
            keys.extend(page.iter().map(|row| row.key));
        }
        assert_eq!(keys.len(), 30);
        assert!(keys.is_sorted());
    }
}

/// As many of the first rows as have so many bytes together come with their bodies. The page is as long as
/// without them.
pub async fn a_read_of_ready_items_has_so_many_bytes(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let sized = |(seq, bytes): (u64, usize)| ItemRow {
        body: Body { payload: vec![7; bytes].into(), ..Body::default() },
        ..item(seq)
    };
    let items: Vec<ItemRow> = (1..).zip([10, 0, 200_000, 10, 10]).map(sized).collect();
    bench.owner.commit(|batch| batch.inserts.clone_from(&items)).await;
    let cases = [(0, 0), (1, 0), (9, 0), (10, 2), (200_009, 2), (200_010, 3), (200_029, 4), (usize::MAX, 5)];
    for (max_bytes, bodies) in cases {
        let rows = bench.owner.reader.ready(TOPIC, Key::MIN, 9, max_bytes).await.expect("reads");
        let expected = items.iter().enumerate().map(|(at, item)| match at < bodies {
            true => as_ready(item),
            false => ReadyRow { body: None, ..as_ready(item) },
        });
        assert!(rows == expected.collect::<Vec<_>>(), "{max_bytes} bytes");
    }
}

/// For the smallest and the largest topic number.
pub async fn topics_are_apart(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let other = TopicId(u32::MAX);
    bench
        .owner
        .commit(|batch| {
            batch.inserts.extend([item(1), ItemRow { topic: other, ..item(2) }, item(3)]);
        })
        .await;
    assert_eq!(bench.owner.ready_seqs(TOPIC).await, [1, 3]);
    assert_eq!(bench.owner.ready_seqs(other).await, [2]);
    assert_eq!(bench.owner.ready_seqs(TopicId(2)).await, Vec::<u64>::new());
}

/// They are not in the delivery order.
pub async fn scheduled_items_are_not_ready(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    bench.owner.commit(|batch| batch.inserts.extend([scheduled(1, at(-5)), item(2)])).await;
    assert_eq!(bench.owner.ready_seqs(TOPIC).await, [2]);
}

/// A full batch is read as it was written.
pub async fn a_batch_of_a_thousand(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    bench.owner.commit(|batch| batch.inserts.extend((1..=1_000).map(item))).await;
    let expected: Vec<u64> = (1..=1_000).collect();
    assert_eq!(bench.owner.ready_seqs(TOPIC).await, expected);
    let seqs: Vec<Seq> = expected.iter().map(|seq| Seq(*seq)).collect();
    assert_eq!(bench.owner.reader.bodies(&seqs).await.expect("reads").len(), 1_000);
    bench
        .owner
        .commit(|batch| {
            batch.inserts.extend((1_001..=2_000).map(item));
            batch.deletes.extend((1..=999).map(Seq));
        })
        .await;
    assert_eq!(bench.owner.ready_seqs(TOPIC).await, (1_000..=2_000).collect::<Vec<u64>>());
}

/// Sixteen payloads of 256 KiB in one batch: the largest legal call.
pub async fn payloads_of_the_largest_size(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let large = |seq: u64| {
        let payload: Vec<u8> = (0..256 << 10).map(|at: u64| (at.wrapping_mul(seq + 7) >> 3) as u8).collect();
        ItemRow { body: Body { payload: payload.into(), ..Body::default() }, ..item(seq) }
    };
    let items: Vec<ItemRow> = (1..=16).map(large).collect();
    bench.owner.commit(|batch| batch.inserts.clone_from(&items)).await;
    let read = bench.owner.ready(TOPIC).await;
    assert!(read == items.iter().map(as_ready).collect::<Vec<_>>(), "a payload was changed");
    bench.owner.commit(|batch| batch.deletes.extend((1..=16).map(Seq))).await;
    assert_eq!(bench.owner.ready_seqs(TOPIC).await, Vec::<u64>::new());
}

/// Deletes the named items and no others.
pub async fn items_are_removed(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    bench
        .owner
        .commit(|batch| {
            batch.new_topics.push(topic(TOPIC.0));
            batch.inserts.extend((1..=5).map(item));
        })
        .await;
    bench.owner.commit(|batch| batch.deletes.extend([Seq(4), Seq(1), Seq(3)])).await;
    assert_eq!(bench.owner.ready_seqs(TOPIC).await, [2, 5]);
    let located = bench.owner.reader.locate(&[Seq(3), Seq(2)]).await.expect("reads");
    assert_eq!(located, [ItemLocation::Gone, ItemLocation::Waiting(topic(TOPIC.0).name.namespace)]);
}

/// The smallest and largest values of every column.
pub async fn extremes_are_kept(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let low = ItemRow {
        key: Key { priority: i32::MIN, rank: i64::MIN, seq: Seq(1) },
        attributes: ItemAttributes {
            enqueued_at: Timestamp::MIN,
            expires_at: Some(Timestamp::MIN),
            lease_ms: 0,
            max_attempts: 0,
            ..item(1).attributes
        },
        ..item(1)
    };
    let high = ItemRow {
        key: Key { priority: i32::MAX, rank: i64::MAX, seq: Seq(i64::MAX as u64) },
        attributes: ItemAttributes {
            enqueued_at: Timestamp::MAX,
            expires_at: Some(Timestamp::MAX),
            lease_ms: u32::MAX,
            max_attempts: u32::MAX,
            deliveries: u32::MAX,
            failures: u32::MAX,
            ..item(2).attributes
        },
        ..item(2)
    };
    bench.owner.commit(|batch| batch.inserts.extend([high.clone(), low.clone()])).await;
    assert_eq!(bench.owner.ready(TOPIC).await, [as_ready(&low), as_ready(&high)]);
    let after = bench.owner.reader.ready(TOPIC, high.key, 5, 0).await.expect("reads");
    assert_eq!(after, []);
}

/// A row that cannot be stored has an error class of its own.
pub async fn a_poisoned_row_has_its_error_class(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let mut batch = bench.owner.batch();
    batch.inserts.extend((1..=9).map(item));
    batch.inserts[4].body.metadata = vec![b'x'; 70_000].into();
    match bench.owner.try_commit(&batch).await {
        Err(CommitError::RolledBack(error)) => assert_eq!(error.class, ErrorClass::Poison, "{error}"),
        other => panic!("a poisoned row: {other:?}"),
    }
    assert_eq!(bench.owner.ready_seqs(TOPIC).await, Vec::<u64>::new());
    // The connection is still usable: the halves can follow at once.
    batch.inserts.remove(4);
    bench.owner.try_commit(&batch).await.expect("commits");
    assert_eq!(bench.owner.ready_seqs(TOPIC).await.len(), 8);
}
