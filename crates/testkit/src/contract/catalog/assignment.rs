//! Homes of shards.

use std::collections::BTreeMap;

use forebay_store::Home;
use forebay_types::ShardId;

use super::{CatalogSubject, all, home, name};

/// Only the homes that are changed change, and the rest stays.
pub async fn homes_are_read_as_they_were_written(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let first = all(&*catalog).await.assignment.expect("whoever knows nothing gets all");
    assert!(first.homes.is_empty());
    let pinned = Home { node: name("b"), pinned: true };
    let changes = [(1, Some(home("a"))), (2, Some(pinned.clone())), (u32::MAX, Some(home("c")))];
    let changes = changes.map(|(id, home)| (ShardId(id), home)).into();
    assert!(catalog.assign(first.version, &changes).await.expect("assigns"));
    let second = all(&*catalog).await.assignment.expect("reads");
    assert!(second.version > first.version);
    let homes = [(1, home("a")), (2, pinned.clone()), (u32::MAX, home("c"))];
    assert_eq!(second.homes, homes.map(|(id, home)| (ShardId(id), home)).into());

    // One more goes, one moves, one stays, and one that had no home loses it.
    let changes = [(1, None), (u32::MAX, Some(home("a"))), (5, None)];
    let changes = changes.map(|(id, home)| (ShardId(id), home)).into();
    assert!(catalog.assign(second.version, &changes).await.expect("assigns"));
    let third = all(&*catalog).await.assignment.expect("reads");
    assert_eq!(third.homes, [(ShardId(2), pinned), (ShardId(u32::MAX), home("a"))].into());
}

/// Nothing of it is applied.
pub async fn a_change_from_an_old_version_is_refused(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let change = |node: &str| BTreeMap::from([(ShardId(1), Some(home(node)))]);
    assert!(catalog.assign(1, &change("a")).await.expect("assigns"));
    let before = all(&*catalog).await;
    for version in [0, 1, before.versions.assignment + 1] {
        assert!(!catalog.assign(version, &change("b")).await.expect("answers"), "{version}");
    }
    assert_eq!(all(&*catalog).await, before);
}

/// Exactly one, in each of several rounds.
pub async fn of_two_changes_from_one_version_one_wins(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let (one, other) = ((subject.open)(), (subject.open)());
    for round in 0..10 {
        let version = all(&*catalog).await.versions.assignment;
        let change = |node: &str| [1, 2].map(|id| (ShardId(id), Some(home(node)))).into();
        let (a, b) = (change("a"), change("b"));
        let (a, b) = tokio::join!(one.assign(version, &a), other.assign(version, &b));
        let (a, b) = (a.expect("answers"), b.expect("answers"));
        assert!(a != b, "round {round}: {a} {b}");
        let now = all(&*catalog).await.assignment.expect("reads");
        assert_eq!(now.version, version + 1);
        let winner = home(if a { "a" } else { "b" });
        assert_eq!(now.homes, [(ShardId(1), winner.clone()), (ShardId(2), winner)].into());
    }
}

/// More than fit one statement.
pub async fn many_homes_change_at_once(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let changes: BTreeMap<_, _> = (1..=1_200).map(|id| (ShardId(id), Some(home("a")))).collect();
    assert!(catalog.assign(1, &changes).await.expect("assigns"));
    assert_eq!(all(&*catalog).await.assignment.expect("reads").homes.len(), 1_200);
    let changes: BTreeMap<_, _> = (1..=1_199).map(|id| (ShardId(id), None)).collect();
    assert!(catalog.assign(2, &changes).await.expect("assigns"));
    let homes = all(&*catalog).await.assignment.expect("reads").homes;
    assert_eq!(homes, BTreeMap::from([(ShardId(1_200), home("a"))]));
}
