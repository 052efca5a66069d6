//! The fence: batches are applied whole, in order, by their owner alone.

use forebay_store::{CommitError, HighWaterMarks, Outcome, Sweep, TopicCounts};
use forebay_types::{Seq, TopicId};

use super::{
    Subject,
    bench::{Bench, Owner, TOPIC, at, entry, item, marks, scheduled, topic},
};

/// A number that is not the next one: nothing of the batch is there.
pub async fn a_wrong_number_changes_nothing(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    bench.owner.commit(|batch| batch.inserts.push(item(1))).await;
    let before = bench.owner.load().await;
    for number in [1, 3, 9] {
        let mut batch = bench.owner.batch();
        batch.number = number;
        batch.marks = Some(marks(50));
        batch.new_topics.push(topic(5));
        batch.inserts.extend([item(2), scheduled(3, at(5))]);
        batch.leases.push(entry(1, at(9)));
        batch.deletes.push(Seq(1));
        batch.count_deltas.push((TOPIC, TopicCounts { ready: 1, ..TopicCounts::default() }));
        batch.checkpoints.push((Sweep::Due, at(0)));
        match bench.owner.writer.commit(&batch).await {
            Err(CommitError::FenceMoved) => {}
            other => panic!("batch {number} after batch 1: {other:?}"),
        }
    }
    assert_eq!(bench.owner.writer.resolve(2).await.expect("answers"), Outcome::NotCommitted);
    assert_eq!(bench.owner.load().await, before);
    assert_eq!(bench.owner.ready_seqs(TOPIC).await, [1]);
    assert_eq!(bench.owner.reader.next_due(Sweep::Due, at(-9)).await.expect("reads"), None);
    bench.owner.commit(|batch| batch.inserts.push(item(2))).await;
    assert_eq!(bench.owner.ready_seqs(TOPIC).await, [1, 2]);
}

/// Number and marks; without a marks the old one stays.
pub async fn a_batch_moves_the_fence(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let marks = HighWaterMarks { seq: Seq(77), topic: TopicId(u32::MAX), rank: i64::MAX - 3, time: at(-4) };
    bench.owner.commit(|batch| batch.marks = Some(marks)).await;
    assert_eq!(bench.observe().await.batch, 1);
    bench.owner.commit(|_| {}).await;
    assert_eq!(bench.observe().await.batch, 2);
    let bench = bench.succeed().await;
    assert_eq!(bench.owner.fence.marks, marks);
    assert_eq!(bench.owner.fence.batch, 2);
}

/// It proves that the fence is ours.
pub async fn an_empty_batch_is_a_batch(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    for _ in 0..3 {
        bench.owner.commit(|_| {}).await;
    }
    assert_eq!(bench.observe().await.batch, 3);
}

/// A row that is there already fails the batch whole; its number is used by the next one.
pub async fn a_failed_batch_changes_nothing(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    bench.owner.commit(|batch| batch.inserts.push(item(5))).await;
    let mut batch = bench.owner.batch();
    batch.inserts.extend([item(4), item(5), item(6)]);
    match bench.owner.try_commit(&batch).await {
        Err(CommitError::RolledBack(_)) => {}
        other => panic!("a seq twice: {other:?}"),
    }
    assert_eq!(bench.owner.ready_seqs(TOPIC).await, [5]);
    let resolved = bench.owner.writer.resolve(batch.number).await.expect("answers");
    assert_eq!(resolved, Outcome::NotCommitted);
    bench.owner.commit(|batch| batch.inserts.push(item(6))).await;
    assert_eq!(bench.owner.ready_seqs(TOPIC).await, [5, 6]);
}

/// What the fence row says, and the writer works again.
pub async fn an_unknown_batch_is_resolved(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    bench.owner.commit(|batch| batch.inserts.push(item(1))).await;
    assert_eq!(bench.owner.writer.resolve(1).await.expect("answers"), Outcome::Committed);
    assert_eq!(bench.owner.writer.resolve(2).await.expect("answers"), Outcome::NotCommitted);
    bench.owner.commit(|batch| batch.inserts.push(item(2))).await;
    assert_eq!(bench.owner.writer.resolve(1).await.expect("answers"), Outcome::Committed);
    bench.owner.commit(|batch| batch.inserts.push(item(3))).await;
    assert!(bench.owner.heartbeat.renew().await.expect("renews").is_some());
}

/// Only an embedded store has no clock of its own.
pub async fn a_renewal_tells_the_servers_time(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let first = bench.owner.heartbeat.renew().await.expect("renews").expect("ours");
    let second = bench.owner.heartbeat.renew().await.expect("renews").expect("ours");
    assert_eq!((first.is_some(), second.is_some()), (bench.subject.steals, bench.subject.steals));
    assert!(first <= second, "{first:?}, {second:?}");
}

/// Also for a batch that was committed long ago: nobody can tell any more.
pub async fn a_lost_fence_is_foreign(subject: Subject) {
    if !subject.steals {
        return;
    }
    let mut bench = Bench::new(subject).await;
    bench.owner.commit(|batch| batch.inserts.push(item(1))).await;
    let mut old = bench.owner;
    let mut new = Owner::take(&*bench.subject.shard).await;
    assert_eq!(old.writer.resolve(1).await.expect("answers"), Outcome::Foreign);
    new.commit(|batch| batch.inserts.push(item(2))).await;
    assert_eq!(old.writer.resolve(2).await.expect("answers"), Outcome::Foreign);
    assert_eq!(new.ready_seqs(TOPIC).await, [1, 2]);
}
