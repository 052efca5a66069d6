//! Calls with a request id: begun once, answered once, forgotten.

use forebay_store::{Catalog, NewRequest, RequestEnd, RequestFound};
use forebay_types::Timestamp;

use super::{CatalogSubject, all};

fn request(id: u8, digest: u8, begun: i64) -> NewRequest {
    NewRequest {
        id: [id; 32],
        digest: [digest; 32],
        begun_at: Timestamp::from_micros(begun),
        over_before: Timestamp::from_micros(begun - 30),
        forget_before: Timestamp::from_micros(begun - 100),
    }
}

async fn begin(catalog: &dyn Catalog, id: u8, digest: u8, begun: i64) -> RequestFound {
    catalog.begin_request(&request(id, digest, begun)).await.expect("answers")
}

/// How the call ended that began then, under the id 1.
async fn end(catalog: &dyn Catalog, begun: i64, end: RequestEnd) {
    catalog.end_request(&[1; 32], Timestamp::from_micros(begun), &end).await.expect("answers");
}

fn given_up(counts_from: i64) -> RequestEnd {
    RequestEnd::GivenUp(Timestamp::from_micros(counts_from))
}

fn answered(answer: &[u8]) -> RequestEnd {
    RequestEnd::Answered(answer.to_vec())
}

/// By whoever opens the catalog. Nothing else changes.
pub async fn the_first_answer_of_a_request_is_kept(subject: CatalogSubject) {
    let (catalog, other) = (subject.migrated().await, (subject.open)());
    let before = all(&*catalog).await;
    assert_eq!(begin(&*catalog, 1, 1, 1_000).await, RequestFound::First);
    assert_eq!(begin(&*other, 1, 1, 1_001).await, RequestFound::UnderWay);
    assert_eq!(begin(&*other, 1, 2, 1_001).await, RequestFound::Differs);
    end(&*other, 1_000, answered(b"one\0")).await;
    end(&*catalog, 1_000, answered(b"two")).await;
    end(&*catalog, 1_000, RequestEnd::NoEffect).await;
    end(&*catalog, 1_000, given_up(1)).await;
    assert_eq!(begin(&*catalog, 1, 1, 1_100).await, RequestFound::Answered(b"one\0".to_vec()));
    assert_eq!(begin(&*catalog, 1, 2, 1_100).await, RequestFound::Differs);
    assert_eq!(begin(&*catalog, 1, 2, 1_101).await, RequestFound::First, "it was forgotten");
    end(&*catalog, 1_101, answered(b"")).await;
    assert_eq!(begin(&*catalog, 1, 2, 1_102).await, RequestFound::Answered(vec![]));
    assert_eq!(all(&*catalog).await, before);
}

/// As if it had not been made.
pub async fn a_request_without_effect_is_forgotten(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    end(&*catalog, 1_000, RequestEnd::NoEffect).await;
    end(&*catalog, 1_000, answered(b"nobody has asked")).await;
    assert_eq!(begin(&*catalog, 1, 1, 1_000).await, RequestFound::First);
    end(&*catalog, 1_000, RequestEnd::NoEffect).await;
    assert_eq!(begin(&*catalog, 1, 2, 1_000).await, RequestFound::First);
}

/// Only then another one takes its place, and of these one.
pub async fn a_request_without_an_answer_is_made_again_once_it_is_over(subject: CatalogSubject) {
    let (catalog, other) = (subject.migrated().await, (subject.open)());
    assert_eq!(begin(&*catalog, 1, 1, 1_000).await, RequestFound::First);
    assert_eq!(begin(&*other, 1, 1, 1_000).await, RequestFound::UnderWay, "of the same moment");
    assert_eq!(begin(&*other, 1, 1, 1_030).await, RequestFound::UnderWay);
    assert_eq!(begin(&*other, 1, 2, 1_031).await, RequestFound::Differs);
    assert_eq!(begin(&*other, 1, 1, 1_031).await, RequestFound::First);
    assert_eq!(begin(&*catalog, 1, 1, 1_032).await, RequestFound::UnderWay);
    end(&*other, 1_031, given_up(1_002)).await;
    assert_eq!(begin(&*catalog, 1, 2, 1_033).await, RequestFound::Differs);
    assert_eq!(begin(&*catalog, 1, 1, 1_033).await, RequestFound::First);
}

/// However it ends. The other's end is kept.
pub async fn a_request_whose_place_was_taken_ends_no_other(subject: CatalogSubject) {
    let (catalog, other) = (subject.migrated().await, (subject.open)());
    assert_eq!(begin(&*catalog, 1, 1, 1_000).await, RequestFound::First);
    assert_eq!(begin(&*other, 1, 1, 1_031).await, RequestFound::First);
    for late in [RequestEnd::NoEffect, given_up(969), answered(b"late")] {
        end(&*catalog, 1_000, late.clone()).await;
        assert_eq!(begin(&*catalog, 1, 1, 1_032).await, RequestFound::UnderWay, "after {late:?}");
    }
    end(&*other, 1_031, answered(b"other")).await;
    assert_eq!(begin(&*catalog, 1, 1, 1_033).await, RequestFound::Answered(b"other".to_vec()));

    // Nor that of a call with other fields.
    assert_eq!(begin(&*other, 1, 2, 1_132).await, RequestFound::First, "the other was forgotten");
    end(&*catalog, 1_000, answered(b"of other fields")).await;
    assert_eq!(begin(&*other, 1, 2, 1_133).await, RequestFound::UnderWay);
}

/// Several nodes at once.
pub async fn of_requests_with_one_id_one_is_the_first(subject: CatalogSubject) {
    subject.migrated().await;
    let mut tasks = tokio::task::JoinSet::new();
    for begun in 1_000..1_006 {
        let catalog = (subject.open)();
        tasks.spawn(async move { begin(&*catalog, 1, 1, begun).await });
    }
    let found = tasks.join_all().await;
    let first = found.iter().filter(|it| **it == RequestFound::First).count();
    assert_eq!((first, found.len()), (1, 6), "{found:?}");
}

/// The oldest first.
pub async fn old_requests_are_deleted(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let never =
        |id: u8, begun| NewRequest { forget_before: Timestamp::from_micros(0), ..request(id, 1, begun) };
    for (id, begun) in [(1, 400), (2, 100), (3, 300), (4, 200)] {
        catalog.begin_request(&never(id, begun)).await.expect("answers");
    }
    let sweep = async |before, most| {
        catalog.sweep_requests(Timestamp::from_micros(before), most).await.expect("answers")
    };
    assert_eq!((sweep(100, 10).await, sweep(400, 2).await), (0, 2));
    let mut found = Vec::new();
    for id in 1..=4 {
        let other = NewRequest { digest: [2; 32], ..never(id, 500) };
        found.push(catalog.begin_request(&other).await.expect("answers"));
    }
    let (first, differs) = (RequestFound::First, RequestFound::Differs);
    assert_eq!(found, [differs.clone(), first.clone(), differs, first]);
    assert_eq!((sweep(401, 10).await, sweep(401, 10).await), (2, 0));
}
