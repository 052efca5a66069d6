//! Where a call goes after an attempt that failed.

use std::time::Duration;

use forebay_proto::v1;
use tokio::time::Instant;
use tonic::Code;

use crate::{
    DequeueCall, NewItem, RetryPolicy,
    testing::{Network, config, item, lease_lost, refusal},
};

fn items() -> Vec<NewItem> {
    vec![NewItem::new("a", "1")]
}

#[tokio::test(start_paused = true)]
async fn a_draining_node_is_left_at_once_and_then_avoided() {
    let network = Network::default();
    let (a, b) = (network.fake("a:1"), network.fake("b:1"));
    a.enqueue.fail(Code::Unavailable, Some("NODE_DRAINING"), 100);
    let client = network.client(&["a:1", "b:1"]);
    let started = Instant::now();
    for _ in 0..10 {
        assert!(client.enqueue(items()).await.unwrap()[0].is_ok());
    }
    assert_eq!(started.elapsed(), Duration::ZERO, "no call paused");
    assert_eq!((a.enqueue.calls().len(), b.enqueue.calls().len()), (1, 10));
    tokio::time::sleep(Duration::from_secs(1)).await;
    client.enqueue(items()).await.unwrap();
    client.enqueue(items()).await.unwrap();
    assert_eq!(a.enqueue.calls().len(), 2, "it is tried again, by one call");
}

#[tokio::test(start_paused = true)]
async fn a_node_without_the_shard_is_left_at_once_and_not_avoided() {
    let network = Network::default();
    let (a, b) = (network.fake("a:1"), network.fake("b:1"));
    a.enqueue.fail(Code::Unavailable, Some("NOT_OWNER"), 100);
    let client = network.client(&["a:1", "b:1"]);
    let started = Instant::now();
    for _ in 0..10 {
        client.enqueue(items()).await.unwrap();
    }
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert_eq!(b.enqueue.calls().len(), 10);
    assert!(a.enqueue.calls().len() >= 3, "{}", a.enqueue.calls().len());
}

#[tokio::test(start_paused = true)]
async fn members_without_their_shard_are_asked_elsewhere_at_once() {
    let network = Network::default();
    let (a, b) = (network.fake("a:1"), network.fake("b:1"));
    a.dequeue.answer(v1::DequeueResponse { items: vec![item(0), item(1)] });
    b.dequeue.answer(v1::DequeueResponse { items: vec![item(0), item(1)] });
    let client = network.client(&["a:1", "b:1"]);
    client.dequeue(DequeueCall::topic("a", 2)).await.unwrap();
    let (origin, other) = if a.dequeue.calls().is_empty() { (b, a) } else { (a, b) };
    let error = refusal(Code::Unavailable, "NOT_OWNER", Some(1_000));
    let results =
        vec![v1::SettleResult::default(), v1::SettleResult { error: Some(error), ..Default::default() }];
    origin.ack.answer(v1::AckResponse { results });
    let started = Instant::now();
    let answers = client.ack(vec!["receipt-0".into(), "receipt-1".into()]).await.unwrap();
    assert_eq!((started.elapsed(), answers), (Duration::ZERO, vec![Ok(()), Ok(())]));
    assert_eq!((origin.ack.calls()[0].acks.len(), origin.ack.calls().len()), (2, 1));
    assert_eq!(other.ack.calls()[0].acks, [v1::Ack { receipt: "receipt-1".into() }]);
}

