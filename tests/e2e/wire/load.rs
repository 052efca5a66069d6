//! What is refused because there is too much of it, or because something is not there.

use std::time::Duration;

use forebay_proto::v1::{DequeueRequest, EnqueueItem, EnqueueRequest};
use tonic::{Code, Request};

use super::{LEASE, NAMESPACE, Refused, Wire, asked, item, seconds, span};

#[tokio::test]
async fn a_topic_has_so_many_leases() {
    let wire = Wire::with("[limits]\nleased_per_topic = 3\n").await;
    wire.stored(vec![EnqueueItem { shard: Some(1), ..item("t") }; 5]).await;
    assert_eq!(wire.take("t", 10).await.len(), 3);
    let request = DequeueRequest { lease_duration: Some(span(LEASE)), ..asked("t", 1) };
    let refused = Refused::call(wire.client().dequeue(request).await);
    assert_eq!((refused.code, refused.reason.as_str()), (Code::ResourceExhausted, "TOO_MANY_LEASED"));
    assert!(refused.quota);
}

#[tokio::test]
async fn a_namespace_has_so_many_topics() {
    let wire = Wire::with("[limits]\ntopics_per_namespace = 3\n").await;
    let on = |topic| EnqueueItem { shard: Some(1), ..item(topic) };
    wire.stored(vec![on("a"), on("b"), on("c")]).await;
    let results = wire.enqueue(vec![on("a"), on("d")]).await.unwrap();
    assert_eq!(results[0].error, None);
    let refused = Refused::member(&results[1].error);
    assert_eq!((refused.code, refused.reason.as_str()), (Code::ResourceExhausted, "TOO_MANY_TOPICS"));
    assert!(refused.quota);
}

#[tokio::test]
async fn calls_at_work_have_a_limit_and_those_that_wait_another() {
    let wire = Wire::with("[engine]\ncalls = 4\npolls_per_connection = 8\n").await;
    let mut polls = Vec::new();
    for _ in 0..8 {
        let mut client = wire.client();
        let request = DequeueRequest { wait: Some(seconds(20)), ..asked("quiet", 1) };
        polls.push(tokio::spawn(async move { client.dequeue(request).await }));
        wire.wait_for_polls(polls.len()).await;
    }
    // More than four wait, and yet there is room for work.
    wire.stored(vec![item("other")]).await;
    // One more on this connection does not wait.
    let request = DequeueRequest { wait: Some(seconds(20)), ..asked("quiet", 1) };
    let began = tokio::time::Instant::now();
    assert!(wire.client().dequeue(request).await.unwrap().into_inner().items.is_empty());
    assert!(began.elapsed() < Duration::from_secs(10));
    for poll in polls {
        poll.abort();
    }

    // Many at once: some are done, the others are told to come again.
    let mut calls = Vec::new();
    for _ in 0..200 {
        let mut client = wire.client();
        let items = vec![EnqueueItem { payload: vec![1; 64 << 10].into(), ..item("busy") }];
        let request = EnqueueRequest { namespace: NAMESPACE.into(), items, request_id: String::new() };
        calls.push(tokio::spawn(async move { client.enqueue(request).await }));
    }
    let (mut done, mut shed) = (0, 0);
    for call in calls {
        match call.await.unwrap() {
            Ok(_) => done += 1,
            Err(status) => {
                let refused = Refused::call::<()>(Err(status));
                assert_eq!((refused.code, refused.reason.as_str()), (Code::ResourceExhausted, "OVERLOADED"));
                shed += 1;
            }
        }
    }
    assert!(done > 0 && shed > 0, "{done} done, {shed} shed");
}

#[tokio::test]
async fn a_deadline_that_is_too_near_is_refused() {
    let wire = Wire::start().await;
    let mut request = Request::new(asked("t", 1));
    request.metadata_mut().insert("grpc-timeout", "4m".parse().unwrap());
    let status = wire.client().dequeue(request).await.unwrap_err();
    // The client's own clock may be first.
    assert!(matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled), "{status:?}");
}

#[tokio::test]
async fn an_item_fixed_to_a_shard_that_is_away_is_told_so() {
    let away = "[[shard]]\nid = 9\nurl = \"mysql://nobody@127.0.0.1:1/nothing\"\n";
    let wire = Wire::with_unmigrated(away).await;
    let results = wire.enqueue(vec![EnqueueItem { shard: Some(9), ..item("t") }, item("t")]).await.unwrap();
    let refused = Refused::member(&results[0].error);
    assert_eq!((refused.code, refused.reason.as_str()), (Code::Unavailable, "SHARD_UNAVAILABLE"));
    assert_eq!(results[1].error, None, "others take what is not fixed");
}
