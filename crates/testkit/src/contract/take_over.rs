//! Owners come and go.

use forebay_store::{CommitError, Outcome};
use forebay_types::Seq;

use super::{
    Subject,
    bench::{Bench, Owner, TOPIC, claim, item, marks, topic},
};

/// Nothing is there, and the fence stands at its beginning.
pub async fn the_first_owner_finds_a_clean_shard(subject: Subject) {
    subject.shard.migrate().await.expect("migrates");
    let seen = subject.shard.observe().await.expect("observes");
    assert_eq!((seen.epoch, seen.batch, seen.address.as_str()), (0, 0, ""));
    let claim = claim();
    let owned = subject.shard.take_over(&claim, &seen).await.expect("takes over").expect("is free");
    assert_eq!(owned.fence.epoch, 1);
    assert_eq!(owned.fence.batch, 0);
    assert_eq!(owned.fence.incarnation, claim.incarnation);
    assert_eq!(owned.fence.marks.seq, Seq(0));
    assert_eq!(owned.reader.load().await.expect("loads"), forebay_store::ShardSnapshot::default());
    let seen = subject.shard.observe().await.expect("observes");
    assert_eq!((seen.epoch, seen.batch, seen.address), (1, 0, claim.address));
}

/// Epoch + 1; batch numbers and marks go on; everything is there.
pub async fn the_next_owner_goes_on(subject: Subject) {
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

/// The old owner can write nothing any more and learns of it; or, where the store can't push it aside, the
/// claim fails and the old owner goes on.
pub async fn an_owner_that_lives_is_pushed_aside_or_stays(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let seen = bench.observe().await;
    if !bench.subject.steals {
        assert!(!seen.orphaned);
        assert!(bench.shard().take_over(&claim(), &seen).await.expect("answers").is_none());
        bench.owner.commit(|batch| batch.inserts.push(item(1))).await;
        assert_eq!(bench.owner.heartbeat.renew().await.expect("renews"), Some(None));
        drop(bench.owner);
        let seen = bench.subject.shard.observe().await.expect("observes");
        assert!(seen.orphaned);
        return;
    }
    let mut old = bench.owner;
    let new = Owner::take(&*bench.subject.shard).await;
    let mut batch = old.batch();
    batch.inserts.push(item(1));
    match old.try_commit(&batch).await {
        // A connection that was killed can't say how far it came.
        Err(CommitError::FenceMoved | CommitError::RolledBack(_) | CommitError::Unknown(_)) => {}
        other => panic!("the old owner: {other:?}"),
    }
    assert_eq!(old.writer.resolve(batch.number).await.expect("answers"), Outcome::Foreign);
    match old.try_commit(&batch).await {
        Err(CommitError::FenceMoved) => {}
        other => panic!("the old owner, connected anew: {other:?}"),
    }
    assert_eq!(renewed(&mut old).await, None, "the heartbeat belongs to the new owner");
    assert_eq!(new.ready_seqs(TOPIC).await, Vec::<u64>::new());
}

/// The claim fails if epoch or batch have moved since.
pub async fn what_was_seen_must_still_hold(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let before = bench.observe().await;
    bench.owner.commit(|batch| batch.inserts.push(item(1))).await;
    if bench.subject.steals {
        let claimed = bench.shard().take_over(&claim(), &before).await.expect("answers");
        assert!(claimed.is_none(), "the batch has moved");
        // A claim that failed is no reason for the owner to stop, though it may have to connect anew.
        if bench.owner.try_commit(&bench.owner.batch()).await.is_err() {
            let next = bench.owner.batch();
            let resolved = bench.owner.writer.resolve(next.number).await.expect("answers");
            assert_eq!(resolved, Outcome::NotCommitted);
            bench.owner.try_commit(&next).await.expect("goes on");
        }
    }
    let seen = bench.observe().await;
    let bench = bench.succeed().await;
    drop(bench.owner);
    let claimed = bench.subject.shard.take_over(&claim(), &seen).await.expect("answers");
    assert!(claimed.is_none(), "the epoch has moved");
    let now = bench.subject.shard.observe().await.expect("observes");
    assert_eq!(now.epoch, seen.epoch + 1, "a claim that fails changes nothing");
}

/// Two at the same moment.
pub async fn of_two_candidates_one_wins(subject: Subject) {
    race(subject, 2).await;
}

/// Many at the same moment.
pub async fn of_many_candidates_one_wins(subject: Subject) {
    race(subject, 6).await;
}

async fn race(subject: Subject, candidates: usize) {
    subject.shard.migrate().await.expect("migrates");
    let seen = subject.shard.observe().await.expect("observes");
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..candidates {
        let (shard, seen) = (subject.shard.clone(), seen.clone());
        tasks.spawn(async move { shard.take_over(&claim(), &seen).await });
    }
    let mut owners = Vec::new();
    while let Some(result) = tasks.join_next().await {
        // A loser may be told that it lost, or that a conflict rolled its claim back.
        if let Ok(Some(owned)) = result.expect("no panic") {
            owners.push(Owner::from(owned));
        }
    }
    assert_eq!(owners.len(), 1, "exactly one wins");
    assert_eq!(owners[0].fence.epoch, 1);
    owners[0].commit(|batch| batch.inserts.push(item(1))).await;
}

/// Whoever looks sees at once that the shard is free.
pub async fn a_release_clears_the_address(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let before = bench.observe().await;
    assert_ne!(before.address, "");
    bench.owner.writer.release().await.expect("releases");
    let after = bench.observe().await;
    assert_eq!(after.address, "");
    assert_eq!((after.epoch, after.batch), (before.epoch, before.batch));
    bench.succeed().await;
}

/// Each renewal is one beat.
pub async fn a_renewal_is_seen(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let before = bench.observe().await;
    assert_eq!(bench.observe().await, before, "nothing moved");
    for renewals in 1..=3 {
        assert!(renewed(&mut bench.owner).await.is_some());
        assert_eq!(bench.observe().await.renewals, before.renewals + renewals);
    }
}

/// It must not clear its successor's address.
pub async fn a_release_by_an_old_owner_does_nothing(subject: Subject) {
    if !subject.steals {
        return;
    }
    let bench = Bench::new(subject).await;
    let mut old = bench.owner;
    let new = Owner::take(&*bench.subject.shard).await;
    // The connection was killed: an error is as good.
    let _ = old.writer.release().await;
    let _ = old.writer.release().await;
    let seen = bench.subject.shard.observe().await.expect("observes");
    assert_ne!(seen.address, "");
    assert_eq!(seen.epoch, new.fence.epoch);
}

/// Renews, and once more where the connection was killed.
async fn renewed(owner: &mut Owner) -> Option<Option<forebay_types::Timestamp>> {
    match owner.heartbeat.renew().await {
        Ok(renewed) => renewed,
        Err(_) => owner.heartbeat.renew().await.expect("connects anew"),
    }
}
