//! Connections that are lost, and callers that go away.

use std::{future::Future, pin::pin, task::Context};

use forebay_store::{Beat, JoinOutcome};
use forebay_types::ShardId;

use super::{CatalogSubject, all, home, node};

/// Reads, beats and changes go on. None of them fails: a killed connection has committed nothing since.
pub async fn a_lost_connection_is_replaced(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let Some(cut) = &subject.cut else { return };
    let node = node("a", 1);
    assert_eq!(catalog.join(&node, None).await.expect("joins"), JoinOutcome::Yes);
    all(&*catalog).await;
    cut().await;
    let version = all(&*catalog).await.versions.assignment;
    cut().await;
    let beat = catalog.beat(&node.name, node.incarnation, &node.report).await;
    assert_eq!(beat.expect("beats"), Beat::Ok);
    cut().await;
    let homes = [(ShardId(1), Some(home("a")))].into();
    assert!(catalog.assign(version, &homes).await.expect("assigns"));
    cut().await;
    assert!(catalog.leave(&node.name, node.incarnation).await.expect("leaves"));
}

/// A caller that stops waiting in the middle of a change holds nobody else up, and leaves nothing half done.
pub async fn an_abandoned_change_is_rolled_back(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let homes = [1, 2].map(|id| (ShardId(id), Some(home("a")))).into();
    for polls in 1..12 {
        let version = all(&*catalog).await.versions.assignment;
        {
            let mut assigning = pin!(catalog.assign(version, &homes));
            let mut polled = 0;
            std::future::poll_fn(|context: &mut Context<'_>| {
                polled += 1;
                match assigning.as_mut().poll(context) {
                    std::task::Poll::Pending if polled < polls => std::task::Poll::Pending,
                    _ => std::task::Poll::Ready(()),
                }
            })
            .await;
        }
        let other = (subject.open)();
        let version = all(&*other).await.versions.assignment;
        let empty = [(ShardId(1), None), (ShardId(2), None)].into();
        // The abandoned change may be committed a moment later; then this one starts from an old version.
        let _ = other.assign(version, &empty).await.expect("is not held up");
        let homes = all(&*other).await.assignment.expect("reads").homes;
        assert!(homes.is_empty() || homes.len() == 2, "{homes:?}");
    }
}
