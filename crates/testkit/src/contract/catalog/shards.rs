//! Shards are added, drained and removed.

use std::collections::{BTreeMap, BTreeSet};

use forebay_store::{Catalog, CatalogError, CatalogShard, CatalogShardState};
use forebay_types::ShardId;

use super::{CatalogSubject, all, home, shards_version};

fn url(number: u32) -> String {
    format!("mysql://forebay@db{number}:3306/forebay")
}

async fn add(catalog: &dyn Catalog, number: u32, id: Option<u32>) -> u32 {
    catalog.add_shard(&url(number), id.map(ShardId)).await.expect("is added").0
}

async fn remove(catalog: &dyn Catalog, id: u32) -> Result<(), CatalogError> {
    catalog.remove_shard(ShardId(id), shards_version(catalog).await).await
}

async fn shards(catalog: &dyn Catalog) -> Vec<CatalogShard> {
    all(catalog).await.shards.expect("whoever knows nothing gets all")
}

/// Rows of a shard that is gone may be found again: its number must not lead to another.
pub async fn shards_get_numbers_that_are_never_reused(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    assert_eq!(add(&*catalog, 1, None).await, 1);
    assert_eq!(add(&*catalog, 2, None).await, 2);
    remove(&*catalog, 2).await.expect("is removed");
    assert_eq!(add(&*catalog, 3, None).await, 3);
    assert_eq!(add(&*catalog, 4, Some(9)).await, 9);
    assert_eq!(add(&*catalog, 5, None).await, 10);
    assert_eq!(add(&*catalog, 2, Some(2)).await, 2, "removed by mistake");
    assert_eq!(add(&*catalog, 6, None).await, 11);
    let expected = [(1, 1), (2, 2), (3, 3), (9, 4), (10, 5), (11, 6)];
    let state = CatalogShardState::Active;
    let expected = expected.map(|(id, at)| CatalogShard { id: ShardId(id), url: url(at), state });
    assert_eq!(shards(&*catalog).await, expected);
}

/// A URL or a number that is there is refused, and nothing changes.
pub async fn a_shard_is_added_once(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    add(&*catalog, 1, Some(u32::MAX)).await;
    let before = all(&*catalog).await;
    let with_url = catalog.add_shard(&url(1), Some(ShardId(5))).await;
    assert!(matches!(with_url, Err(CatalogError::UrlTaken(ShardId(u32::MAX)))), "{with_url:?}");
    for id in [Some(ShardId(u32::MAX)), None] {
        let with_id = catalog.add_shard(&url(2), id).await;
        assert!(matches!(with_id, Err(CatalogError::NumberTaken(ShardId(u32::MAX)))), "{with_id:?}");
    }
    let wrong = catalog.add_shard("postgres://db1/forebay", None).await;
    assert!(matches!(wrong, Err(CatalogError::Url(_))), "{wrong:?}");
    assert_eq!(all(&*catalog).await, before);
}

/// Everybody with an account on the catalog can read its URLs.
pub async fn a_password_is_not_stored(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let refused = catalog.add_shard("mysql://forebay:secret@db1/forebay", None).await;
    let error = refused.expect_err("it has a password");
    assert!(matches!(error, CatalogError::Password));
    assert!(error.to_string().contains("password") && !error.to_string().contains("secret"), "{error}");
    assert!(shards(&*catalog).await.is_empty());
}

/// Each change moves the version of the shards alone.
pub async fn a_shard_changes_its_state(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    add(&*catalog, 1, None).await;
    for state in [CatalogShardState::Draining, CatalogShardState::Offline, CatalogShardState::Active] {
        let before = all(&*catalog).await.versions;
        catalog.set_shard_state(ShardId(1), state, before.shards).await.expect("changes");
        let after = all(&*catalog).await;
        assert_eq!(after.shards.expect("reads")[0].state, state);
        assert!(after.versions.shards > before.shards);
        assert_eq!((after.versions.nodes, after.versions.assignment), (before.nodes, before.assignment));
    }
    let before = all(&*catalog).await;
    let missing =
        catalog.set_shard_state(ShardId(2), CatalogShardState::Offline, before.versions.shards).await;
    assert!(matches!(missing, Err(CatalogError::NoShard(ShardId(2)))), "{missing:?}");
    assert_eq!(all(&*catalog).await, before);
}

