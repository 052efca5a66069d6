//! The schema's version, and which cluster it is of.

use forebay_store::{ErrorClass, Versions};
use forebay_types::ClusterId;

use super::{CLUSTER, CatalogSubject, all};

/// The newest version of a catalog's schema that this program knows.
const KNOWN: u32 = 13;

/// A second migration does nothing. Of two at the same time, one does the work.
pub async fn a_catalog_is_migrated_once(subject: CatalogSubject) {
    let (one, other) = ((subject.open)(), (subject.open)());
    let (one, other) = tokio::join!(one.migrate(CLUSTER), other.migrate(CLUSTER));
    let mut applied = one.expect("migrates");
    applied.extend(other.expect("migrates"));
    assert_eq!(applied, (1..=KNOWN).collect::<Vec<_>>());
    let catalog = subject.migrated().await;
    assert_eq!(catalog.migrate(CLUSTER).await.expect("migrates"), Vec::<u32>::new());
    catalog.check().await.expect("is whole");
}

/// The id of a new cluster is for a new catalog only.
pub async fn a_catalog_keeps_its_cluster(subject: CatalogSubject) {
    let catalog = (subject.open)();
    assert_eq!(catalog.cluster().await.expect("is asked"), None);
    catalog.migrate(CLUSTER).await.expect("migrates");
    catalog.migrate(ClusterId([8; 16])).await.expect("migrates");
    assert_eq!(catalog.cluster().await.expect("is asked"), Some(CLUSTER));
    assert_eq!(all(&*catalog).await.cluster, CLUSTER);
}

/// Before the first migration, every error names the command to run.
pub async fn a_catalog_without_schema_names_the_command(subject: CatalogSubject) {
    let catalog = (subject.open)();
    let errors = [
        catalog.check().await.expect_err("there is no schema"),
        catalog.read(Versions::default()).await.expect_err("there is no schema"),
        catalog.assign(0, &Default::default()).await.expect_err("there is no schema"),
    ];
    for error in errors {
        assert_eq!(error.class, ErrorClass::Schema, "{error}");
        assert!(error.message.contains("run `forebay migrate --catalog`"), "{error}");
    }
    let error = catalog.remove_shard(forebay_types::ShardId(1), 1).await.expect_err("there is no schema");
    assert!(error.to_string().contains("run `forebay migrate --catalog`"), "{error}");
    catalog.migrate(CLUSTER).await.expect("migrates");
    all(&*catalog).await;
}

/// Their migrations have the same numbers, so only their tables tell them apart.
pub async fn a_shard_and_a_catalog_are_not_confused(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    for error in [
        subject.shard.migrate(CLUSTER).await.expect_err("it is a catalog").to_string(),
        subject.shard.check().await.expect_err("it is a catalog").to_string(),
    ] {
        assert!(error.contains("not a shard"), "{error}");
    }
    catalog.check().await.expect("is as it was");
}

/// The release before the one that migrated goes on with the catalog, until a migration excludes it.
pub async fn a_later_catalog_is_used_until_it_excludes_this_program(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    (subject.later)(KNOWN + 1, None).await;
    let again = (subject.open)();
    again.check().await.expect("may be used");
    assert_eq!(again.migrate(CLUSTER).await.expect("has nothing to do"), [0; 0]);
    all(&*again).await;

    (subject.later)(KNOWN + 2, Some(KNOWN + 1)).await;
    for refused in [
        catalog.check().await.expect_err("it is for newer programs").to_string(),
        again.migrate(CLUSTER).await.expect_err("it is too new").to_string(),
    ] {
        assert!(refused.contains(&format!("for programs that know version {}", KNOWN + 1)), "{refused}");
    }
}
