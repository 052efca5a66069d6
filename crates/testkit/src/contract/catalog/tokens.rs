//! Tokens: added, rotated and revoked, bounded, and read when they have changed.

use forebay_store::{
    Catalog, NewToken, RootBounds, TokenAddOutcome, TokenBounds, TokenChange, TokenChangeOutcome, TokenMaker,
    TokenRow,
};
use forebay_types::Timestamp;

use super::{CatalogSubject, all};

/// Few, to reach them.
const BOUNDS: TokenBounds = TokenBounds {
    per_namespace: 3,
    by_root: RootBounds { per_root: 9, in_all: 5, for_operators: 0, for_few: (0, 0) },
};
/// The time of the tests.
const NOW: Timestamp = Timestamp::from_micros(1_000);

fn row(id: u32, namespace: &str) -> TokenRow {
    TokenRow {
        id: format!("{id:012}"),
        namespace: namespace.to_owned(),
        name: "worker".to_owned(),
        secret: [1; 32],
        older_secret: None,
        rotation: None,
        grants: format!("{namespace}:produce,consume"),
        made_by: "ops".to_owned(),
        made_by_id: String::new(),
        root: format!("{id:012}"),
        made_at: NOW,
        ends: None,
        overlap_ends: None,
        revoked: None,
        last_used: None,
        is_admin: false,
    }
}

fn admin(id: u32) -> TokenRow {
    TokenRow { grants: "*:all".to_owned(), is_admin: true, ..row(id, "*") }
}

fn new(row: &TokenRow) -> NewToken {
    let forget_before = Timestamp::from_micros(500);
    let maker = TokenMaker::Operator;
    NewToken { row: row.clone(), maker, if_no_admin_at: None, forget_before, bounds: BOUNDS }
}

async fn add(catalog: &dyn Catalog, row: &TokenRow) -> TokenAddOutcome {
    catalog.add_token(&new(row)).await.expect("answers")
}

async fn change(catalog: &dyn Catalog, row: &TokenRow, change: TokenChange) -> TokenChangeOutcome {
    catalog.change_token(&row.id, &change).await.expect("answers")
}

fn revoke(at: Timestamp) -> TokenChange {
    TokenChange::Revoke { at, with_descendants: false }
}

async fn read(catalog: &dyn Catalog) -> Vec<TokenRow> {
    catalog.tokens(0).await.expect("reads").rows.expect("who knows nothing is told everything")
}

/// Also the longest texts. A reader that knows the version is told nothing, and nothing else changes.
pub async fn a_token_is_read_as_it_was_written(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let before = all(&*catalog).await;
    let long = |bytes: usize| "ö".repeat(bytes / 2);
    let longest = TokenRow {
        namespace: long(254),
        name: long(200),
        older_secret: Some([2; 32]),
        grants: long(4_096),
        made_by: long(254),
        made_by_id: "m".repeat(12),
        ends: Some(Timestamp::from_micros(2_000)),
        overlap_ends: Some(Timestamp::from_micros(3_000)),
        revoked: Some(Timestamp::from_micros(4_000)),
        last_used: Some(Timestamp::from_micros(5_000)),
        is_admin: true,
        ..row(2, "a")
    };
    assert_eq!(read(&*catalog).await, []);
    let empty = catalog.tokens(0).await.expect("reads").version;
    assert_eq!(add(&*catalog, &longest).await, TokenAddOutcome::Yes(empty + 1));
    assert_eq!(add(&*catalog, &row(1, "a")).await, TokenAddOutcome::Yes(empty + 2));
    assert_eq!(add(&*catalog, &row(1, "b")).await, TokenAddOutcome::IdTaken);
    let tokens = catalog.tokens(empty).await.expect("reads");
    assert_eq!((tokens.version, tokens.rows), (empty + 2, Some(vec![row(1, "a"), longest])));
    let known = catalog.tokens(empty + 2).await.expect("reads");
    assert_eq!((known.version, known.rows), (empty + 2, None));
    assert_eq!(all(&*catalog).await, before);
}