/// Two shards never have one address, and the catalog keeps no password.
pub async fn a_shard_changes_its_address(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let urls = [add(&*catalog, 1, None).await, add(&*catalog, 2, None).await];
    assert_eq!(urls, [1, 2]);
    let before = all(&*catalog).await;
    let version = before.versions.shards;
    let other = before.shards.as_ref().expect("reads")[1].url.clone();
    let moved = "mysql://forebay@elsewhere/forebay_0001";
    for (id, url, from) in [
        (1, &*other, version),
        (3, moved, version),
        (1, moved, version - 1),
        (1, "mysql://forebay:secret@elsewhere/forebay_0001", version),
    ] {
        let refused = catalog.set_shard_url(ShardId(id), url, from).await.expect_err("is refused");
        assert!(!refused.to_string().contains("secret"), "{refused}");
    }
    assert_eq!(all(&*catalog).await, before);
    catalog.set_shard_url(ShardId(1), moved, version).await.expect("changes");
    let after = all(&*catalog).await;
    let urls: Vec<_> = after.shards.as_ref().expect("reads").iter().map(|shard| &*shard.url).collect();
    assert_eq!(urls, [moved, &*other]);
    assert!(after.versions.shards > version);
    assert_eq!(after.versions.nodes, before.versions.nodes);
}

/// A home of no shard would stay for ever.
pub async fn a_shard_goes_with_its_home(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    for number in [1, 2] {
        add(&*catalog, number, None).await;
    }
    let homes = BTreeMap::from([(ShardId(1), Some(home("a"))), (ShardId(2), Some(home("b")))]);
    assert!(catalog.assign(1, &homes).await.expect("assigns"));
    let before = all(&*catalog).await.versions;
    remove(&*catalog, 1).await.expect("is removed");
    let after = all(&*catalog).await;
    assert_eq!(after.shards.expect("reads").iter().map(|shard| shard.id.0).collect::<Vec<_>>(), [2]);
    assert_eq!(after.assignment.expect("reads").homes, BTreeMap::from([(ShardId(2), home("b"))]));
    assert!(after.versions.shards > before.shards && after.versions.assignment > before.assignment);
    let again = remove(&*catalog, 1).await;
    assert!(matches!(again, Err(CatalogError::NoShard(ShardId(1)))), "{again:?}");
    assert_eq!(all(&*catalog).await.versions, after.versions);
}

/// Two operators must not drain the last two shards at once, nor one remove what another has taken back.
pub async fn a_shard_is_changed_from_the_shards_as_they_are(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    for number in [1, 2] {
        add(&*catalog, number, None).await;
    }
    let from = shards_version(&*catalog).await;
    let drain = async |id| catalog.set_shard_state(ShardId(id), CatalogShardState::Draining, from).await;
    drain(1).await.expect("changes");
    let before = all(&*catalog).await;
    for stale in [drain(2).await, catalog.remove_shard(ShardId(1), from).await] {
        assert!(matches!(stale, Err(CatalogError::Stale)), "{stale:?}");
    }
    assert_eq!(all(&*catalog).await, before);
    remove(&*catalog, 1).await.expect("is removed");
}

/// Several operators at once.
pub async fn shards_added_at_once_have_different_numbers(subject: CatalogSubject) {
    subject.migrated().await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 1..=6 {
        let catalog = (subject.open)();
        tasks.spawn(async move { add(&*catalog, number, None).await });
    }
    let numbers: BTreeSet<u32> = tasks.join_all().await.into_iter().collect();
    assert_eq!(numbers, BTreeSet::from([1, 2, 3, 4, 5, 6]));
}
