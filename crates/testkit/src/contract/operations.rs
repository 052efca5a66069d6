//! Operations: what they read, what they do, and the parts that a shard keeps.

use std::time::Duration;

use forebay_store::{
    DeadLetter, OperationCursor, OperationFailure, OperationId, OperationKind, OperationProgress,
    OperationRow, OperationSpec, OperationUpdate, OperationWish, Redrive, Sweep,
};
use forebay_types::{ItemAttributes, Key, Seq, ShardId, State, Timestamp, TopicId};

use super::{
    Subject,
    bench::{Bench, Owner, TOPIC, at, due_key, expiring, failure, item, scheduled, topic},
};

fn row(number: u8) -> OperationRow {
    let spec = OperationSpec {
        id: OperationId([number; 16]),
        kind: OperationKind::Purge,
        namespace: "tenant".to_owned(),
        topic: "topic-1".to_owned(),
        filter: "age > 1h".to_owned(),
        leased: true,
        to_topic: "other".to_owned(),
        ttl: Some(Duration::from_secs(9)),
        update: None,
        max_redrives: None,
        limits: Some([(ShardId(1), 7)].into()),
        shards: vec![ShardId(1), ShardId(2)],
        home: ShardId(2),
        who: "an operator".to_owned(),
        reason: "why".to_owned(),
        started_at: at(5),
        request: [3; 16],
        wish: OperationWish { version: 1, rate: 5_000, active: 2, cancelled: false },
    };
    OperationRow { spec, progress: progress(0, None) }
}

fn progress(changed: u64, ended_at: Option<Timestamp>) -> OperationProgress {
    OperationProgress {
        as_of: Seq(40),
        as_of_time: at(6),
        as_of_batch: 2,
        cursor: OperationCursor::Ready(Key { priority: -5, rank: i64::MAX, seq: Seq(changed) }),
        scanned: changed + 4,
        matched: changed + 3,
        changed,
        skipped: 2,
        failed: 1,
        ended_at,
        failure: None,
        estimated: 0,
    }
}

/// They are loaded as they were written, go on, are wished otherwise, and are forgotten.
pub async fn parts_are_kept(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    assert!(bench.owner.load().await.operations.is_empty());
    let (one, mut two) = (row(1), row(2));
    let update = OperationUpdate { metadata: Some(vec![0xff; 1_024]), ..OperationUpdate::default() };
    (two.spec.kind, two.spec.update) = (OperationKind::Update, Some(update));
    bench.owner.commit(|batch| batch.operations.extend([two.clone(), one.clone()])).await;
    assert_eq!(bench.owner.load().await.operations, [one.clone(), two.clone()]);
    let failure = Some(OperationFailure::Target);
    let on = OperationProgress { failure, estimated: 77, ..progress(9, Some(at(7))) };
    bench.owner.commit(|batch| batch.operation_progress.push((two.spec.id, on))).await;
    let gone_on = OperationRow { progress: on, ..two.clone() };
    assert_eq!(bench.owner.load().await.operations, [one.clone(), gone_on]);
    let mut slower = one;
    slower.spec.wish.rate = 1;
    bench
        .owner
        .commit(|batch| {
            batch.operations.push(slower.clone());
            batch.operation_deletes.push(two.spec.id);
        })
        .await;
    assert_eq!(bench.owner.load().await.operations, [slower]);
}

async fn walked(owner: &Owner, state: State, after: Key, as_of: u64, limit: usize) -> Vec<Key> {
    let rows = owner.reader.walk_items(TOPIC, state, after, Seq(as_of), limit).await.expect("reads");
    assert!(rows.iter().all(|row| row.item.body.is_none()));
    rows.into_iter().map(|row| row.item.key).collect()
}

/// In delivery order, up to a number, of one state and topic.
pub async fn items_are_walked_over(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let mut items: Vec<_> = (1..=6).map(item).collect();
    items[2].key.priority = -1;
    items[5].topic = TopicId(2);
    items.push(scheduled(9, at(90)));
    let keys: Vec<Key> = items.iter().map(|item| item.key).collect();
    bench
        .owner
        .commit(|batch| {
            batch.new_topics.extend([topic(TOPIC.0), topic(2)]);
            batch.inserts.extend(items.clone());
        })
        .await;
    let owner = &bench.owner;
    let first = walked(owner, State::Ready, Key::MIN, 4, 10).await;
    assert_eq!(first, [keys[2], keys[0], keys[1], keys[3]]);
    assert_eq!(walked(owner, State::Ready, keys[2], 5, 2).await, [keys[0], keys[1]]);
    assert_eq!(walked(owner, State::Ready, keys[1], 5, 10).await, [keys[3], keys[4]]);
    assert_eq!(walked(owner, State::Scheduled, Key::MIN, 9, 10).await, [keys[6]]);
    assert_eq!(walked(owner, State::Scheduled, Key::MIN, 8, 10).await, [] as [Key; 0]);
}

fn dead(seq: u64, died_at: i64) -> DeadLetter {
    DeadLetter {
        seq: Seq(seq),
        deliveries: 3,
        failures: 2,
        reason: "nacked".to_owned(),
        last_error: format!("error {seq}"),
        died_at: at(died_at),
        expires_at: at(1_000_000),
        metadata: None,
        failure: failure(3, "no"),
    }
}

