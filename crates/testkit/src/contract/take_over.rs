//! Changes of owner.

use forebay_store::{CommitError, HighWaterMarks, Outcome, ReadAhead, Renewal, ShardSnapshot};
use forebay_types::{ClusterId, Seq, TopicId};

use super::{
    Subject,
    bench::{Bench, Owner, TOPIC, claim, item, marks, topic},
};

/// The shard is empty, and the fence has its first values.
pub async fn the_first_owner_finds_a_clean_shard(subject: Subject) {
    subject.shard.migrate(ClusterId::default()).await.expect("migrates");
    let seen = subject.shard.observe().await.expect("observes");
    assert_eq!((seen.epoch, seen.batch, seen.address.as_str()), (0, 0, ""));
    let claim = claim();
    let owned = subject.shard.take_over(&claim, &seen).await.expect("takes over").expect("is free");
    assert_eq!(owned.fence.epoch, 1);
    assert_eq!(owned.fence.batch, 0);
    assert_eq!(owned.fence.incarnation, claim.incarnation);
    assert_eq!(owned.fence.marks.seq, Seq(0));
    assert_eq!(owned.reader.load(ReadAhead::default()).await.expect("loads"), ShardSnapshot::default());
    let seen = subject.shard.observe().await.expect("observes");
    assert_eq!((seen.epoch, seen.batch, seen.address), (1, 0, claim.address));
    assert_eq!((seen.incarnation, seen.lease), (claim.incarnation, claim.lease));
}

/// A probe changes nothing of the shard, and whoever can write to the server may make one.
pub async fn a_probe_changes_nothing(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let before = bench.observe().await;
    for _ in 0..2 {
        bench.shard().probe().await.expect("commits");
    }
    assert_eq!(bench.observe().await, before);
    bench.owner.commit(|batch| batch.inserts.push(item(1))).await;
}

/// The epoch is incremented, batch numbers and marks continue, and no data is lost.
pub async fn the_next_owner_continues(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    bench
        .owner
        .commit(|batch| {
            batch.marks = Some(marks(3));
            batch.new_topics.push(topic(1));
            batch.inserts.push(item(3));
        })
        .await;
    let mut bench = bench.succeed().await;
    assert_eq!((bench.owner.fence.epoch, bench.owner.fence.batch), (2, 1));
    assert_eq!(bench.owner.fence.marks, marks(3));
    assert_eq!(bench.owner.ready_seqs(TOPIC).await, [3]);
    bench.owner.commit(|batch| batch.inserts.push(item(4))).await;
    assert_eq!(bench.owner.ready_seqs(TOPIC).await, [3, 4]);
}

/// A number that a row has is not given out again, whatever the fence says.
pub async fn a_fence_behind_its_rows_is_raised(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    bench
        .owner
        .commit(|batch| {
            batch.marks = Some(marks(3));
            batch.new_topics.push(topic(9));
            batch.inserts.extend([item(3), item(70)]);
        })
        .await;
    let mut bench = bench.succeed().await;
    let raised = HighWaterMarks { seq: Seq(70), topic: TopicId(9), ..marks(3) };
    assert_eq!((bench.owner.fence.batch, bench.owner.fence.marks), (1, raised));
    bench.owner.commit(|batch| batch.inserts.push(item(71))).await;
    assert_eq!(bench.owner.ready_seqs(TOPIC).await, [3, 70, 71]);
}

/// The old owner can no longer write, and learns that. If the store cannot replace a living owner, the claim
/// fails and the old owner continues.
pub async fn a_living_owner_is_replaced_or_stays(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let seen = bench.observe().await;
    if !bench.subject.steals {
        assert!(!seen.orphaned);
        assert!(bench.shard().take_over(&claim(), &seen).await.expect("answers").is_none());
        bench.owner.commit(|batch| batch.inserts.push(item(1))).await;
        assert_ne!(bench.owner.heartbeat.renew().await.expect("renews"), Renewal::Lost);
        drop(bench.owner);
        let seen = bench.subject.shard.observe().await.expect("observes");
        assert!(seen.orphaned);
        return;
    }
    let mut old = bench.owner;
    let new = Owner::take(&bench.subject.shard).await;
    let mut batch = old.batch();
    batch.inserts.push(item(1));
    match old.try_commit(&batch).await {
        // A killed connection cannot report how far it got.
        Err(CommitError::FenceMoved | CommitError::RolledBack(_) | CommitError::Unknown(_)) => {}
        other => panic!("the old owner: {other:?}"),
    }
    assert_eq!(old.writer.resolve(batch.number).await.expect("answers"), Outcome::Foreign);
    match old.try_commit(&batch).await {
        Err(CommitError::FenceMoved) => {}
        other => panic!("the old owner, on a new connection: {other:?}"),
    }
    assert_eq!(renew(&mut old).await, Renewal::Lost, "the heartbeat belongs to the new owner");
    assert_eq!(new.ready_seqs(TOPIC).await, Vec::<u64>::new());
}

