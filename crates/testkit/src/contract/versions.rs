//! The schema's version and the server's settings.

use forebay_store::ErrorClass;

use super::Subject;

/// A second migration does nothing. Of two at the same time, one does the work.
pub async fn a_migration_is_done_once(subject: Subject) {
    let (one, other) = tokio::join!(subject.shard.migrate(), subject.shard.migrate());
    let mut applied = one.expect("migrates");
    applied.extend(other.expect("migrates"));
    if subject.versions {
        assert!(!applied.is_empty());
    }
    let mut once = applied.clone();
    once.dedup();
    assert_eq!(applied, once, "a version was applied twice");
    assert_eq!(subject.shard.migrate().await.expect("migrates"), Vec::<u32>::new());
}

/// Before the first migration, the error names the command to run.
pub async fn a_shard_without_schema_says_so(subject: Subject) {
    if subject.versions {
        let error = subject.shard.check().await.expect_err("there is no schema");
        assert_eq!(error.class, ErrorClass::Schema, "{error}");
        assert!(error.message.contains("forebay migrate"), "{error}");
        subject.shard.observe().await.expect_err("there is no fence");
    }
    subject.shard.migrate().await.expect("migrates");
    subject.shard.check().await.expect("there is a schema");
}

/// The bound of a batch is large enough for one call of the largest legal size, if the server allows it.
pub async fn settings_bound_a_batch(subject: Subject) {
    subject.shard.migrate().await.expect("migrates");
    let settings = subject.shard.check().await.expect("checks");
    assert!(!settings.server.is_empty());
    assert!(settings.batch_bytes >= 1 << 20, "{}", settings.batch_bytes);
}