/// A shard whose topics 1 and 2 have one name, and these dead letters: item, topic, death.
async fn with_dead(subject: Subject, letters: &[(u64, u32, i64)]) -> Bench {
    let mut bench = Bench::new(subject).await;
    let items = letters.iter().map(|(seq, topic, _)| {
        let mut item = expiring(item(*seq), at(500));
        item.topic = TopicId(*topic);
        item
    });
    let items: Vec<_> = items.collect();
    bench
        .owner
        .commit(|batch| {
            let mut second = topic(2);
            second.name = topic(1).name;
            batch.new_topics.extend([topic(1), second, topic(3)]);
            batch.inserts.extend(items);
        })
        .await;
    let dead = letters.iter().map(|(seq, _, died_at)| dead(*seq, *died_at));
    let dead: Vec<_> = dead.collect();
    bench
        .owner
        .commit(|batch| {
            batch.expiry_deletes.extend(letters.iter().map(|(seq, ..)| due_key(at(500), *seq)));
            batch.dead_letters.extend(dead);
        })
        .await;
    bench
}

async fn walked_dead(owner: &Owner, after: (u32, i64, u64), until: i64, limit: usize) -> Vec<u64> {
    let after = (TopicId(after.0), at(after.1), Seq(after.2));
    let rows = owner.reader.walk_dead(&topic(1).name, after, at(until), limit).await.expect("reads");
    for row in &rows {
        let seq = row.item.key.seq.0;
        assert_eq!((row.last_error.clone(), row.item.attributes.failures), (format!("error {seq}"), 2));
        assert_eq!(row.item.key.rank, row.died_at.as_micros());
    }
    rows.into_iter().map(|row| row.item.key.seq.0).collect()
}

/// Dead letters of all topics with the name, by topic and death, up to a time.
pub async fn dead_letters_are_walked_over(subject: Subject) {
    let letters = [(1, 1, 30), (2, 1, 20), (3, 1, 30), (4, 2, 10), (5, 2, 99), (6, 3, 10)];
    let bench = with_dead(subject, &letters).await;
    let owner = &bench.owner;
    assert_eq!(walked_dead(owner, (0, 0, 0), 50, 10).await, [2, 1, 3, 4]);
    assert_eq!(walked_dead(owner, (1, 20, 2), 50, 2).await, [1, 3]);
    assert_eq!(walked_dead(owner, (1, 30, 1), 99, 10).await, [3, 4, 5]);
    assert_eq!(walked_dead(owner, (2, 10, 4), 50, 10).await, [] as [u64; 0]);
}

/// Items go with their other rows.
pub async fn a_purge_deletes(subject: Subject) {
    let mut bench = with_dead(subject, &[(7, 1, 30), (8, 1, 31)]).await;
    bench
        .owner
        .commit(|batch| batch.inserts.extend([item(10), expiring(item(11), at(50)), scheduled(12, at(70))]))
        .await;
    bench
        .owner
        .commit(|batch| {
            batch.purges.extend([10, 11, 12].map(Seq));
            batch.expiry_deletes.push(due_key(at(50), 11));
            batch.schedule_deletes.push(due_key(at(70), 12));
            batch.dead_letter_purges.push(Seq(7));
            batch.operations.push(row(1));
        })
        .await;
    assert_eq!(bench.owner.ready_seqs(TOPIC).await, [] as [u64; 0]);
    assert_eq!(walked_dead(&bench.owner, (0, 0, 0), 50, 10).await, [8]);
    for sweep in [Sweep::Due, Sweep::Expiry] {
        let due = bench.owner.reader.due(sweep, Timestamp::MIN, at(1_000), 10).await.expect("reads");
        assert!(due.is_empty());
    }
}

/// With its body and number, in another topic, without failures, and with another expiry.
pub async fn a_dead_letter_comes_back(subject: Subject) {
    let mut bench = with_dead(subject, &[(7, 1, 30), (8, 2, 31)]).await;
    let rows = bench.owner.reader.walk_dead(&topic(1).name, (TopicId(0), at(0), Seq(0)), at(99), 9).await;
    let back = |(at_row, expires_at): (usize, Option<Timestamp>)| {
        let row = &rows.as_ref().expect("reads")[at_row];
        let redrives = row.item.attributes.redrives + 1;
        let attributes = ItemAttributes { failures: 0, expires_at, redrives, ..row.item.attributes };
        let key = Key { rank: at(40).as_micros(), ..row.item.key };
        Redrive { topic: TopicId(3), key, attributes, packed: row.packed.clone() }
    };
    let redrives = [(0, None), (1, Some(at(600)))].map(back);
    bench.owner.commit(|batch| batch.redrives.extend(redrives.clone())).await;
    let found = bench.owner.ready(TopicId(3)).await;
    for (row, redrive) in found.iter().zip(&redrives) {
        assert_eq!((row.key, row.attributes), (redrive.key, redrive.attributes));
        let body = row.body.as_ref().expect("comes along");
        assert_eq!(body.payload, format!("payload {}", row.key.seq.0));
    }
    assert_eq!((found.len(), walked_dead(&bench.owner, (0, 0, 0), 99, 9).await.len()), (2, 0));
    let due = bench.owner.reader.due(Sweep::Expiry, Timestamp::MIN, at(1_000), 10).await.expect("reads");
    assert_eq!(due.iter().map(|row| (row.at, row.seq)).collect::<Vec<_>>(), [(at(600), Seq(8))]);

    // It dies again: how often it came back is not forgotten.
    bench.owner.commit(|batch| batch.dead_letters.push(dead(7, 60))).await;
    let rows = bench.owner.reader.walk_dead(&topic(3).name, (TopicId(0), at(0), Seq(0)), at(99), 9).await;
    assert_eq!(rows.expect("reads")[0].item.attributes.redrives, 1);
    let stored = bench.owner.reader.items(&[Seq(7), Seq(8)], 0).await.expect("reads");
    assert!(stored.iter().all(|item| item.attributes.redrives == 1));
}