#[tokio::test(start_paused = true)]
async fn an_overloaded_node_is_asked_again_after_its_delay() {
    let network = Network::default();
    let (a, b) = (network.fake("a:1"), network.fake("b:1"));
    a.enqueue.fail(Code::ResourceExhausted, Some("OVERLOADED"), 3);
    b.enqueue.fail(Code::ResourceExhausted, Some("OVERLOADED"), 3);
    let client = network.client(&["a:1", "b:1"]);
    client.enqueue(items()).await.unwrap();
    let calls = (a.enqueue.calls().len(), b.enqueue.calls().len());
    assert!(calls == (4, 0) || calls == (0, 4), "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn once_every_node_was_asked_a_call_pauses() {
    for reason in ["SHARD_UNAVAILABLE", "NOT_OWNER", "NODE_DRAINING"] {
        let network = Network::default();
        let (a, b) = (network.fake("a:1"), network.fake("b:1"));
        a.enqueue.fail(Code::Unavailable, Some(reason), 1);
        b.enqueue.fail(Code::Unavailable, Some(reason), 1);
        let client = network.client(&["a:1", "b:1"]);
        let started = Instant::now();
        client.enqueue(items()).await.unwrap();
        assert!(started.elapsed() > Duration::from_millis(1), "{reason}");
        let calls = [a.enqueue.calls(), b.enqueue.calls()].concat();
        assert!(calls.len() == 3 && calls.iter().all(|call| *call == calls[0]), "one request id: {calls:?}");
        assert!(!a.enqueue.calls().is_empty() && !b.enqueue.calls().is_empty());
    }
}

/// Items that the node does not own the shard of.
fn elsewhere(items: usize) -> v1::EnqueueResponse {
    let error = || Some(refusal(Code::Unavailable, "NOT_OWNER", Some(1_000)));
    v1::EnqueueResponse {
        results: (0..items).map(|_| v1::EnqueueResult { error: error(), ..Default::default() }).collect(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_id_is_taken_to_the_node_that_owns_its_shard() {
    let network = Network::default();
    let (a, b) = (network.fake("a:1"), network.fake("b:1"));
    for _ in 0..10 {
        a.enqueue.answer(elsewhere(2));
    }
    let client = network.client(&["a:1", "b:1"]);
    let started = Instant::now();
    let two = || vec![NewItem::new("a", "1"), NewItem::new("a", "2")];
    for number in 0..4 {
        let results = match number {
            0..2 => client.enqueue(two()).await.unwrap(),
            _ => client.enqueue_once(number.to_string(), two()).await.unwrap(),
        };
        assert!(results.iter().all(Result::is_ok));
    }
    assert_eq!(started.elapsed(), Duration::ZERO);
    let (first, second) = (a.enqueue.calls(), b.enqueue.calls());
    assert!(second.len() == 4 && !first.is_empty());
    assert!(first.iter().all(|call| second.contains(call)), "the same call");
}

#[tokio::test(start_paused = true)]
async fn if_no_node_owns_the_shard_of_a_request_id_another_one_is_tried_unless_it_is_the_callers() {
    let network = Network::default();
    let (a, b) = (network.fake("a:1"), network.fake("b:1"));
    let client = network.client(&["a:1", "b:1"]);
    for fake in [&a, &b] {
        fake.enqueue.answer(elsewhere(1));
    }
    assert!(client.enqueue(items()).await.unwrap()[0].is_ok());
    let ids: std::collections::HashSet<_> =
        [a.enqueue.calls(), b.enqueue.calls()].concat().into_iter().map(|call| call.request_id).collect();
    assert_eq!(ids.len(), 2);
    for fake in [&a, &b] {
        fake.enqueue.answer(elsewhere(1));
    }
    let results = client.enqueue_once("mine", items()).await.unwrap();
    assert_eq!(results[0].as_ref().unwrap_err().reason(), Some(crate::Reason::NotOwner));
    assert_eq!(a.enqueue.calls().len() + b.enqueue.calls().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn what_may_be_stored_keeps_its_request_id_wherever_it_is_tried_next() {
    // The call begins at one of them, by chance.
    for _ in 0..20 {
        let network = Network::default();
        let (a, b) = (network.fake("a:1"), network.fake("b:1"));
        let client = network.client(&["a:1", "b:1"]);
        a.enqueue.fail(Code::Unavailable, None, 1);
        b.enqueue.answer(elsewhere(1));
        assert!(client.enqueue(items()).await.unwrap()[0].is_ok());
        let (a, b) = (a.enqueue.calls(), b.enqueue.calls());
        let last = if a.len() > 1 { a.last() } else { b.last() };
        assert_eq!(last.unwrap().request_id, a[0].request_id, "the outcome of the call at a was unknown");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dead_server_costs_no_pause() {
    let network = Network::default();
    let b = network.fake("b:1");
    let client = network.client(&["dead:1", "b:1"]);
    let started = Instant::now();
    for _ in 0..4 {
        client.enqueue(items()).await.unwrap();
    }
    assert_eq!((started.elapsed(), b.enqueue.calls().len()), (Duration::ZERO, 4));
}

#[tokio::test(start_paused = true)]
async fn a_broken_connection_is_retried_elsewhere_with_the_same_request_id() {
    let network = Network::default();
    let (a, b) = (network.fake("a:1"), network.fake("b:1"));
    a.enqueue.hold(true);
    b.enqueue.hold(true);
    let client = network.client(&["a:1", "b:1"]);
    let call = tokio::spawn(async move { client.enqueue(items()).await });
    tokio::select! {
        () = a.enqueue.seen(1) => network.cut("a:1", true),
        () = b.enqueue.seen(1) => network.cut("b:1", true),
    }
    a.enqueue.hold(false);
    b.enqueue.hold(false);
    assert!(call.await.unwrap().unwrap()[0].is_ok());
    let (first, second) = (a.enqueue.calls(), b.enqueue.calls());
    assert!(first.len() == 1 && first == second);
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_costs_one_timeout() {
    let network = Network::default();
    let (a, b) = (network.fake("a:1"), network.fake("b:1"));
    a.enqueue.hold(true);
    let client = network.client(&["a:1", "b:1"]);
    let started = Instant::now();
    for _ in 0..6 {
        client.enqueue(items()).await.unwrap();
    }
    assert!(started.elapsed() < Duration::from_secs(11), "{:?}", started.elapsed());
    assert_eq!((a.enqueue.calls().len(), b.enqueue.calls().len()), (1, 6));
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_repeated_is_not_repeated_elsewhere() {
    let network = Network::default();
    let (a, b) = (network.fake("a:1"), network.fake("b:1"));
    a.enqueue.fail(Code::Unavailable, None, 1);
    b.enqueue.fail(Code::Unavailable, None, 1);
    let client = network.client(&["a:1", "b:1"]);
    let item = NewItem { shard: Some(1), ..NewItem::new("a", "1") };
    let error = client.enqueue(vec![item]).await.unwrap_err();
    assert!(error.maybe_done());
    assert_eq!(a.enqueue.calls().len() + b.enqueue.calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn gone_elsewhere_after_an_unknown_outcome_is_acked() {
    let network = Network::default();
    let (a, b) = (network.fake("a:1"), network.fake("b:1"));
    let gone = || v1::AckResponse {
        results: vec![v1::SettleResult { error: Some(lease_lost("gone")), ..Default::default() }],
    };
    for fake in [&a, &b] {
        fake.ack.fail(Code::Unavailable, Some("OUTCOME_UNKNOWN"), 1);
        fake.ack.answer(gone());
    }
    let client = network.client(&["a:1", "b:1"]);
    assert_eq!(client.ack(vec!["x".into()]).await.unwrap(), [Ok(())]);
    assert_eq!((a.ack.calls().len() + b.ack.calls().len()), 3);
}

#[tokio::test(start_paused = true)]
async fn if_none_can_be_reached_one_error_names_them_all() {
    let network = Network::default();
    let client = network.configured(config(&["a:1", "b:1", "c:1"]).call_timeout(Duration::from_secs(5)));
    let error = client.active_topics(Default::default()).await.unwrap_err();
    assert_eq!(error.code(), Code::Unavailable);
    assert!(error.is_disconnected() && error.is_transient());
    let text = error.to_string();
    for address in ["a:1", "b:1", "c:1"] {
        assert_eq!(text.matches(&format!("cannot reach {address}: ")).count(), 1, "{text}");
    }
    assert!(!text.contains('\n'));
}

#[tokio::test(start_paused = true)]
async fn no_retries_means_one_attempt() {
    let network = Network::default();
    let client = network.configured(config(&["a:1", "b:1"]).retry(RetryPolicy::never()));
    let text = client.active_topics(Default::default()).await.unwrap_err().to_string();
    assert_eq!(text.matches("cannot reach").count(), 1, "{text}");
}
