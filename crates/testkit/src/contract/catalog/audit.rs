//! Records of calls: added, ended once, read the latest first, and deleted when they are old.

use forebay_store::{AuditEnd, AuditId, AuditOutcome, AuditQuery, AuditRecord, Catalog, PrincipalKind};
use forebay_types::Timestamp;

use super::{CatalogSubject, all};

fn at(second: i64) -> Timestamp {
    Timestamp::from_micros(second * 1_000_000)
}

fn record(second: i64, namespace: &str) -> AuditRecord {
    AuditRecord {
        id: AuditId::new(at(second), [7; 8]),
        principal: "ops".to_owned(),
        kind: PrincipalKind::Token,
        token_id: "0Ab1Cd2Ef3Gh".to_owned(),
        peer: "127.0.0.1:5".to_owned(),
        method: "PauseTopic".to_owned(),
        namespace: namespace.to_owned(),
        target: "t".to_owned(),
        reason: String::new(),
        summary: String::new(),
        outcome: AuditOutcome::Intended,
        failure: String::new(),
        operation_id: String::new(),
        node: "node1".to_owned(),
        trace_id: String::new(),
    }
}

/// All of them, the latest first.
fn everything() -> AuditQuery {
    AuditQuery { namespace: None, from: AuditId([0; 16]), before: AuditId([0xff; 16]), limit: 100 }
}

fn done() -> AuditEnd {
    let (failure, target, operation_id, shortened) = Default::default();
    AuditEnd { outcome: AuditOutcome::Done, failure, target, operation_id, shortened }
}

async fn seconds(catalog: &dyn Catalog, query: &AuditQuery) -> Vec<i64> {
    let records = catalog.audit(query).await.expect("reads");
    records.iter().map(|record| record.id.at().as_micros() / 1_000_000).collect()
}

/// Also the longest texts, of which only bytes matter, and every kind of caller. Nodes are not told.
pub async fn a_record_is_read_as_it_was_written(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let before = all(&*catalog).await;
    let long = |bytes: usize| "ö".repeat(bytes / 2);
    let longest = AuditRecord {
        principal: long(254),
        kind: PrincipalKind::Certificate,
        token_id: "a".repeat(12),
        peer: long(64),
        method: long(64),
        namespace: long(254),
        target: long(254),
        reason: long(1_024),
        summary: long(1_024),
        outcome: AuditOutcome::Failed,
        failure: long(64),
        operation_id: long(32),
        node: long(100),
        trace_id: "4bf92f3577b34da6a3ce929d0e0e4736".to_owned(),
        ..record(1, "")
    };
    let anyone = AuditRecord { kind: PrincipalKind::Anyone, ..record(2, "a") };
    let operator =
        AuditRecord { kind: PrincipalKind::Operator, outcome: AuditOutcome::Done, ..record(3, "a") };
    let denied = AuditRecord { outcome: AuditOutcome::Denied, ..record(4, "a") };
    let expected = [denied, operator, anyone, longest];
    for record in expected.iter().rev() {
        catalog.add_audit(record).await.expect("is added");
        catalog.add_audit(record).await.expect("is harmless");
    }
    assert_eq!(catalog.audit(&everything()).await.expect("reads"), expected);
    assert_eq!(all(&*catalog).await, before);
}

/// Whoever is late changes nothing.
pub async fn a_record_ends_once(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let id = record(1, "a").id;
    assert!(!catalog.end_audit(id, &done()).await.expect("answers"), "there is none yet");
    catalog.add_audit(&record(1, "a")).await.expect("is added");
    catalog.add_audit(&record(2, "a")).await.expect("is added");
    let end = AuditEnd {
        outcome: AuditOutcome::Failed,
        failure: "TOPIC_NOT_FOUND".to_owned(),
        target: "other".to_owned(),
        operation_id: "0".repeat(32),
        shortened: Some(("short".to_owned(), "shorter".to_owned())),
    };
    assert!(catalog.end_audit(id, &end).await.expect("answers"));
    assert!(!catalog.end_audit(id, &done()).await.expect("answers"));
    let AuditEnd { outcome, failure, target, operation_id, shortened } = end;
    let (reason, summary) = shortened.expect("is given");
    let ended = AuditRecord { outcome, failure, target, operation_id, reason, summary, ..record(1, "a") };
    assert_eq!(catalog.audit(&everything()).await.expect("reads"), [record(2, "a"), ended]);
    assert!(catalog.end_audit(record(2, "a").id, &done()).await.expect("answers"));
    let kept = catalog.audit(&everything()).await.expect("reads");
    assert_eq!(kept[0], AuditRecord { outcome: AuditOutcome::Done, ..record(2, "a") });
}

/// By tenant and time, page by page. A tenant is not another one that begins so, or has other letters.
pub async fn records_are_read_by_tenant_and_time(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    for (second, namespace) in [(1, "a"), (2, "b"), (3, "a"), (4, ""), (5, "A"), (6, "ab"), (7, "a")] {
        catalog.add_audit(&record(second, namespace)).await.expect("is added");
    }
    let of = |namespace: &str| AuditQuery { namespace: Some(namespace.to_owned()), ..everything() };
    assert_eq!(seconds(&*catalog, &everything()).await, [7, 6, 5, 4, 3, 2, 1]);
    assert_eq!(seconds(&*catalog, &of("a")).await, [7, 3, 1]);
    assert_eq!(seconds(&*catalog, &of("")).await, [4]);
    assert_eq!(seconds(&*catalog, &AuditQuery { limit: 2, ..of("a") }).await, [7, 3]);
    let behind = AuditQuery { before: record(3, "").id, ..of("a") };
    assert_eq!(seconds(&*catalog, &behind).await, [1]);
    let from =
        AuditQuery { from: AuditId::first_of(at(3)), before: AuditId::first_of(at(6)), ..everything() };
    assert_eq!(seconds(&*catalog, &from).await, [5, 4, 3]);
}

/// The oldest ones first, and so many at most.
pub async fn old_records_are_deleted(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    for second in 1..=7 {
        catalog.add_audit(&record(second, "a")).await.expect("is added");
    }
    let mut deleted = Vec::new();
    for _ in 0..3 {
        deleted.push(catalog.sweep_audit(at(6), 3).await.expect("deletes"));
    }
    assert_eq!(deleted, [3, 2, 0]);
    assert_eq!(seconds(&*catalog, &everything()).await, [7, 6]);
}
