//! Reads are of one moment, and of what the reader does not know yet.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use forebay_store::{Catalog, Versions};
use forebay_types::ShardId;

use super::{CatalogSubject, all, home, node, shards_version};

const URL: &str = "mysql://forebay@db1:3306/forebay";

/// A set of rows comes only if its version differs. Nodes always come, because they beat.
pub async fn only_what_changed_is_read(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    catalog.join(&node("a", 1), None).await.expect("joins");
    catalog.add_shard(URL, None).await.expect("is added");
    let known = all(&*catalog).await.versions;
    let nothing = catalog.read(known).await.expect("reads");
    assert_eq!((nothing.versions, nothing.shards, nothing.assignment), (known, None, None));
    assert_eq!(nothing.nodes.len(), 1);

    catalog.assign(known.assignment, &[(ShardId(1), Some(home("a")))].into()).await.expect("assigns");
    let changes = catalog.read(known).await.expect("reads");
    assert_eq!(changes.shards, None);
    let assignment = changes.assignment.expect("it has changed");
    assert_eq!((assignment.version, assignment.homes.len()), (changes.versions.assignment, 1));

    let known = changes.versions;
    catalog.add_shard(&format!("{URL}_2"), None).await.expect("is added");
    let changes = catalog.read(known).await.expect("reads");
    assert_eq!((changes.shards.expect("they have changed").len(), changes.assignment), (2, None));
}

/// A catalog that went back to an older copy must be noticed, so it is not taken for an unchanged one.
pub async fn a_lower_version_is_read(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let known = Versions { shards: 9, nodes: 9, assignment: 9, policies: 9 };
    let changes = catalog.read(known).await.expect("reads");
    assert_eq!(changes.versions, Versions { shards: 1, nodes: 1, assignment: 1, policies: 1 });
    assert!(changes.policies.whole && changes.policies.rows.is_empty());
    assert!(changes.shards.is_some() && changes.assignment.is_some());
}

/// A shard and its home go in one transaction, so no read finds a home without its shard.
pub async fn a_read_sees_one_moment(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let done = Arc::new(AtomicBool::new(false));
    let reading = tokio::spawn({
        let (catalog, done) = ((subject.open)(), done.clone());
        async move {
            let mut reads = 0;
            while !done.load(Ordering::Relaxed) {
                check_moment(&*catalog).await;
                reads += 1;
            }
            reads
        }
    });
    for _ in 0..60 {
        catalog.add_shard(URL, Some(ShardId(1))).await.expect("is added");
        let version = all(&*catalog).await.versions.assignment;
        let homes = [(ShardId(1), Some(home(&format!("from-{version}"))))].into();
        assert!(catalog.assign(version, &homes).await.expect("assigns"));
        let version = shards_version(&*catalog).await;
        catalog.remove_shard(ShardId(1), version).await.expect("is removed");
    }
    done.store(true, Ordering::Relaxed);
    assert!(reading.await.expect("no panic") > 1);
}

async fn check_moment(catalog: &dyn Catalog) {
    let seen = all(catalog).await;
    let (shards, assignment) = (seen.shards.expect("all"), seen.assignment.expect("all"));
    assert_eq!(assignment.version, seen.versions.assignment);
    for (id, found) in &assignment.homes {
        assert!(shards.iter().any(|shard| shard.id == *id), "a home without its shard");
        assert_eq!(found.node.as_str(), format!("from-{}", assignment.version - 1));
    }
}
