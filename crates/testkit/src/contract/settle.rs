//! Deliveries end without an ack.

use bytes::Bytes;
use forebay_store::{DeadLetter, ItemRow, Requeue, Sweep};
use forebay_types::{Body, Seq, State};

use super::{
    Subject,
    bench::{Bench, NOW, TOPIC, as_ready, at, item},
};

fn requeue(seq: u64, rank: i64) -> Requeue {
    Requeue { seq: Seq(seq), state: State::Ready, rank, deliveries: 2, failures: 1, metadata: None }
}

/// With a new place and new numbers.
pub async fn an_item_goes_back(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    bench.owner.commit(|batch| batch.inserts.extend([item(1), item(2)])).await;
    bench.owner.commit(|batch| batch.requeues.push(requeue(1, NOW + 50))).await;
    let rows = bench.owner.ready(TOPIC).await;
    assert_eq!(rows.iter().map(|row| row.key.seq.0).collect::<Vec<_>>(), [2, 1]);
    assert_eq!((rows[1].key.rank, rows[1].deliveries, rows[1].failures), (NOW + 50, 2, 1));
    assert_eq!(rows[1].body, Some(item(1).body));
}

/// It leaves the delivery order and gets a row in `schedule`.
pub async fn an_item_goes_back_for_later(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    bench.owner.commit(|batch| batch.inserts.extend([item(1), item(2)])).await;
    let later = Requeue { state: State::Scheduled, ..requeue(1, at(500).as_micros()) };
    bench.owner.commit(|batch| batch.requeues.push(later)).await;
    assert_eq!(bench.owner.ready_seqs(TOPIC).await, [2]);
    let due = bench.owner.reader.due(Sweep::Due, at(0), at(1_000), 10).await.expect("reads");
    assert_eq!(due.len(), 1);
    assert_eq!((due[0].at, due[0].scheduled, due[0].item.key.seq), (at(500), true, Seq(1)));
    assert_eq!((due[0].item.deliveries, due[0].item.failures), (2, 1));
}

/// The size that is read without a body follows.
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
        (expected.deliveries, expected.failures) = (2, 1);
        assert_eq!(bench.owner.ready(TOPIC).await, [as_ready(&expected)]);
    }
}

/// Each gets its own numbers.
pub async fn many_go_back_at_once(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    bench.owner.commit(|batch| batch.inserts.extend((1..=501).map(item))).await;
    // Backwards, so that the order of the ranks is not that of the seqs.
    let back = |seq: u64| {
        let number = u32::try_from(seq).expect("small");
        Requeue { deliveries: number, failures: number / 2, ..requeue(seq, NOW - number as i64) }
    };
    bench.owner.commit(|batch| batch.requeues.extend((1..=501).rev().map(back))).await;
    let rows = bench.owner.ready(TOPIC).await;
    assert_eq!(rows.len(), 501);
    for (row, seq) in rows.iter().zip((1..=501).rev()) {
        let back = back(seq);
        let read = (row.key.seq, row.key.rank, row.deliveries, row.failures);
        assert_eq!(read, (back.seq, back.rank, back.deliveries, back.failures));
    }
}

/// It is not ready any more, and its fate is told.
pub async fn an_item_is_buried(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    bench.owner.commit(|batch| batch.inserts.extend((1..=3).map(item))).await;
    let dead = |seq, metadata| DeadLetter {
        seq: Seq(seq),
        deliveries: 16,
        failures: 16,
        reason: "nacked".to_owned(),
        last_error: "it is all broken: ü".to_owned(),
        died_at: at(4),
        metadata,
    };
    bench
        .owner
        .commit(|batch| batch.dead_letters.extend([dead(1, None), dead(3, Some(b"new".to_vec()))]))
        .await;
    assert_eq!(bench.owner.ready_seqs(TOPIC).await, [2]);
    let reader = &bench.owner.reader;
    assert_eq!(reader.locate(Seq(1)).await.expect("reads"), Some(true));
    assert_eq!(reader.locate(Seq(2)).await.expect("reads"), Some(false));
    assert_eq!(reader.locate(Seq(3)).await.expect("reads"), Some(true));
    assert_eq!(reader.locate(Seq(4)).await.expect("reads"), None);
    assert_eq!(reader.bodies(&[Seq(1), Seq(3)]).await.expect("reads"), []);
}

/// As after an at-most-once delivery that could not be handed over.
pub async fn an_item_comes_back_after_its_removal(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let mortal = ItemRow { expires_at: Some(at(50)), ..item(1) };
    bench.owner.commit(|batch| batch.inserts.push(mortal.clone())).await;
    bench
        .owner
        .commit(|batch| {
            batch.deletes.push(Seq(1));
            batch.expiry_deletes.push((at(50), Seq(1)));
        })
        .await;
    let back = ItemRow { deliveries: 1, ..mortal };
    bench.owner.commit(|batch| batch.inserts.push(back.clone())).await;
    assert_eq!(bench.owner.ready(TOPIC).await, [as_ready(&back)]);
    assert_eq!(bench.owner.reader.next_due(Sweep::Expiry, at(0)).await.expect("reads"), Some(at(50)));
}