/// From its newest secret alone, so that of two who do it at once one learns of the other.
pub async fn a_token_is_rotated_from_its_newest_secret(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let token = row(1, "a");
    let rotate = |from: u8, to: u8, overlap_ends: Option<Timestamp>| TokenChange::Rotate {
        from: [from; 32],
        secret: [to; 32],
        rotation: overlap_ends.map(|_| [to; 32]),
        overlap_ends,
    };
    assert_eq!(change(&*catalog, &token, rotate(1, 2, None)).await, TokenChangeOutcome::NoToken);
    add(&*catalog, &token).await;
    let ends = Some(Timestamp::from_micros(9));
    assert!(matches!(change(&*catalog, &token, rotate(1, 2, ends)).await, TokenChangeOutcome::Yes(_)));
    let expected = TokenRow {
        secret: [2; 32],
        older_secret: Some([1; 32]),
        rotation: Some([2; 32]),
        overlap_ends: ends,
        ..token.clone()
    };
    assert_eq!(read(&*catalog).await, std::slice::from_ref(&expected));
    assert_eq!(change(&*catalog, &token, rotate(1, 3, ends)).await, TokenChangeOutcome::Stale);
    assert_eq!(read(&*catalog).await, [expected]);
    let version = catalog.tokens(0).await.expect("reads").version;
    assert_eq!(change(&*catalog, &token, rotate(2, 3, None)).await, TokenChangeOutcome::Yes(version + 1));
    assert_eq!(read(&*catalog).await, [TokenRow { secret: [3; 32], ..token.clone() }]);
    change(&*catalog, &token, revoke(NOW)).await;
    assert_eq!(change(&*catalog, &token, rotate(3, 4, None)).await, TokenChangeOutcome::Stale);
}

/// Once. Others stay as they are.
pub async fn a_token_is_revoked(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let token = row(1, "a");
    assert_eq!(change(&*catalog, &token, revoke(NOW)).await, TokenChangeOutcome::NoToken);
    add(&*catalog, &token).await;
    add(&*catalog, &row(2, "a")).await;
    let version = catalog.tokens(0).await.expect("reads").version;
    for late in [0, 1] {
        let revoked = change(&*catalog, &token, revoke(Timestamp::from_micros(1_000 + late))).await;
        assert_eq!(revoked, TokenChangeOutcome::Revoked { version: version + 1, descendants: 0 });
    }
    assert_eq!(read(&*catalog).await, [TokenRow { revoked: Some(NOW), ..token }, row(2, "a")]);
}

