//! Sessions of browsers: added, used, removed, and bounded.

use forebay_store::{Catalog, NewSession, SessionBounds, SessionRow};
use forebay_types::Timestamp;

use super::{CatalogSubject, all};

/// Few, to reach them.
const BOUNDS: SessionBounds = SessionBounds { per_token: 3, in_all: 5 };

fn row(id: u8, token: u32, used: i64) -> SessionRow {
    let used_at = Timestamp::from_micros(used);
    SessionRow { id: [id; 32], token_id: format!("{token:012}"), secret: [9; 32], made_at: used_at, used_at }
}

fn new(row: &SessionRow) -> NewSession {
    let never = Timestamp::from_micros(0);
    let (made_before, used_before) = (never, never);
    NewSession { row: row.clone(), replaces: None, made_before, used_before, bounds: BOUNDS }
}

async fn add(catalog: &dyn Catalog, session: NewSession) {
    catalog.add_session(&session).await.expect("answers");
}

/// Which of these sessions are there, by the byte that their ids consist of.
async fn there(catalog: &dyn Catalog) -> Vec<u8> {
    let mut found = Vec::new();
    for id in 0..20 {
        if catalog.session(&[id; 32]).await.expect("reads").is_some() {
            found.push(id);
        }
    }
    found
}

/// By whoever opens the catalog. Nothing else changes.
pub async fn a_session_is_read_as_it_was_written(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let before = all(&*catalog).await;
    let session = row(1, 7, 100);
    assert_eq!(catalog.session(&session.id).await.expect("reads"), None);
    add(&*catalog, new(&session)).await;
    add(&*catalog, new(&session)).await;
    let other = (subject.open)();
    assert_eq!(other.session(&session.id).await.expect("reads"), Some(session.clone()));
    assert_eq!(other.session(&[2; 32]).await.expect("reads"), None);

    let at = Timestamp::from_micros;
    other.note_session_use(&session.id, at(300)).await.expect("answers");
    other.note_session_use(&session.id, at(200)).await.expect("answers");
    other.note_session_use(&[2; 32], at(200)).await.expect("answers");
    let used = SessionRow { used_at: at(300), ..session.clone() };
    assert_eq!(catalog.session(&session.id).await.expect("reads"), Some(used));
    assert_eq!(there(&*catalog).await, [1]);

    other.remove_session(&session.id).await.expect("answers");
    other.remove_session(&session.id).await.expect("answers");
    assert_eq!(catalog.session(&session.id).await.expect("reads"), None);
    assert_eq!(all(&*catalog).await, before);
}

/// Sessions that are over, and the one that is replaced, are removed when another is added.
pub async fn sessions_that_are_over_are_removed(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let old = SessionRow { made_at: Timestamp::from_micros(10), ..row(1, 1, 500) };
    for session in [old, row(2, 1, 100), row(3, 2, 200), row(4, 3, 300)] {
        add(&*catalog, new(&session)).await;
    }
    assert_eq!(there(&*catalog).await, [1, 2, 3, 4]);
    let session = NewSession {
        replaces: Some([4; 32]),
        made_before: Timestamp::from_micros(11),
        used_before: Timestamp::from_micros(200),
        ..new(&row(5, 4, 600))
    };
    add(&*catalog, session).await;
    assert_eq!(there(&*catalog).await, [3, 5]);
}

/// There is always room: a token loses its own, and the token with the most is the first to lose one.
pub async fn the_oldest_session_makes_room(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    for (id, used) in [(1, 300), (2, 100), (3, 200)] {
        add(&*catalog, new(&row(id, 1, used))).await;
    }
    assert_eq!(there(&*catalog).await, [1, 2, 3]);
    add(&*catalog, new(&row(4, 1, 400))).await;
    assert_eq!(there(&*catalog).await, [1, 3, 4], "of one token, the one that was used the longest ago");
    // Another token's is older than all of them, but has few.
    add(&*catalog, new(&row(5, 2, 50))).await;
    add(&*catalog, new(&row(6, 3, 500))).await;
    assert_eq!(there(&*catalog).await, [1, 3, 4, 5, 6]);
    add(&*catalog, new(&row(7, 4, 500))).await;
    assert_eq!(there(&*catalog).await, [1, 4, 5, 6, 7], "in all");
    // A session that is added again stays the same one.
    add(&*catalog, new(&row(7, 4, 500))).await;
    assert_eq!(there(&*catalog).await, [1, 4, 5, 6, 7]);
}
