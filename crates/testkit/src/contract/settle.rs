//! Deliveries that end without an ack.

use bytes::Bytes;
use forebay_store::{DeadLetter, DueItem, ItemLocation, ItemRow, Requeue, Sweep};
use forebay_types::{Body, Failure, Seq, State};

use super::{
    Subject,
    bench::{Bench, NOW, TOPIC, as_ready, at, due_key, expiring, failure, item, topic},
};

fn requeue(seq: u64, rank: i64) -> Requeue {
    Requeue {
        seq: Seq(seq),
        state: State::Ready,
        rank,
        deliveries: 2,
        failures: 1,
        metadata: None,
        failure: None,
    }
}

/// With a new rank and new counters.
pub async fn an_item_is_requeued(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    bench.owner.commit(|batch| batch.inserts.extend([item(1), item(2)])).await;
    bench.owner.commit(|batch| batch.requeues.push(requeue(1, NOW + 50))).await;
    let rows = bench.owner.ready(TOPIC).await;
    assert_eq!(rows.iter().map(|row| row.key.seq.0).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(
        (rows[1].key.rank, rows[1].attributes.deliveries, rows[1].attributes.failures),
        (NOW + 50, 2, 1)
    );
    assert_eq!(rows[1].body, Some(item(1).body));
}

/// It leaves the delivery order and gets a row in `schedule`.
pub async fn an_item_is_requeued_for_later(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    bench.owner.commit(|batch| batch.inserts.extend([item(1), item(2)])).await;
    let later = Requeue { state: State::Scheduled, ..requeue(1, at(500).as_micros()) };
    bench.owner.commit(|batch| batch.requeues.push(later)).await;
    assert_eq!(bench.owner.ready_seqs(TOPIC).await, [2]);
    let due = bench.owner.reader.due(Sweep::Due, at(0), at(1_000), 10).await.expect("reads");
    assert_eq!(due.len(), 1);
    let DueItem::Scheduled(row) = &due[0].item else { panic!("{due:?}") };
    assert_eq!((due[0].at, due[0].seq, row.key.seq), (at(500), Seq(1), Seq(1)));
    assert_eq!((row.attributes.deliveries, row.attributes.failures), (2, 1));
}

/// The size that is read without a body changes too.
pub async fn new_metadata_replaces_the_old(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let body = Body {
        payload: Bytes::from_static(b"p"),
        metadata: Bytes::from_static(b"a long old one"),
        headers: vec![("k".into(), "v".into())],
    };
    let mut expected = ItemRow { body, ..item(1) };
    bench.owner.commit(|batch| batch.inserts.push(expected.clone())).await;
    for metadata in [&b"new"[..], b"", b"one that is longer than the first"] {
        let back = Requeue { metadata: Some(metadata.to_vec()), ..requeue(1, expected.key.rank) };
        bench.owner.commit(|batch| batch.requeues.push(back)).await;
        expected.body.metadata = Bytes::copy_from_slice(metadata);
        (expected.attributes.deliveries, expected.attributes.failures) = (2, 1);
        assert_eq!(bench.owner.ready(TOPIC).await, [as_ready(&expected)]);
    }
}

/// The last five, with the one that the item died of. A release is none. Long ones go in statements that are
/// prepared, and their bytes are no text.
pub async fn the_last_failures_are_remembered(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    bench
        .owner
        .commit(|batch| {
            batch.new_topics.push(topic(TOPIC.0));
            batch.inserts.extend((1..=40).map(item));
        })
        .await;
    let text = |seq: u64| "ü".repeat(if seq == 1 { 1 } else { 100 });
    for attempt in 1..=7 {
        let back = |seq: u64| Requeue {
            failures: attempt,
            failure: Some(failure(attempt, &text(seq))),
            metadata: (seq == 3).then(|| vec![7]),
            ..requeue(seq, NOW)
        };
        bench.owner.commit(|batch| batch.requeues.extend((1..=39).map(back))).await;
        let released = |seq: u64| Requeue { failures: attempt, ..requeue(seq, NOW) };
        bench.owner.commit(|batch| batch.requeues.extend([released(1), released(2)])).await;
    }
    let letter = DeadLetter {
        seq: Seq(2),
        deliveries: 8,
        failures: 8,
        reason: "lease ended".to_owned(),
        last_error: String::new(),
        died_at: at(4),
        expires_at: at(9),
        metadata: None,
        failure: failure(8, ""),
    };
    bench.owner.commit(|batch| batch.dead_letters.push(letter)).await;
    let seqs: Vec<Seq> = (1..=40).map(Seq).collect();
    let found = bench.owner.reader.items(&seqs, 0).await.expect("reads");
    assert_eq!(found.len(), 40);
    for item in found {
        let seq = item.key.seq.0;
        let live = |last: u32| (last - 4..=last).rev().map(|attempt| failure(attempt, &text(seq)));
        let expected: Vec<Failure> = match seq {
            2 => [failure(8, "")].into_iter().chain(live(7).take(4)).collect(),
            40 => Vec::new(),
            _ => live(7).collect(),
        };
        assert_eq!(item.last_failures, expected, "item {seq}");
    }
}

/// Each has its own counters.
pub async fn many_are_requeued_at_once(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    bench.owner.commit(|batch| batch.inserts.extend((1..=501).map(item))).await;
    // In reverse, so that ranks and seqs are ordered differently.
    let back = |seq: u64| {
        let number = u32::try_from(seq).expect("small");
        Requeue { deliveries: number, failures: number / 2, ..requeue(seq, NOW - number as i64) }
    };
    bench.owner.commit(|batch| batch.requeues.extend((1..=501).rev().map(back))).await;
    let rows = bench.owner.ready(TOPIC).await;
    assert_eq!(rows.len(), 501);
    for (row, seq) in rows.iter().zip((1..=501).rev()) {
        let back = back(seq);
        let read = (row.key.seq, row.key.rank, row.attributes.deliveries, row.attributes.failures);
        assert_eq!(read, (back.seq, back.rank, back.deliveries, back.failures));
    }
}

/// It is no longer ready, and its location is known.
pub async fn an_item_becomes_a_dead_letter(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    bench
        .owner
        .commit(|batch| {
            batch.new_topics.push(topic(TOPIC.0));
            batch.inserts.extend((1..=3).map(item));
        })
        .await;
    let dead = |seq, metadata| DeadLetter {
        seq: Seq(seq),
        deliveries: 16,
        failures: 16,
        reason: "nacked".to_owned(),
        last_error: "it is all broken: ü".to_owned(),
        died_at: at(4),
        expires_at: at(9),
        metadata,
        failure: failure(16, ""),
    };
    bench
        .owner
        .commit(|batch| batch.dead_letters.extend([dead(1, None), dead(3, Some(b"new".to_vec()))]))
        .await;
    assert_eq!(bench.owner.ready_seqs(TOPIC).await, [2]);
    let reader = &bench.owner.reader;
    let own = || topic(TOPIC.0).name.namespace;
    let (dead, waiting) = (|| ItemLocation::DeadLetter(own()), || ItemLocation::Waiting(own()));
    let located = reader.locate(&[1, 2, 3, 4, 2].map(Seq)).await.expect("reads");
    let expected = [dead(), waiting(), dead(), ItemLocation::Gone, waiting()];
    assert_eq!(located, expected, "in the order of the question");
    let many: Vec<Seq> = (1..=1_000).map(Seq).collect();
    let located = reader.locate(&many).await.expect("reads");
    assert_eq!((&located[..3], located.len()), (&[dead(), waiting(), dead()][..], 1_000));
    assert!(located[3..].iter().all(|location| *location == ItemLocation::Gone));
    assert_eq!(reader.bodies(&[Seq(1), Seq(3)]).await.expect("reads"), []);
}

/// As after an at-most-once delivery that nobody received.
pub async fn an_item_returns_after_its_removal(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let mortal = expiring(item(1), at(50));
    bench.owner.commit(|batch| batch.inserts.push(mortal.clone())).await;
    bench
        .owner
        .commit(|batch| {
            batch.deletes.push(Seq(1));
            batch.expiry_deletes.push(due_key(at(50), 1));
        })
        .await;
    let mut back = mortal;
    back.attributes.deliveries = 1;
    bench.owner.commit(|batch| batch.inserts.push(back.clone())).await;
    assert_eq!(bench.owner.ready(TOPIC).await, [as_ready(&back)]);
    assert_eq!(bench.owner.reader.next_due(Sweep::Expiry, at(0)).await.expect("reads"), Some(at(50)));
}