/// With those that it made, if that is asked for, and how many they are is told in any case. An operator is
/// always left.
pub async fn a_token_is_revoked_with_its_descendants(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let bounds = TokenBounds::DEFAULT;
    let made = async |id: u32, by: u32| {
        let made_by_id = format!("{by:012}");
        let maker = TokenMaker::Token(made_by_id.clone());
        let row = TokenRow { made_by_id, ..row(id, "a") };
        catalog.add_token(&NewToken { maker, bounds, ..new(&row) }).await.expect("answers")
    };
    add(&*catalog, &admin(1)).await;
    add(&*catalog, &row(2, "a")).await;
    for (id, by) in [(3, 2), (4, 3), (5, 3), (6, 5), (7, 1)] {
        assert!(matches!(made(id, by).await, TokenAddOutcome::Yes(_)));
    }
    let revoke = async |id: u32, with_descendants| {
        let revoke = TokenChange::Revoke { at: NOW, with_descendants };
        match change(&*catalog, &row(id, "a"), revoke).await {
            TokenChangeOutcome::Revoked { descendants, .. } => Some(descendants),
            _ => None,
        }
    };
    let of_use = async || {
        let rows = read(&*catalog).await.into_iter().filter(|row| row.revoked.is_none());
        rows.map(|row| row.id.trim_start_matches('0').to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(revoke(5, false).await, Some(1));
    assert_eq!(of_use().await, "1 2 3 4 6 7");
    assert_eq!(revoke(3, true).await, Some(2), "its child, and that of one that is revoked");
    assert_eq!(of_use().await, "1 2 7");
    assert_eq!(revoke(3, true).await, Some(0));
    assert_eq!((revoke(1, true).await, of_use().await.as_str()), (None, "1 2 7"), "nobody would be left");
}

/// One that was revoked long ago goes, unless it has no end: a file may have it too.
pub async fn a_revoked_token_without_an_end_stays(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let old = Some(Timestamp::from_micros(499));
    add(&*catalog, &TokenRow { revoked: old, ..row(1, "a") }).await;
    add(&*catalog, &TokenRow { revoked: old, ends: Some(NOW), ..row(2, "a") }).await;
    add(&*catalog, &row(3, "a")).await;
    let ids: Vec<String> = read(&*catalog).await.into_iter().map(|row| row.id).collect();
    assert_eq!(ids, [1, 3].map(|id| format!("{id:012}")));
}

/// One that has ended, or is revoked, is no other one.
pub async fn the_last_admin_stays(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let ended = TokenRow { ends: Some(NOW), ..admin(2) };
    for row in [&admin(1), &ended, &row(3, "a")] {
        add(&*catalog, row).await;
    }
    let version = catalog.tokens(0).await.expect("reads").version;
    let revoke = || revoke(NOW);
    let is_done = |changed| matches!(changed, TokenChangeOutcome::Revoked { .. });
    assert_eq!(change(&*catalog, &admin(1), revoke()).await, TokenChangeOutcome::LastAdmin);
    assert_eq!(catalog.tokens(0).await.expect("reads").version, version);
    add(&*catalog, &admin(4)).await;
    assert!(is_done(change(&*catalog, &admin(1), revoke()).await));
    assert_eq!(change(&*catalog, &admin(4), revoke()).await, TokenChangeOutcome::LastAdmin);
    assert!(is_done(change(&*catalog, &ended, revoke()).await));
    assert!(is_done(change(&*catalog, &row(3, "a"), revoke()).await));
}

/// Also of two that come at once.
pub async fn the_first_admin_is_made_once(subject: CatalogSubject) {
    let one = subject.migrated().await;
    let other = (subject.open)();
    add(&*one, &row(1, "*")).await;
    add(&*one, &TokenRow { revoked: Some(NOW), ..admin(2) }).await;
    let first = |id| NewToken { if_no_admin_at: Some(NOW), ..new(&admin(id)) };
    let (a, b) = (first(3), first(4));
    let (a, b) = tokio::join!(one.add_token(&a), other.add_token(&b));
    let answers = [a.expect("answers"), b.expect("answers")];
    let made = answers.iter().filter(|answer| matches!(answer, TokenAddOutcome::Yes(_))).count();
    assert_eq!((made, answers.contains(&TokenAddOutcome::HasAdmin)), (1, true), "{answers:?}");
}

/// Of a namespace, and in all. What ended or was revoked long ago makes room.
pub async fn tokens_have_bounds(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let old = Timestamp::from_micros(499);
    add(&*catalog, &TokenRow { ends: Some(old), ..row(1, "a") }).await;
    let young = TokenRow { revoked: Some(Timestamp::from_micros(500)), ..row(2, "a") };
    add(&*catalog, &young).await;
    for id in [3, 4] {
        assert!(matches!(add(&*catalog, &row(id, "a")).await, TokenAddOutcome::Yes(_)));
    }
    assert_eq!(add(&*catalog, &row(5, "a")).await, TokenAddOutcome::NamespaceFull);
    for id in [6, 7] {
        assert!(matches!(add(&*catalog, &row(id, "b")).await, TokenAddOutcome::Yes(_)));
    }
    assert_eq!(add(&*catalog, &row(8, "c")).await, TokenAddOutcome::Full);
    let ids: Vec<String> = read(&*catalog).await.into_iter().map(|row| row.id).collect();
    assert_eq!(ids, [2, 3, 4, 6, 7].map(|id| format!("{id:012}")));
    let page = catalog.token_page(&ids[1], 2).await.expect("reads");
    assert_eq!(page.iter().map(|row| &row.id).collect::<Vec<_>>(), [&ids[1], &ids[2]]);
    let behind = catalog.token_page(&format!("{}\0", ids[3]), 9).await.expect("reads");
    assert_eq!(behind.iter().map(|row| &row.id).collect::<Vec<_>>(), [&ids[4]]);
}

/// Whoever makes a token for a friend has one less. Operators always have room.
pub async fn tokens_of_one_root_have_bounds(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let bounds = TokenBounds {
        per_namespace: 9,
        by_root: RootBounds { per_root: 3, in_all: 8, for_operators: 2, for_few: (0, 0) },
    };
    let add = async |id, maker: TokenMaker| {
        let token = NewToken { maker, bounds, ..new(&row(id, &format!("n{id}"))) };
        catalog.add_token(&token).await.expect("answers")
    };
    let by = |id: u32| TokenMaker::Token(format!("{id:012}"));
    let other = || TokenMaker::Other("a certificate".to_owned());
    let makers = [TokenMaker::Operator, by(1), by(2), TokenMaker::Operator, other(), by(9)];
    for (id, maker) in (1..).zip(makers) {
        assert!(matches!(add(id, maker).await, TokenAddOutcome::Yes(_)), "{id}");
    }
    for maker in [by(1), by(2), by(3)] {
        assert_eq!(add(10, maker).await, TokenAddOutcome::RootFull, "three descend from the first");
    }
    for maker in [by(4), other(), by(9)] {
        assert_eq!(add(10, maker).await, TokenAddOutcome::Full, "the rest is for operators");
    }
    for id in [11, 12] {
        assert!(matches!(add(id, TokenMaker::Operator).await, TokenAddOutcome::Yes(_)));
    }
    assert_eq!(add(13, TokenMaker::Operator).await, TokenAddOutcome::Full);
}

/// Whoever has made few may make one when others have made all that there may be.
pub async fn a_root_with_few_tokens_may_make_one(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let bounds = TokenBounds {
        per_namespace: 99,
        by_root: RootBounds { per_root: 99, in_all: 10, for_operators: 2, for_few: (3, 2) },
    };
    let add = async |id, maker: &str| {
        let maker = TokenMaker::Other(maker.to_owned());
        let token = NewToken { maker, bounds, ..new(&row(id, "a")) };
        catalog.add_token(&token).await.expect("answers")
    };
    for id in 1..=5 {
        assert!(matches!(add(id, "greedy").await, TokenAddOutcome::Yes(_)), "{id}");
    }
    assert_eq!(add(6, "greedy").await, TokenAddOutcome::Full);
    for id in 6..=7 {
        assert!(matches!(add(id, "modest").await, TokenAddOutcome::Yes(_)), "{id}");
    }
    assert_eq!(add(8, "modest").await, TokenAddOutcome::Full, "it has some");
    assert!(matches!(add(8, "late").await, TokenAddOutcome::Yes(_)));
    assert_eq!(add(9, "later").await, TokenAddOutcome::Full, "the rest is for operators");
}

/// The latest hour counts, whoever notes it. Nodes read nothing anew because of it.
pub async fn the_hour_of_the_last_use_is_noted(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    add(&*catalog, &row(1, "a")).await;
    let version = catalog.tokens(0).await.expect("reads").version;
    let hours = [5, 9, 7].map(|hour| Timestamp::from_micros(hour * 3_600_000_000));
    for hour in hours {
        catalog.note_token_use(&row(1, "a").id, hour).await.expect("is noted");
        catalog.note_token_use(&row(2, "a").id, hour).await.expect("there is none");
    }
    let tokens = catalog.tokens(0).await.expect("reads");
    assert_eq!(tokens.version, version);
    assert_eq!(tokens.rows, Some(vec![TokenRow { last_used: Some(hours[1]), ..row(1, "a") }]));
}
