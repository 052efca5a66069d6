//! The schema's version and the server's settings.

use forebay_store::ErrorClass;
use forebay_types::{ClusterId, ShardId};

use super::{
    Subject,
    bench::{Bench, TOPIC, item},
};

/// The newest version of a shard's schema that this program knows.
const KNOWN: u32 = 6;

/// A second migration does nothing. Of two at the same time, one does the work.
pub async fn a_migration_is_done_once(subject: Subject) {
    let (one, other) = tokio::join!(
        subject.shard.migrate(ClusterId::default()),
        subject.shard.migrate(ClusterId::default())
    );
    let mut applied = one.expect("migrates");
    applied.extend(other.expect("migrates"));
    assert!(!applied.is_empty());
    let mut once = applied.clone();
    once.dedup();
    assert_eq!(applied, once, "a version was applied twice");
    assert_eq!(subject.shard.migrate(ClusterId::default()).await.expect("migrates"), Vec::<u32>::new());
}

/// Before the first migration, the error names the command to run.
pub async fn a_shard_without_schema_says_so(subject: Subject) {
    let error = subject.shard.check().await.expect_err("there is no schema");
    assert_eq!(error.class, ErrorClass::Schema, "{error}");
    assert!(error.message.contains("forebay migrate"), "{error}");
    subject.shard.observe().await.expect_err("there is no fence");
    subject.shard.migrate(ClusterId::default()).await.expect("migrates");
    subject.shard.check().await.expect("there is a schema");
}

/// A schema knows which shard of which cluster it is, and is no other one.
pub async fn a_schema_is_one_shard(subject: Subject) {
    let (ours, other) = (ClusterId([1; 16]), ClusterId([2; 16]));
    assert_eq!(subject.shard.identity().await.expect("is asked"), None);
    subject.shard.migrate(ours).await.expect("migrates");
    let identity = subject.shard.identity().await.expect("is asked").expect("migrated");
    assert_eq!((identity.shard, identity.cluster), (ShardId(1), ours));
    assert_eq!(subject.shard.check().await.expect("checks").cluster, ours);

    let error = subject.shard.migrate(other).await.expect_err("it is of another cluster").to_string();
    assert!(error.contains(&format!("shard 1 of cluster {ours}")), "{error}");
    assert!(error.contains(&format!("shard 1 of cluster {other}")), "{error}");
    let mislabelled = (subject.renumbered)(ShardId(9));
    let error = mislabelled.check().await.expect_err("it is shard 1");
    assert_eq!(error.class, ErrorClass::Schema);
    for name in ["shard 1 of", "shard 9 of"] {
        assert!(error.message.contains(name), "{error}");
    }
    mislabelled.migrate(ours).await.expect_err("it is shard 1");
}

/// The release before the one that migrated takes shards over, until a migration excludes it. Then it only
/// keeps those that it has.
pub async fn a_later_schema_is_used_until_it_excludes_this_program(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    (bench.subject.later)(KNOWN + 1, None).await;
    bench.owner.commit(|batch| batch.inserts.push(item(1))).await;
    bench.shard().check().await.expect("may be used");
    assert_eq!(bench.shard().migrate(ClusterId::default()).await.expect("has nothing to do"), [0; 0]);
    let mut bench = bench.succeed().await;
    bench.owner.commit(|batch| batch.inserts.push(item(2))).await;
    assert_eq!(bench.owner.ready_seqs(TOPIC).await, [1, 2]);

    (bench.subject.later)(KNOWN + 2, Some(KNOWN + 1)).await;
    let refused = bench.shard().check().await.expect_err("it is for newer programs");
    assert_eq!(refused.class, ErrorClass::Schema, "{refused}");
    let refused_too = bench.shard().migrate(ClusterId::default()).await.expect_err("it is too new");
    for refused in [refused.to_string(), refused_too.to_string()] {
        assert!(refused.contains(&format!("for programs that know version {}", KNOWN + 1)), "{refused}");
    }
    bench.owner.commit(|batch| batch.inserts.push(item(3))).await;
}

/// The bound of a batch is large enough for one call of the largest legal size, if the server allows it.
pub async fn settings_bound_a_batch(subject: Subject) {
    subject.shard.migrate(ClusterId::default()).await.expect("migrates");
    let settings = subject.shard.check().await.expect("checks");
    assert!(!settings.server.is_empty());
    assert!(settings.batch_bytes >= 1 << 20, "{}", settings.batch_bytes);
}
