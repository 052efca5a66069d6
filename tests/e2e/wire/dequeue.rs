//! `Dequeue`

use std::time::Duration;

use forebay_proto::v1::{
    DeliveryPolicy, DequeueRequest, DequeueResponse, EnqueueItem, TopicDemand, topic_demand::Selector,
};
use tokio::time::Instant;
use tonic::{Request, Response, Status};

use super::{LEASE, NAMESPACE, RefusalDetails, Wire, asked, demand, item, micros, seconds, span};

async fn call(wire: &Wire, request: DequeueRequest) -> Result<Response<DequeueResponse>, Status> {
    wire.client().dequeue(request).await
}

fn demands(demands: Vec<TopicDemand>) -> DequeueRequest {
    DequeueRequest { namespace: NAMESPACE.into(), demands, ..Default::default() }
}

#[tokio::test]
async fn each_wrong_value_is_named() {
    let wire = Wire::start().await;
    let refused = async |request| RefusalDetails::call(call(&wire, request).await);

    refused(DequeueRequest { namespace: String::new(), ..asked("t", 1) }).await.invalid("namespace");
    refused(demands(vec![])).await.invalid("demands");
    refused(demands((0..101).map(|n| demand(&n.to_string(), 1)).collect())).await.too_large("demands");
    refused(demands(vec![demand("a", 600), demand("b", 401)])).await.too_large("demands");
    refused(asked("", 1)).await.invalid("demands[0].topic");
    refused(demands(vec![demand("a", 1), TopicDemand { selector: None, max_items: 1 }]))
        .await
        .invalid("demands[1].topic");
    refused(demands(vec![demand("a", 1), demand("b", 1), demand("a", 1)])).await.invalid("demands[2].topic");
    refused(asked("t", 0)).await.invalid("demands[0].max_items");
    refused(asked("t", 1_001)).await.invalid("demands[0].max_items");
    refused(DequeueRequest { wait: Some(seconds(-1)), ..asked("t", 1) }).await.invalid("wait");
    for lease in [seconds(0), seconds(-1), seconds(43_201), span(Duration::from_millis(999))] {
        let request = DequeueRequest { lease_duration: Some(lease), ..asked("t", 1) };
        refused(request).await.invalid("lease_duration");
    }
    refused(DequeueRequest { max_bytes: (15 << 20) + 1, ..asked("t", 1) }).await.invalid("max_bytes");
    let named = |selector| TopicDemand { selector: Some(selector), max_items: 1 };
    let prefix = |prefix: &str| named(Selector::TopicPrefix(prefix.to_owned()));
    refused(demands(vec![prefix("a b")])).await.invalid("demands[0].topic_prefix");
    let covered = vec![named(Selector::Topic("tall".into())), prefix("t")];
    refused(demands(covered)).await.invalid("demands[0].topic");
    refused(demands((0..17).map(|number| prefix(&format!("{number}/"))).collect())).await.invalid("demands");
}

#[tokio::test]
async fn items_come_demand_by_demand() {
    let wire = Wire::start().await;
    for topic in ["a", "b", "c"] {
        wire.stored(vec![item(topic); 3]).await;
    }
    let request = demands(vec![demand("c", 2), demand("empty", 5), demand("a", 9), demand("b", 1)]);
    let got = call(&wire, request).await.unwrap().into_inner().items;
    let got: Vec<_> = got.iter().map(|item| item.topic.as_str()).collect();
    assert_eq!(got, ["c", "c", "a", "a", "a", "b"]);
}

#[tokio::test]
async fn a_long_poll_answers_as_soon_as_there_is_an_item() {
    let wire = Wire::start().await;
    let mut client = wire.client();
    let poll = tokio::spawn(async move {
        let request = DequeueRequest { wait: Some(seconds(20)), ..asked("soon", 1) };
        (client.dequeue(request).await.unwrap().into_inner().items, Instant::now())
    });
    // The long poll is parked before the item is enqueued.
    wire.wait_for_polls(1).await;
    let sent = Instant::now();
    wire.stored(vec![item("soon")]).await;
    let (items, answered) = poll.await.unwrap();
    assert_eq!(items.len(), 1);
    assert!(answered - sent < Duration::from_secs(5), "{:?}", answered - sent);
}

