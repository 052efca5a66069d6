//! The fence: batches are applied atomically, in order, and only by the owner.

use forebay_store::{
    Checkpoint, CommitError, ErrorClass, HighWaterMarks, Outcome, Renewal, Sweep, TopicCounts,
};
use forebay_types::{Seq, Timestamp, TopicId};

use super::{
    Subject,
    bench::{Bench, Owner, TOPIC, at, entry, item, marks, scheduled, topic},
};

/// If the number is not the next one, nothing of the batch is stored.
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
        batch.checkpoints.push(Checkpoint { sweep: Sweep::Due, at: at(0) });
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

/// The fence gets the batch's number and high-water marks. A batch without marks keeps the old ones.
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

/// An empty batch proves that the fence is ours.
pub async fn an_empty_batch_is_a_batch(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    for _ in 0..3 {
        bench.owner.commit(|_| {}).await;
    }
    assert_eq!(bench.observe().await.batch, 3);
}

/// A duplicate row fails the whole batch. The next batch uses its number.
pub async fn a_failed_batch_changes_nothing(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    bench.owner.commit(|batch| batch.inserts.push(item(5))).await;
    let mut batch = bench.owner.batch();
    batch.inserts.extend([item(4), item(5), item(6)]);
    match bench.owner.try_commit(&batch).await {
        Err(CommitError::RolledBack(error)) => assert_eq!(error.class, ErrorClass::Duplicate, "{error}"),
        other => panic!("a seq twice: {other:?}"),
    }
    assert_eq!(bench.owner.ready_seqs(TOPIC).await, [5]);
    let resolved = bench.owner.writer.resolve(batch.number).await.expect("answers");
    assert_eq!(resolved, Outcome::NotCommitted);
    bench.owner.commit(|batch| batch.inserts.push(item(6))).await;
    assert_eq!(bench.owner.ready_seqs(TOPIC).await, [5, 6]);
}

/// The fence row has the outcome, and the writer works again.
pub async fn an_unknown_batch_is_resolved(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    bench.owner.commit(|batch| batch.inserts.push(item(1))).await;
    assert_eq!(bench.owner.writer.resolve(1).await.expect("answers"), Outcome::Committed);
    assert_eq!(bench.owner.writer.resolve(2).await.expect("answers"), Outcome::NotCommitted);
    bench.owner.commit(|batch| batch.inserts.push(item(2))).await;
    assert_eq!(bench.owner.writer.resolve(1).await.expect("answers"), Outcome::Committed);
    bench.owner.commit(|batch| batch.inserts.push(item(3))).await;
    assert_ne!(bench.owner.heartbeat.renew().await.expect("renews"), Renewal::Lost);
}

/// A server has a clock of its own. An embedded store has none.
pub async fn a_renewal_returns_the_servers_time(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let (first, second) = (server_time(&mut bench.owner).await, server_time(&mut bench.owner).await);
    assert_eq!((first.is_some(), second.is_some()), (bench.subject.steals, bench.subject.steals));
    assert!(first <= second, "{first:?}, {second:?}");
}

async fn server_time(owner: &mut Owner) -> Option<Timestamp> {
    match owner.heartbeat.renew().await.expect("renews") {
        Renewal::Renewed { server_time } => server_time,
        Renewal::Lost => panic!("the shard has another owner"),
    }
}

/// Even the outcome of a batch that was committed long ago is unknown.
pub async fn a_lost_fence_is_foreign(subject: Subject) {
    if !subject.steals {
        return;
    }
    let mut bench = Bench::new(subject).await;
    bench.owner.commit(|batch| batch.inserts.push(item(1))).await;
    let mut old = bench.owner;
    let mut new = Owner::take(&bench.subject.shard).await;
    assert_eq!(old.writer.resolve(1).await.expect("answers"), Outcome::Foreign);
    new.commit(|batch| batch.inserts.push(item(2))).await;
    assert_eq!(old.writer.resolve(2).await.expect("answers"), Outcome::Foreign);
    assert_eq!(new.ready_seqs(TOPIC).await, [1, 2]);
}
