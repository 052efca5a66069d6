//! Calls with a request id: begun once, answered once, forgotten.

use forebay_store::{Catalog, NewRequest, RequestFound};
use forebay_types::Timestamp;

use super::{CatalogSubject, all};

fn request(id: u8, digest: u8, begun: i64) -> NewRequest {
    NewRequest {
        id: [id; 32],
        digest: [digest; 32],
        begun_at: Timestamp::from_micros(begun),
        forget_before: Timestamp::from_micros(begun - 100),
    }
}

async fn begin(catalog: &dyn Catalog, id: u8, digest: u8, begun: i64) -> RequestFound {
    catalog.begin_request(&request(id, digest, begun)).await.expect("answers")
}

async fn end(catalog: &dyn Catalog, id: u8, answer: Option<&[u8]>) {
    catalog.end_request(&[id; 32], answer).await.expect("answers");
}

/// By whoever opens the catalog. Nothing else changes.
pub async fn the_first_answer_of_a_request_is_kept(subject: CatalogSubject) {
    let (catalog, other) = (subject.migrated().await, (subject.open)());
    let before = all(&*catalog).await;
    assert_eq!(begin(&*catalog, 1, 1, 1_000).await, RequestFound::First);
    assert_eq!(begin(&*other, 1, 1, 1_001).await, RequestFound::Unanswered);
    assert_eq!(begin(&*other, 1, 2, 1_001).await, RequestFound::Differs);
    end(&*other, 1, Some(b"one\0")).await;
    end(&*catalog, 1, Some(b"two")).await;
    end(&*catalog, 1, None).await;
    assert_eq!(begin(&*catalog, 1, 1, 1_100).await, RequestFound::Answered(b"one\0".to_vec()));
    assert_eq!(begin(&*catalog, 1, 2, 1_100).await, RequestFound::Differs);
    assert_eq!(begin(&*catalog, 1, 2, 1_101).await, RequestFound::First, "it was forgotten");
    end(&*catalog, 1, Some(b"")).await;
    assert_eq!(begin(&*catalog, 1, 2, 1_102).await, RequestFound::Answered(vec![]));
    assert_eq!(all(&*catalog).await, before);
}

/// As if it had not been made.
pub async fn a_request_without_effect_is_forgotten(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    end(&*catalog, 1, None).await;
    end(&*catalog, 1, Some(b"nobody has asked")).await;
    assert_eq!(begin(&*catalog, 1, 1, 1_000).await, RequestFound::First);
    end(&*catalog, 1, None).await;
    assert_eq!(begin(&*catalog, 1, 2, 1_000).await, RequestFound::First);
}

/// Several nodes at once.
pub async fn of_requests_with_one_id_one_is_the_first(subject: CatalogSubject) {
    subject.migrated().await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let catalog = (subject.open)();
        tasks.spawn(async move { begin(&*catalog, 1, 1, 1_000).await });
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
        found.push(catalog.begin_request(&never(id, 500)).await.expect("answers"));
    }
    let (first, unanswered) = (RequestFound::First, RequestFound::Unanswered);
    assert_eq!(found, [unanswered.clone(), first.clone(), unanswered, first]);
    assert_eq!((sweep(401, 10).await, sweep(401, 10).await), (2, 0));
}