/// The claim fails if the epoch or the batch has changed since.
pub async fn what_was_seen_must_still_hold(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let before = bench.observe().await;
    bench.owner.commit(|batch| batch.inserts.push(item(1))).await;
    if bench.subject.steals {
        let claimed = bench.shard().take_over(&claim(), &before).await.expect("answers");
        assert!(claimed.is_none(), "the batch has changed");
        // A failed claim does not stop the owner, but it may have to connect again.
        if bench.owner.try_commit(&bench.owner.batch()).await.is_err() {
            let next = bench.owner.batch();
            let resolved = bench.owner.writer.resolve(next.number).await.expect("answers");
            assert_eq!(resolved, Outcome::NotCommitted);
            bench.owner.try_commit(&next).await.expect("commits");
        }
    }
    if bench.subject.steals {
        let before = bench.observe().await;
        assert_ne!(bench.owner.heartbeat.renew().await.expect("renews"), Renewal::Lost);
        let claimed = bench.shard().take_over(&claim(), &before).await.expect("answers");
        assert!(claimed.is_none(), "the claim was renewed: the owner trusts that");
        assert_ne!(bench.owner.heartbeat.renew().await.expect("renews"), Renewal::Lost);
    }
    let seen = bench.observe().await;
    let bench = bench.succeed().await;
    drop(bench.owner);
    let claimed = bench.subject.shard.take_over(&claim(), &seen).await.expect("answers");
    assert!(claimed.is_none(), "the epoch has changed");
    let now = bench.subject.shard.observe().await.expect("observes");
    assert_eq!(now.epoch, seen.epoch + 1, "a claim that fails changes nothing");
}

/// Two claims at the same time.
pub async fn of_two_candidates_one_wins(subject: Subject) {
    race(subject, 2).await;
}

/// Many claims at the same time.
pub async fn of_many_candidates_one_wins(subject: Subject) {
    race(subject, 6).await;
}

async fn race(subject: Subject, candidates: usize) {
    subject.shard.migrate(ClusterId::default()).await.expect("migrates");
    let seen = subject.shard.observe().await.expect("observes");
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..candidates {
        let (shard, seen) = (subject.shard.clone(), seen.clone());
        tasks.spawn(async move { shard.take_over(&claim(), &seen).await });
    }
    let mut owners = Vec::new();
    while let Some(result) = tasks.join_next().await {
        // A loser learns that it lost, or that a conflict rolled its claim back.
        if let Ok(Some(owned)) = result.expect("no panic") {
            owners.push(Owner::new(&subject.shard, ReadAhead::default(), owned));
        }
    }
    assert_eq!(owners.len(), 1, "exactly one wins");
    assert_eq!(owners[0].fence.epoch, 1);
    owners[0].commit(|batch| batch.inserts.push(item(1))).await;
}

/// Other nodes see at once that the shard is free, and for whom.
pub async fn a_release_clears_the_address(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let before = bench.observe().await;
    assert_ne!(before.address, "");
    bench.owner.writer.release("node-9:7420").await.expect("releases");
    let after = bench.observe().await;
    assert_eq!(after.address, "");
    assert_eq!(after.successor, "node-9:7420");
    assert_eq!((after.epoch, after.batch), (before.epoch, before.batch));
    assert_eq!(after.renewals, before.renewals + 1, "whoever saw it before has seen nothing of the release");
    let bench = bench.succeed().await;
    assert_eq!(bench.observe().await.successor, "", "it has come");
}

/// Each renewal is counted once.
pub async fn a_renewal_is_seen(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let before = bench.observe().await;
    assert_eq!(bench.observe().await, before, "nothing has changed");
    for renewals in 1..=3 {
        assert_ne!(renew(&mut bench.owner).await, Renewal::Lost);
        assert_eq!(bench.observe().await.renewals, before.renewals + renewals);
    }
}

/// It does not clear its successor's address.
pub async fn a_release_by_an_old_owner_does_nothing(subject: Subject) {
    if !subject.steals {
        return;
    }
    let bench = Bench::new(subject).await;
    let mut old = bench.owner;
    let new = Owner::take(&bench.subject.shard).await;
    // The connection was killed, so an error is fine too.
    let _ = old.writer.release("").await;
    let _ = old.writer.release("").await;
    let seen = bench.subject.shard.observe().await.expect("observes");
    assert_ne!(seen.address, "");
    assert_eq!(seen.epoch, new.fence.epoch);
}

/// Renews, a second time if the connection was killed.
async fn renew(owner: &mut Owner) -> Renewal {
    match owner.heartbeat.renew().await {
        Ok(renewal) => renewal,
        Err(_) => owner.heartbeat.renew().await.expect("connects again"),
    }
}
