//! The schema's version and the server's settings.

use forebay_store::ErrorClass;
use forebay_types::{ClusterId, ShardId};

use super::Subject;

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

/// The bound of a batch is large enough for one call of the largest legal size, if the server allows it.
pub async fn settings_bound_a_batch(subject: Subject) {
    subject.shard.migrate(ClusterId::default()).await.expect("migrates");
    let settings = subject.shard.check().await.expect("checks");
    assert!(!settings.server.is_empty());
    assert!(settings.batch_bytes >= 1 << 20, "{}", settings.batch_bytes);
}