#[tokio::test]
async fn a_long_poll_ends_empty_before_its_deadline() {
    let wire = Wire::start().await;
    let began = Instant::now();
    let mut request = Request::new(DequeueRequest { wait: Some(seconds(20)), ..asked("never", 1) });
    request.set_timeout(Duration::from_millis(1_200));
    let answer = wire.client().dequeue(request).await.unwrap().into_inner();
    assert!(answer.items.is_empty());
    let took = began.elapsed();
    assert!((Duration::from_millis(900)..Duration::from_millis(1_200)).contains(&took), "{took:?}");

    let began = Instant::now();
    let wait = Some(span(Duration::from_millis(300)));
    let answer = call(&wire, DequeueRequest { wait, ..asked("never", 1) }).await.unwrap().into_inner();
    assert!(answer.items.is_empty() && began.elapsed() >= Duration::from_millis(300));
}

#[tokio::test]
async fn an_answer_has_a_byte_limit_and_at_least_one_item() {
    let wire = Wire::start().await;
    let heavy = EnqueueItem { payload: vec![3; 256 << 10].into(), ..item("heavy") };
    for _ in 0..5 {
        wire.stored(vec![heavy.clone(); 15]).await;
    }
    let take = async |max_bytes: u32| {
        let request =
            DequeueRequest { max_bytes, lease_duration: Some(span(LEASE)), ..asked("heavy", 1_000) };
        let items = call(&wire, request).await.unwrap().into_inner().items;
        assert!(items.iter().all(|item| item.payload == heavy.payload));
        items.len()
    };
    assert_eq!(take(1).await, 1, "at least one item");
    let usual = take(0).await;
    assert!((8..=12).contains(&usual), "3 MiB by default: {usual}");
    let most = take(15 << 20).await;
    assert!((55..=60).contains(&most), "15 MiB at most: {most}");
    // Items that did not fit were not leased: they are still ready, at their first attempt.
    let mut left = 75 - 1 - usual - most;
    while left > 0 {
        let request = DequeueRequest { max_bytes: 4 << 20, ..asked("heavy", 1_000) };
        let items = call(&wire, request).await.unwrap().into_inner().items;
        assert!(!items.is_empty() && items.iter().all(|item| item.attempt == 1));
        left -= items.len();
    }
    assert!(wire.is_empty("heavy").await);
}

#[tokio::test]
async fn an_at_most_once_item_needs_no_ack_and_is_delivered_once() {
    let wire = Wire::start().await;
    let policy = DeliveryPolicy::AtMostOnce.into();
    wire.stored(vec![EnqueueItem { delivery_policy: policy, ..item("once") }]).await;
    let got = wire.take_one("once").await;
    assert_eq!((got.receipt.as_str(), got.delivery_policy()), ("", DeliveryPolicy::AtMostOnce));
    assert_eq!(got.lease_expires_at, None);
    assert!(wire.is_empty("once").await);
}

#[tokio::test]
async fn an_item_is_redelivered_when_its_lease_ends() {
    let wire = Wire::start().await;
    wire.stored(vec![item("lease")]).await;
    let short = DequeueRequest { lease_duration: Some(seconds(1)), ..asked("lease", 1) };
    let first = call(&wire, short).await.unwrap().into_inner().items.remove(0);
    assert_eq!(first.attempt, 1);
    let second = wire.take_one("lease").await;
    assert_eq!((second.attempt, &second.item_id), (2, &first.item_id));
    assert_ne!(second.receipt, first.receipt);
    assert!(micros(&second.lease_expires_at) > micros(&first.lease_expires_at));
    RefusalDetails::member(&wire.ack(&first.receipt).await).lost("leased");
    assert_eq!(wire.ack(&second.receipt).await, None);
}

#[tokio::test]
async fn items_of_a_disconnected_caller_are_released() {
    let wire = Wire::start().await;
    for _ in 0..20 {
        let mut client = wire.client();
        let request =
            DequeueRequest { wait: Some(seconds(20)), lease_duration: Some(span(LEASE)), ..asked("gone", 1) };
        let poll = tokio::spawn(async move { client.dequeue(request).await });
        wire.wait_for_polls(1).await;
        // The delivery and the end of the call race.
        let stored = wire.stored(vec![item("gone")]);
        poll.abort();
        stored.await;
        let _ = poll.await;
        wire.wait_for_polls(0).await;
        let got = wire.take_one("gone").await;
        assert_eq!(wire.ack(&got.receipt).await, None);
    }
}
