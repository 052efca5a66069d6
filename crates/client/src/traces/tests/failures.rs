//! Tests of the spans of calls that fail.

use std::time::Duration;

use forebay_proto::v1;
use opentelemetry::trace::Status;
use opentelemetry_sdk::trace::SpanData;
use tonic::Code;

use super::{Recorder, attribute};
use crate::{
    DequeueCall, NewItem, RetryPolicy,
    testing::{Fake, Network, config, lease_lost, refusal, stored},
};

/// The type of the error with which a span has failed.
fn failure(span: &SpanData) -> String {
    let failure = attribute(span, "error.type");
    assert_eq!(span.status, if failure.is_empty() { Status::Unset } else { Status::error("") });
    assert!(!format!("{span:?}").contains("scripted"), "the message of the error is in {span:?}");
    failure
}

fn items(count: usize) -> Vec<NewItem> {
    (0..count).map(|_| NewItem::new("a", "1")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_span_names_the_reason_of_the_server() {
    let (recorder, (fake, client)) = (Recorder::start(), Fake::start().await);
    fake.enqueue.fail(Code::PermissionDenied, Some("NOT_ALLOWED"), 1);
    client.enqueue(items(1)).await.unwrap_err();
    assert_eq!(failure(&recorder.only("enqueue")), "NOT_ALLOWED");
    fake.dequeue.fail(Code::InvalidArgument, Some("INVALID_FIELD"), 1);
    client.dequeue(DequeueCall::topic("mail", 1)).await.unwrap_err();
    let span = recorder.only("dequeue");
    assert_eq!((&*span.name, failure(&span).as_str()), ("dequeue mail", "INVALID_FIELD"));
}

#[tokio::test(start_paused = true)]
async fn a_span_names_the_code_where_there_is_no_reason() {
    let (recorder, network) = (Recorder::start(), Network::default());
    let fake = network.fake("a:1");
    let client = network.configured(config(&["a:1"]).retry(RetryPolicy::never()));
    fake.enqueue.fail(Code::Unavailable, None, 1);
    client.enqueue(items(1)).await.unwrap_err();
    fake.enqueue.hold(true);
    client.enqueue(items(1)).await.unwrap_err();
    let failures: Vec<_> = recorder.of("enqueue").iter().map(failure).collect();
    assert_eq!(failures, ["UNAVAILABLE", "DEADLINE_EXCEEDED"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_fails_with_one_of_its_members() {
    let (recorder, (fake, client)) = (Recorder::start(), Fake::start().await);
    let wrong = v1::EnqueueResult {
        error: Some(refusal(Code::InvalidArgument, "INVALID_FIELD", None)),
        ..Default::default()
    };
    fake.enqueue.answer(v1::EnqueueResponse { results: vec![stored("1-1"), wrong] });
    client.enqueue(items(2)).await.unwrap();
    assert_eq!(failure(&recorder.only("enqueue")), "INVALID_FIELD");
    let lost = v1::SettleResult { error: Some(lease_lost("waiting")), ..Default::default() };
    fake.ack.answer(v1::AckResponse { results: vec![v1::SettleResult::default(), lost] });
    client.ack(vec!["a".into(), "b".into()]).await.unwrap();
    assert_eq!(failure(&recorder.only("ack")), "LEASE_LOST");
    client.ack(vec!["c".into()]).await.unwrap();
    assert_eq!(failure(&recorder.of("ack")[1]), "");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_up_is_cancelled() {
    let (recorder, (fake, client)) = (Recorder::start(), Fake::start().await);
    fake.enqueue.hold(true);
    tokio::time::timeout(Duration::from_secs(1), client.enqueue(items(1))).await.unwrap_err();
    assert_eq!(failure(&recorder.only("enqueue")), "CANCELLED");
}
