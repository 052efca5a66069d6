//! Refusals because of too much load, or because a shard is unavailable.

use std::time::Duration;

use forebay_proto::v1::{
    DequeueRequest, EnqueueItem, EnqueueRequest, queue_service_client::QueueServiceClient,
};
use futures_util::future::join_all;
use tokio::time::sleep;
use tonic::{Code, Request, Status};
use tonic_types::StatusExt as _;

use super::{LEASE, NAMESPACE, RefusalDetails, Wire, asked, item, seconds, span};

#[tokio::test]
async fn leases_of_a_topic_are_limited() {
    let wire = Wire::with("[limits]\nleased_per_topic = 3\n").await;
    wire.stored(vec![EnqueueItem { shard: Some(1), ..item("t") }; 5]).await;
    assert_eq!(wire.take("t", 10).await.len(), 3);
    let request = DequeueRequest { lease_duration: Some(span(LEASE)), ..asked("t", 1) };
    let refused = RefusalDetails::call(wire.client().dequeue(request).await);
    assert_eq!((refused.code, refused.reason.as_str()), (Code::ResourceExhausted, "TOO_MANY_LEASED"));
    assert!(refused.quota);
}

#[tokio::test]
async fn topics_of_a_namespace_are_limited() {
    let wire = Wire::with("[limits]\ntopics_per_namespace = 3\n").await;
    let on = |topic| EnqueueItem { shard: Some(1), ..item(topic) };
    wire.stored(vec![on("a"), on("b"), on("c")]).await;
    let results = wire.enqueue(vec![on("a"), on("d")]).await.unwrap();
    assert_eq!(results[0].error, None);
    let refused = RefusalDetails::member(&results[1].error);
    assert_eq!((refused.code, refused.reason.as_str()), (Code::ResourceExhausted, "TOO_MANY_TOPICS"));
    assert!(refused.quota);
}

#[tokio::test]
async fn calls_in_progress_have_a_limit_and_long_polls_another() {
    let wire = Wire::with("[engine]\ncalls = 4\npolls_per_connection = 8\n").await;
    let mut polls = Vec::new();
    for _ in 0..8 {
        let mut client = wire.client();
        let request = DequeueRequest { wait: Some(seconds(20)), ..asked("quiet", 1) };
        polls.push(tokio::spawn(async move { client.dequeue(request).await }));
        wire.wait_for_polls(polls.len()).await;
    }
    // More than four calls are parked, and others are still admitted.
    wire.stored(vec![item("other")]).await;
    // One more long poll on this connection is answered at once.
    let request = DequeueRequest { wait: Some(seconds(20)), ..asked("quiet", 1) };
    let began = tokio::time::Instant::now();
    assert!(wire.client().dequeue(request).await.unwrap().into_inner().items.is_empty());
    assert!(began.elapsed() < Duration::from_secs(10));
    for poll in polls {
        poll.abort();
    }

    // Many at once: some are served, the others are refused with a retry delay.
    let mut calls = Vec::new();
    for _ in 0..200 {
        let mut client = wire.client();
        let items = vec![EnqueueItem { payload: vec![1; 64 << 10].into(), ..item("busy") }];
        let request = EnqueueRequest { namespace: NAMESPACE.into(), items, ..EnqueueRequest::default() };
        calls.push(tokio::spawn(async move { client.enqueue(request).await }));
    }
    let (mut done, mut refused_count) = (0, 0);
    for call in calls {
        match call.await.unwrap() {
            Ok(_) => done += 1,
            Err(status) => {
                let refused = RefusalDetails::call::<()>(Err(status));
                assert_eq!((refused.code, refused.reason.as_str()), (Code::ResourceExhausted, "OVERLOADED"));
                refused_count += 1;
            }
        }
    }
    assert!(done > 0 && refused_count > 0, "{done} done, {refused_count} refused");
}

/// Makes many calls at once, of which some are over a rate. Returns the refusal of one of them.
async fn over_the_rate(wire: &Wire, limit: &str) -> Status {
    let calls = (0..20).map(|_| {
        let mut client = wire.client();
        async move { client.dequeue(asked("t", 1)).await }
    });
    let answers = join_all(calls).await;
    assert!(answers.iter().any(Result::is_ok), "some come in time");
    let status = answers.into_iter().find_map(Result::err).expect("some are over the rate");
    let details = RefusalDetails::call::<()>(Err(status.clone()));
    assert_eq!((details.code, details.reason.as_str()), (Code::ResourceExhausted, "RATE_LIMITED"));
    assert!(status.message().contains(limit), "{status:?}");
    assert_eq!(status.get_details_quota_failure().unwrap().violations[0].subject, limit);
    status
}

#[tokio::test]
async fn calls_of_a_connection_in_a_second_are_limited() {
    let wire = Wire::with("[limits]\ncall_rate_per_connection = 1\n").await;
    let refused = over_the_rate(&wire, "limits.call_rate_per_connection").await;
    let mut other = QueueServiceClient::new(wire.node.channel());
    other.dequeue(asked("t", 1)).await.expect("another connection has its own");
    let after = refused.get_details_retry_info().unwrap().retry_delay.unwrap();
    assert!(after <= Duration::from_secs(1), "{after:?}");
    sleep(after).await;
    wire.client().dequeue(asked("t", 1)).await.expect("it comes after the time that was named");
}

#[tokio::test]
async fn calls_for_a_namespace_in_a_second_are_limited() {
    let wire = Wire::with("[limits]\ncall_rate_per_namespace = 1\n").await;
    over_the_rate(&wire, "limits.call_rate_per_namespace").await;
    let other = DequeueRequest { namespace: "other".into(), ..asked("t", 1) };
    wire.client().dequeue(other).await.expect("another namespace has its own");
}

#[tokio::test]
async fn a_call_with_too_little_time_is_refused() {
    let wire = Wire::start().await;
    let mut request = Request::new(asked("t", 1));
    request.metadata_mut().insert("grpc-timeout", "4m".parse().unwrap());
    let status = wire.client().dequeue(request).await.unwrap_err();
    // The client's own timeout may fire first.
    assert!(matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled), "{status:?}");
}

#[tokio::test]
async fn an_item_for_an_unreachable_shard_is_refused() {
    let away = "[[shard]]\nid = 9\nurl = \"mysql://nobody@127.0.0.1:1/nothing\"\n";
    let wire = Wire::with_unmigrated(away).await;
    let results = wire.enqueue(vec![EnqueueItem { shard: Some(9), ..item("t") }, item("t")]).await.unwrap();
    let refused = RefusalDetails::member(&results[0].error);
    assert_eq!((refused.code, refused.reason.as_str()), (Code::Unavailable, "SHARD_UNAVAILABLE"));
    assert_eq!(results[1].error, None, "other shards store items without a shard");
}
