//! Calls that change something or show payloads are written down.

use std::fs;

use forebay_proto::{
    FILE_DESCRIPTOR_SET,
    v1::{
        AuditOutcome, AuditRecord, CancelOperationRequest, GetItemRequest, ItemState, ItemView,
        ListAuditRecordsRequest, ListItemsRequest, OperationKind, PauseTopicRequest, PrincipalKind, Side,
        StartOperationRequest, admin_service_client::AdminServiceClient,
    },
};
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, Value};
use prost_types::method_options::IdempotencyLevel;
use serde_json::json;
use tonic::{Request, Status, transport::Channel};

use super::{NAMESPACE, RefusalDetails, Wire, http1, item, raw};
use crate::collector::{TRACE, parent};

fn admin(wire: &Wire) -> AdminServiceClient<Channel> {
    AdminServiceClient::new(wire.node.channel())
}

fn of(namespace: &str) -> ListAuditRecordsRequest {
    ListAuditRecordsRequest { namespace: namespace.to_owned(), ..Default::default() }
}

async fn list(wire: &Wire, request: ListAuditRecordsRequest) -> Result<(Vec<AuditRecord>, String), Status> {
    let page = admin(wire).list_audit_records(request).await?.into_inner();
    Ok((page.records, page.next_page_token))
}

async fn records(wire: &Wire, request: ListAuditRecordsRequest) -> Vec<AuditRecord> {
    list(wire, request).await.unwrap().0
}

async fn pause(wire: &Wire, namespace: &str, topic: &str, note: &str) {
    let (namespace, topic, note) = (namespace.to_owned(), topic.to_owned(), note.to_owned());
    let sides = vec![Side::Enqueue.into()];
    let request = PauseTopicRequest { namespace, topic, sides, note, ..Default::default() };
    admin(wire).pause_topic(request).await.unwrap();
}

