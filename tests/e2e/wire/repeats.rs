//! A call for operators with a request id is made once.

use forebay_proto::{
    FILE_DESCRIPTOR_SET,
    v1::{
        AuditOutcome, CancelItemsRequest, GetTopicRequest, ListAuditRecordsRequest, PauseTopicRequest,
        PutTopicRequest, ResumeTopicRequest, Side, TopicSettings, admin_service_client::AdminServiceClient,
    },
};
use prost_reflect::{DescriptorPool, Kind};
use prost_types::method_options::IdempotencyLevel;
use serde_json::json;
use tonic::{Code, transport::Channel};

use super::{NAMESPACE, Refused, Wire, http1, item};

fn admin(wire: &Wire) -> AdminServiceClient<Channel> {
    AdminServiceClient::new(wire.node.channel())
}

fn pause(id: &str, note: &str) -> PauseTopicRequest {
    PauseTopicRequest {
        namespace: NAMESPACE.into(),
        topic: "mail".into(),
        sides: vec![Side::Dequeue.into()],
        note: note.into(),
        request_id: id.into(),
        ..Default::default()
    }
}

fn reused<T: std::fmt::Debug>(answer: Result<T, tonic::Status>) {
    Refused::call(answer).is(Code::AlreadyExists, "REQUEST_ID_REUSED", Some("request_id"));
}

async fn is_paused(wire: &Wire) -> bool {
    let topic = GetTopicRequest { namespace: NAMESPACE.into(), topic: "mail".into() };
    !admin(wire).get_topic(topic).await.unwrap().into_inner().topic.unwrap().pauses.is_empty()
}

/// A new call without one fails.
#[test]
fn every_call_that_changes_something_takes_an_id() {
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap();
    for method in pool.get_service_by_name("forebay.v1.AdminService").unwrap().methods() {
        let options = method.method_descriptor_proto().options.as_ref();
        let reads = options.is_some_and(|it| it.idempotency_level() == IdempotencyLevel::NoSideEffects);
        let id = method.input().get_field_by_name("request_id").map(|field| field.kind());
        assert_eq!(id, (!reads).then_some(Kind::String), "{}", method.name());
    }
}

#[tokio::test]
async fn a_repeated_call_is_answered_as_the_first_time_and_changes_nothing() {
    let wire = Wire::dev().await;
    wire.stored(vec![item("mail")]).await;
    let first = admin(&wire).pause_topic(pause("one", "moving")).await.unwrap().into_inner();
    let resume = ResumeTopicRequest {
        namespace: NAMESPACE.into(),
        topic: "mail".into(),
        sides: vec![Side::Dequeue.into()],
        request_id: "two".into(),
        ..Default::default()
    };
    admin(&wire).resume_topic(resume.clone()).await.unwrap();
    let again = admin(&wire).pause_topic(pause("one", "moving")).await.unwrap().into_inner();
    assert_eq!((first.pauses.len(), first), (1, again));
    assert!(!is_paused(&wire).await);
    let request = json!({
        "namespace": NAMESPACE, "topic": "mail", "sides": ["SIDE_DEQUEUE"], "note": "moving",
        "requestId": "one",
    });
    let json = serde_json::to_vec(&request).unwrap();
    let call = http1::Request::post("/forebay.v1.AdminService/PauseTopic", "application/json", json);
    let answer = wire.http(call).await.message();
    assert_eq!(answer["pauses"][0]["note"], "moving", "{answer}");
    assert!(!is_paused(&wire).await);
    reused(admin(&wire).pause_topic(pause("one", "other")).await);
    reused(admin(&wire).resume_topic(ResumeTopicRequest { request_id: "one".into(), ..resume }).await);
    let tried = PauseTopicRequest { dry_run: true, ..pause("one", "other") };
    assert_eq!(admin(&wire).pause_topic(tried).await.unwrap().into_inner().pauses.len(), 1);
    let long = admin(&wire).pause_topic(pause(&"i".repeat(201), "")).await;
    Refused::call(long).too_large("request_id");

    let of = ListAuditRecordsRequest { namespace: NAMESPACE.into(), ..Default::default() };
    let records = admin(&wire).list_audit_records(of).await.unwrap().into_inner().records;
    let told: Vec<_> =
        records.iter().rev().map(|it| (it.method.as_str(), it.outcome(), it.failure.as_str())).collect();
    let (done, failed) = (AuditOutcome::Done, AuditOutcome::Failed);
    let expected = [
        ("PauseTopic", done, ""),
        ("ResumeTopic", done, ""),
        ("PauseTopic", done, "REPEATED"),
        ("PauseTopic", done, "REPEATED"),
        ("PauseTopic", failed, "REQUEST_ID_REUSED"),
        ("ResumeTopic", failed, "REQUEST_ID_REUSED"),
        ("PauseTopic", failed, "TOO_LARGE"),
    ];
    assert_eq!(told, expected);
}

/// It had no effect, so that it may be made with the same id, or other fields.
#[tokio::test]
async fn a_refused_call_is_made_when_it_is_repeated() {
    let wire = Wire::dev().await;
    let put = |version, attempts| PutTopicRequest {
        namespace: NAMESPACE.into(),
        topic: "mail".into(),
        settings: Some(TopicSettings { default_max_attempts: attempts, ..Default::default() }),
        version,
        request_id: "put".into(),
        ..Default::default()
    };
    let stale = admin(&wire).put_topic(put(9, 5)).await;
    Refused::call(stale).is(Code::Aborted, "VERSION_MISMATCH", Some("version"));
    let first = admin(&wire).put_topic(put(0, 5)).await.unwrap().into_inner();
    let other = PutTopicRequest { request_id: String::new(), ..put(first.version, 6) };
    admin(&wire).put_topic(other).await.unwrap();
    let again = admin(&wire).put_topic(put(0, 5)).await.unwrap().into_inner();
    assert_eq!(again, first, "it tells what was set then");
}

/// Without an id the second call would find nothing.
#[tokio::test]
async fn cancelled_items_are_told_again() {
    let wire = Wire::dev().await;
    let ids = wire.stored(vec![item("mail"), item("mail")]).await;
    let item_ids: Vec<String> = ids.into_iter().chain(["1-999".to_owned()]).collect();
    let cancel = CancelItemsRequest {
        namespace: NAMESPACE.into(),
        item_ids,
        request_id: "cancel".into(),
        ..Default::default()
    };
    let first = admin(&wire).cancel_items(cancel.clone()).await.unwrap().into_inner();
    assert_eq!(first.results.iter().filter(|it| it.error.is_none()).count(), 2);
    assert_eq!(admin(&wire).cancel_items(cancel).await.unwrap().into_inner(), first);
}