/// Whatever becomes of them. A new call that changes something is among them.
#[tokio::test]
async fn every_call_that_changes_something_is_written_down() {
    let wire = Wire::start().await;
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap();
    let service = pool.get_service_by_name("forebay.v1.AdminService").unwrap();
    let mut expected = Vec::new();
    for method in service.methods() {
        let options = method.method_descriptor_proto().options.as_ref();
        if options.is_some_and(|it| it.idempotency_level() == IdempotencyLevel::NoSideEffects) {
            continue;
        }
        let mut message = DynamicMessage::new(method.input());
        if method.input().get_field_by_name("namespace").is_some() {
            message.set_field_by_name("namespace", Value::String(NAMESPACE.to_owned()));
        }
        let path = format!("/forebay.v1.AdminService/{}", method.name());
        let request = Request::new(message.encode_to_vec().into());
        let answered = raw::send_to(wire.node.channel(), &path, request).await;
        let outcome = if answered.is_ok() { AuditOutcome::Done } else { AuditOutcome::Failed };
        expected.push((method.name().to_owned(), outcome));
    }
    assert!(expected.len() > 8, "{expected:?}");
    let mut found = records(&wire, of("-")).await;
    found.reverse();
    let found = found.into_iter().map(|it| (it.method.clone(), it.outcome()));
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn a_record_says_who_did_what_why_and_how_it_ended() {
    let wire = Wire::start().await;
    pause(&wire, NAMESPACE, "mail", "a\u{1b}[31m\nmove\u{202e}").await;
    let operation_id = "0".repeat(32);
    let unknown = CancelOperationRequest { namespace: NAMESPACE.into(), operation_id: operation_id.clone() };
    admin(&wire).cancel_operation(unknown).await.unwrap_err();
    let start = StartOperationRequest {
        namespace: NAMESPACE.into(),
        kind: OperationKind::Purge.into(),
        topic: "mail".into(),
        filter: "age > 1h".into(),
        reason: "old".into(),
        ..Default::default()
    };
    let started = admin(&wire).start_operation(start).await.unwrap().into_inner().operation.unwrap();
    let [purge, cancel, paused] = &records(&wire, of(NAMESPACE)).await[..] else { panic!("three records") };
    for record in [purge, cancel, paused] {
        assert_eq!((record.namespace.as_str(), record.principal.as_str()), (NAMESPACE, ""));
        assert_eq!(record.principal_kind(), PrincipalKind::Anyone);
        assert!(record.peer.starts_with("127.0.0.1:") && !record.node.is_empty(), "{record:?}");
        assert!(record.at.is_some() && record.id.len() == 32 && record.token_id.is_empty());
    }
    let told = |record: &AuditRecord| {
        let AuditRecord { method, target, reason, request_summary, failure, operation_id, .. } =
            record.clone();
        (record.outcome(), [method, target, reason, request_summary, failure, operation_id])
    };
    let texts = |texts: [&str; 6]| texts.map(str::to_owned);
    let reason = "a\u{fffd}[31m\u{fffd}move\u{fffd}";
    let expected = texts(["PauseTopic", "mail", reason, "sides=[SIDE_ENQUEUE]", "", ""]);
    assert_eq!(told(paused), (AuditOutcome::Done, expected));
    let expected = texts(["CancelOperation", &operation_id, "", "", "OPERATION_NOT_FOUND", ""]);
    assert_eq!(told(cancel), (AuditOutcome::Failed, expected));
    let summary = "kind=OPERATION_KIND_PURGE filter=\"age > 1h\"";
    let expected = texts(["StartOperation", "mail", "old", summary, "", &started.id]);
    assert_eq!(told(purge), (AuditOutcome::Done, expected));
    let log = fs::read_to_string(wire.folder.path().join("log")).unwrap();
    let line = log.lines().find(|line| line.contains("PauseTopic wire/mail: done")).unwrap_or_default();
    assert!(line.contains("audit") && line.contains("move"), "{log}");
}

/// One record a call. What is in the items is not in it.
#[tokio::test]
async fn who_looks_at_payloads_is_written_down() {
    let wire = Wire::start().await;
    let mut secret = item("mail");
    secret.payload = b"of-the-customer".to_vec().into();
    let item_id = wire.stored(vec![secret]).await.remove(0);
    let get = |view: ItemView, max_payload_bytes| GetItemRequest {
        namespace: NAMESPACE.into(),
        item_id: item_id.clone(),
        view: view.into(),
        max_payload_bytes,
    };
    let request = ListItemsRequest {
        namespace: NAMESPACE.into(),
        topic: "mail".into(),
        state: ItemState::Ready.into(),
        ..Default::default()
    };
    admin(&wire).get_item(get(ItemView::Basic, 0)).await.unwrap();
    admin(&wire).list_items(request.clone()).await.unwrap();
    assert_eq!(records(&wire, of(NAMESPACE)).await, []);
    admin(&wire).get_item(get(ItemView::Full, 0)).await.unwrap();
    admin(&wire).get_item(get(ItemView::Basic, 8)).await.unwrap();
    let full = ListItemsRequest { view: ItemView::Full.into(), ..request };
    admin(&wire).list_items(full).await.unwrap();
    let found = records(&wire, of(NAMESPACE)).await;
    let told = |it: &AuditRecord| (it.method.clone(), it.target.clone(), it.outcome());
    let expected = [("ListItems", "mail"), ("GetItem", &*item_id), ("GetItem", &*item_id)];
    let expected = expected.map(|(call, target)| (call.into(), target.into(), AuditOutcome::Done));
    assert_eq!(found.iter().map(told).collect::<Vec<_>>(), expected);
    assert!(!format!("{found:?}").contains("of-the-customer"));
}

#[tokio::test]
async fn records_are_filtered_and_come_in_pages() {
    let wire = Wire::start().await;
    for topic in ["a", "b", "c"] {
        pause(&wire, NAMESPACE, topic, "").await;
        pause(&wire, "other", topic, "").await;
    }
    let targets = |records: &[AuditRecord]| -> Vec<String> {
        records.iter().map(|it| format!("{}/{}", it.namespace, it.target)).collect()
    };
    let (first, token) =
        list(&wire, ListAuditRecordsRequest { page_size: 2, ..of(NAMESPACE) }).await.unwrap();
    assert_eq!(targets(&first), ["wire/c", "wire/b"]);
    let second = ListAuditRecordsRequest { page_size: 2, page_token: token.clone(), ..of(NAMESPACE) };
    let (second, end) = list(&wire, second).await.unwrap();
    assert_eq!((targets(&second), end), (vec!["wire/a".to_owned()], String::new()));
    assert_eq!(records(&wire, of("-")).await.len(), 6);
    // A token of one list is none of another.
    for other in
        [of("other"), of("-"), ListAuditRecordsRequest { method: "PauseTopic".into(), ..of(NAMESPACE) }]
    {
        let request = ListAuditRecordsRequest { page_token: token.clone(), ..other };
        RefusalDetails::call(list(&wire, request).await).invalid("page_token");
    }
    let (from, until) = (second[0].at, first[0].at);
    let between = ListAuditRecordsRequest { from, until, ..of(NAMESPACE) };
    assert_eq!(targets(&records(&wire, between).await), ["wire/b", "wire/a"]);
    let none = [
        ListAuditRecordsRequest { principal: "x".into(), ..of("-") },
        ListAuditRecordsRequest { method: "ResumeTopic".into(), ..of("-") },
        ListAuditRecordsRequest { outcome: AuditOutcome::Failed.into(), ..of("-") },
        of("nobody"),
        of("wire*"),
    ];
    for request in none {
        assert_eq!(records(&wire, request).await, []);
    }
    let done = ListAuditRecordsRequest { outcome: AuditOutcome::Done.into(), ..of("-") };
    assert_eq!(records(&wire, done).await.len(), 6);
    RefusalDetails::call(list(&wire, of("")).await).invalid("namespace");
    RefusalDetails::call(list(&wire, of("*")).await).invalid("namespace");
    RefusalDetails::call(list(&wire, of("a b")).await).invalid("namespace");
    let request = ListAuditRecordsRequest { outcome: 9, ..of(NAMESPACE) };
    RefusalDetails::call(list(&wire, request).await).invalid("outcome");
    let request = ListAuditRecordsRequest { principal: "p".repeat(256), ..of(NAMESPACE) };
    RefusalDetails::call(list(&wire, request).await).too_large("principal");
}

/// Over gRPC and over HTTP, and whether that trace is recorded or not. The log has it, too.
#[tokio::test]
async fn a_record_names_the_trace_of_its_call() {
    let wire = Wire::start().await;
    pause(&wire, NAMESPACE, "none", "").await;
    let mut request = Request::new(PauseTopicRequest {
        namespace: NAMESPACE.into(),
        topic: "grpc".into(),
        sides: vec![Side::Enqueue.into()],
        ..Default::default()
    });
    request.metadata_mut().insert("traceparent", parent().replace("-01", "-00").parse().unwrap());
    admin(&wire).pause_topic(request).await.unwrap();
    let message = json!({"namespace": NAMESPACE, "topic": "http", "sides": ["SIDE_ENQUEUE"]});
    let call =
        http1::Request::post("/forebay.v1.AdminService/PauseTopic", "application/json", message.to_string());
    wire.http(call.with("traceparent", &parent())).await.message();
    let found = records(&wire, of(NAMESPACE)).await;
    let told: Vec<_> = found.iter().map(|it| (it.target.as_str(), it.trace_id.as_str())).collect();
    assert_eq!(told, [("http", TRACE), ("grpc", TRACE), ("none", "")]);
    let log = fs::read_to_string(wire.folder.path().join("log")).unwrap();
    let line = log.lines().find(|line| line.contains("PauseTopic wire/grpc: done")).unwrap_or_default();
    assert!(line.contains(TRACE), "{line}");
}
