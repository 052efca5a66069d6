//! `Enqueue`

use std::time::Duration;

use forebay_proto::v1::{
    Ack, AckRequest, DeliveryPolicy, DequeueRequest, EnqueueItem, EnqueueRequest, EnqueueResponse,
    enqueue_item::Schedule,
};
use tokio::time::Instant;
use tonic::{Code, Response, Status};

use super::{NAMESPACE, RefusalDetails, Wire, asked, demand, item, micros, seconds, span};

async fn call(wire: &Wire, request: EnqueueRequest) -> Result<Response<EnqueueResponse>, Status> {
    wire.client().enqueue(request).await
}

fn request(items: Vec<EnqueueItem>) -> EnqueueRequest {
    EnqueueRequest { namespace: NAMESPACE.into(), items, ..Default::default() }
}

#[tokio::test]
async fn every_field_arrives() {
    let wire = Wire::start().await;
    let headers = [("colour", "red"), ("", "")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let sent = EnqueueItem {
        priority: -7,
        payload: vec![0, 255, 1].into(),
        metadata: vec![9; 4_096].into(),
        lease_duration: Some(seconds(60)),
        ttl: Some(seconds(3_600)),
        headers: headers.clone().into(),
        max_attempts: 3,
        shard: Some(2),
        ..item("all")
    };
    let ids = wire.stored(vec![sent.clone()]).await;
    assert!(ids[0].starts_with("2-"), "{ids:?}");

    let request = DequeueRequest { wait: Some(seconds(10)), consumer: "me".into(), ..asked("all", 10) };
    let got = wire.client().dequeue(request).await.unwrap().into_inner().items;
    let [got] = &got[..] else { panic!("{got:?}") };
    assert_eq!((&got.item_id, got.topic.as_str(), got.priority, got.attempt), (&ids[0], "all", -7, 1));
    assert_eq!((&got.payload, &got.metadata, &got.headers), (&sent.payload, &sent.metadata, &headers.into()));
    assert_eq!(got.delivery_policy(), DeliveryPolicy::AtLeastOnce);
    assert!(!got.receipt.is_empty() && got.receipt.len() <= 128);
    assert_eq!(micros(&got.expires_at) - micros(&got.enqueued_at), 3_600_000_000);
    let lease = micros(&got.lease_expires_at) - micros(&got.enqueued_at);
    assert!((60_000_000..75_000_000).contains(&lease), "{lease}");
    assert_eq!(wire.ack(&got.receipt).await, None);
}

#[tokio::test]
async fn a_call_that_is_wrong_as_a_whole_fails_whole() {
    let wire = Wire::start().await;
    let refused = async |request| RefusalDetails::call(call(&wire, request).await);

    refused(EnqueueRequest { namespace: String::new(), ..request(vec![item("t")]) })
        .await
        .invalid("namespace");
    refused(EnqueueRequest { namespace: "a b".into(), ..request(vec![item("t")]) })
        .await
        .invalid("namespace");
    let namespace = "n".repeat(201);
    refused(EnqueueRequest { namespace, ..request(vec![item("t")]) }).await.too_large("namespace");
    refused(request(vec![])).await.invalid("items");
    refused(request(vec![item("t"); 1_001])).await.too_large("items");
    // A little over 4 MiB, and far over.
    let heavy = |count| vec![EnqueueItem { payload: vec![7; 256 << 10].into(), ..item("t") }; count];
    refused(request(heavy(16))).await.too_large("items");
    refused(request(heavy(40))).await.is(Code::InvalidArgument, "TOO_LARGE", None);
    let request_id = "r".repeat(201);
    refused(EnqueueRequest { request_id, ..request(vec![item("t")]) }).await.too_large("request_id");
    let named = |item| EnqueueRequest { request_id: "r".into(), ..request(vec![super::item("t"), item]) };
    refused(named(EnqueueItem { dedupe_key: "k".into(), ..item("t") })).await.invalid("items[1].dedupe_key");
    refused(named(EnqueueItem { shard: Some(1), ..item("t") })).await.invalid("items[1].shard");

    assert!(wire.is_empty("t").await, "nothing was stored");
}

#[tokio::test]
async fn a_wrong_member_does_not_fail_its_siblings() {
    let wire = Wire::start().await;
    let delay = |span| Some(Schedule::Delay(span));
    let at = |seconds, nanos| Some(Schedule::DeliverAfter(prost_types::Timestamp { seconds, nanos }));
    let headers =
        |count: usize, size: usize| (0..count).map(|n| (format!("{n:02}"), "v".repeat(size - 2))).collect();
    let year = 366 * 86_400;
    let (invalid, large) = ("INVALID_FIELD", "TOO_LARGE");
    let wrong = [
        (EnqueueItem { topic: String::new(), ..item("t") }, invalid, "topic"),
        (item("ä"), invalid, "topic"),
        (item(&"t".repeat(201)), large, "topic"),
        (EnqueueItem { payload: vec![0; (256 << 10) + 1].into(), ..item("t") }, large, "payload"),
        (EnqueueItem { metadata: vec![0; 4_097].into(), ..item("t") }, large, "metadata"),
        (EnqueueItem { schedule: delay(seconds(-1)), ..item("t") }, invalid, "delay"),
        (EnqueueItem { schedule: delay(seconds(year + 1)), ..item("t") }, invalid, "delay"),
        (EnqueueItem { schedule: at(0, -1), ..item("t") }, invalid, "deliver_after"),
        (EnqueueItem { schedule: at(i64::MAX, 0), ..item("t") }, invalid, "deliver_after"),
        // The year 2100 is after the expiry.
        (
            EnqueueItem { schedule: at(4_102_444_800, 0), ttl: Some(seconds(9)), ..item("t") },
            invalid,
            "deliver_after",
        ),
        (EnqueueItem { lease_duration: Some(seconds(0)), ..item("t") }, invalid, "lease_duration"),
        (EnqueueItem { lease_duration: Some(seconds(-1)), ..item("t") }, invalid, "lease_duration"),
        (EnqueueItem { lease_duration: Some(seconds(43_201)), ..item("t") }, invalid, "lease_duration"),
        (EnqueueItem { ttl: Some(seconds(0)), ..item("t") }, invalid, "ttl"),
        (EnqueueItem { ttl: Some(seconds(-1)), ..item("t") }, invalid, "ttl"),
        (EnqueueItem { ttl: Some(seconds(year + 1)), ..item("t") }, invalid, "ttl"),
        (EnqueueItem { delivery_policy: 3, ..item("t") }, invalid, "delivery_policy"),
        (EnqueueItem { max_attempts: 1_001, ..item("t") }, invalid, "max_attempts"),
        (EnqueueItem { dedupe_key: "k".repeat(201), ..item("t") }, large, "dedupe_key"),
        (EnqueueItem { dedupe_key: "k".into(), shard: Some(1), ..item("t") }, invalid, "dedupe_key"),
        (EnqueueItem { headers: headers(17, 4), ..item("t") }, large, "headers"),
        (EnqueueItem { headers: headers(16, 257), ..item("t") }, large, "headers"),
        (EnqueueItem { shard: Some(77), ..item("t") }, invalid, "shard"),
    ];
    // Valid and invalid items alternate.
    let mut items = Vec::new();
    for (wrong, _, _) in &wrong {
        items.extend([item("t"), wrong.clone()]);
    }
    let results = wire.enqueue(items).await.unwrap();
    for (index, pair) in results.chunks(2).enumerate() {
        let (_, reason, field) = &wrong[index];
        assert_eq!(pair[0].error, None, "{field}");
        let path = format!("items[{}].{field}", index * 2 + 1);
        RefusalDetails::member(&pair[1].error).is(Code::InvalidArgument, reason, Some(&path));
        assert!(pair[1].item_id.is_empty());
    }
    assert_eq!(wire.take("t", 1_000).await.len(), wrong.len(), "only the valid items were stored");
}

#[tokio::test]
async fn values_at_their_limits_are_accepted() {
    let wire = Wire::start().await;
    let largest = EnqueueItem {
        payload: vec![1; 256 << 10].into(),
        metadata: vec![2; 4 << 10].into(),
        headers: (0..16).map(|n| (format!("{n:02}"), "v".repeat(254))).collect(),
        dedupe_key: "k".repeat(200),
        max_attempts: 1_000,
        schedule: Some(Schedule::Delay(seconds(0))),
        lease_duration: Some(seconds(43_200)),
        ttl: Some(seconds(366 * 86_400)),
        ..item(&"t".repeat(200))
    };
    wire.stored(vec![largest.clone()]).await;
    let got = wire.take_one(&"t".repeat(200)).await;
    assert_eq!(
        (got.payload, got.metadata, got.headers),
        (largest.payload, largest.metadata, largest.headers)
    );
    assert_eq!(wire.stored(vec![item("many"); 1_000]).await.len(), 1_000);
    assert_eq!(wire.take("many", 1_000).await.len(), 1_000);
}

#[tokio::test]
async fn a_dedupe_key_makes_one_item_also_after_its_ack() {
    let wire = Wire::start().await;
    let keyed = || EnqueueItem { dedupe_key: "once".into(), ..item("t") };
    let first = wire.enqueue(vec![keyed(), keyed()]).await.unwrap();
    assert!(!first[0].duplicate && first[1].duplicate);
    assert_eq!(first[0].item_id, first[1].item_id);

    let got = wire.take("t", 10).await;
    assert_eq!(got.len(), 1);
    assert_eq!(wire.ack(&got[0].receipt).await, None);
    let again = wire.enqueue(vec![keyed(), item("t")]).await.unwrap();
    assert!(again[0].duplicate && !again[1].duplicate);
    assert_eq!(again[0].item_id, first[0].item_id);
    assert!(again[0].first_enqueued_at.is_some() && again[1].first_enqueued_at.is_none());
    assert_eq!(again[0].first_enqueued_at, first[1].first_enqueued_at);

    // Nor does a key of one topic hold up an item of another one.
    let elsewhere = EnqueueItem { topic: "invoice".into(), ..keyed() };
    let elsewhere = wire.enqueue(vec![elsewhere]).await.unwrap();
    assert!(!elsewhere[0].duplicate && wire.take("invoice", 10).await.len() == 1);

    // Dedupe keys of different namespaces are different keys.
    let other = EnqueueRequest { namespace: "other".into(), ..request(vec![keyed()]) };
    let other = call(&wire, other).await.unwrap().into_inner().results;
    assert!(!other[0].duplicate && other[0].item_id != first[0].item_id);
}

#[tokio::test]
async fn a_retried_request_id_stores_nothing() {
    let wire = Wire::start().await;
    let wrong = EnqueueItem { topic: String::new(), ..item("t") };
    let named = EnqueueRequest { request_id: "call-1".into(), ..request(vec![item("t"), wrong, item("u")]) };
    let first = call(&wire, named.clone()).await.unwrap().into_inner().results;
    assert_eq!((&first[0].error, &first[2].error), (&None, &None));
    RefusalDetails::member(&first[1].error).invalid("items[1].topic");
    let shard = |id: &str| id.split('-').next().unwrap().to_owned();
    assert_eq!(shard(&first[0].item_id), shard(&first[2].item_id), "stored whole in one shard");

    let again = call(&wire, named.clone()).await.unwrap().into_inner().results;
    let ids = |results: &[forebay_proto::v1::EnqueueResult]| {
        results.iter().map(|result| result.item_id.clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&again), ids(&first));
    assert_eq!((wire.take("t", 10).await.len(), wire.take("u", 10).await.len()), (1, 1));

    let other = |topic: &str| EnqueueItem { payload: "other".into(), ..item(topic) };
    for items in [vec![item("t"); 5], vec![item("t"), other("u")], vec![item("u"), item("t")]] {
        let reused = RefusalDetails::call(call(&wire, EnqueueRequest { items, ..named.clone() }).await);
        assert_eq!((reused.code, reused.reason.as_str()), (Code::AlreadyExists, "REQUEST_ID_REUSED"));
    }
    assert!(wire.is_empty("t").await && wire.is_empty("u").await, "nothing of these was stored");
}

#[tokio::test]
async fn items_are_ordered_by_priority_then_by_call() {
    let wire = Wire::start().await;
    let mut sent = Vec::new();
    for priority in [5, i32::MAX, i32::MIN, 0, -1] {
        let numbered = |number: u8| EnqueueItem { priority, payload: vec![number].into(), ..item("order") };
        wire.stored((0..3).map(numbered).collect()).await;
        wire.stored((3..6).map(numbered).collect()).await;
        sent.extend((0..6).map(|number| (priority, number)));
    }
    sent.sort();
    let got = wire.take("order", 100).await;
    let got: Vec<_> = got.iter().map(|item| (item.priority, item.payload[0])).collect();
    assert_eq!(got, sent);
}

#[tokio::test]
async fn no_item_is_delivered_early_or_after_its_expiry() {
    let wire = Wire::start().await;
    let began = Instant::now();
    let later = EnqueueItem {
        schedule: Some(Schedule::Delay(span(Duration::from_millis(1_500)))),
        payload: "later".into(),
        ..item("time")
    };
    let past = EnqueueItem {
        schedule: Some(Schedule::DeliverAfter(prost_types::Timestamp { seconds: 1, nanos: 0 })),
        payload: "past".into(),
        ..item("time")
    };
    let short = EnqueueItem { ttl: Some(span(Duration::from_millis(300))), ..item("short") };
    wire.stored(vec![later, past, short]).await;
    assert_eq!(&wire.take_one("time").await.payload[..], b"past");
    assert_eq!(&wire.take_one("time").await.payload[..], b"later");
    assert!(began.elapsed() >= Duration::from_millis(1_500));
    assert!(wire.is_empty("short").await, "expired by now");
}

#[tokio::test]
async fn tenants_are_isolated() {
    let wire = Wire::start().await;
    wire.stored(vec![item("shared")]).await;
    let foreign = DequeueRequest { namespace: "other".into(), ..asked("shared", 1) };
    assert!(wire.client().dequeue(foreign).await.unwrap().into_inner().items.is_empty());

    let got = wire.take_one("shared").await;
    let acks = vec![Ack { receipt: got.receipt.clone() }];
    let foreign = AckRequest { namespace: "other".into(), acks };
    let results = wire.client().ack(foreign).await.unwrap().into_inner().results;
    let refused = RefusalDetails::member(&results[0].error);
    assert_eq!((refused.code, refused.reason.as_str()), (Code::PermissionDenied, "WRONG_NAMESPACE"));
    assert_eq!(wire.ack(&got.receipt).await, None, "nothing happened to it");
}

#[tokio::test]
async fn a_strict_node_refuses_other_namespaces() {
    let wire = Wire::with("strict_namespaces = true\n[namespace.wire]\n").await;
    wire.stored(vec![item("t")]).await;
    let other = EnqueueRequest { namespace: "other".into(), ..request(vec![item("t")]) };
    let refused = RefusalDetails::call(call(&wire, other).await);
    assert_eq!((refused.code, refused.reason.as_str()), (Code::PermissionDenied, "NOT_ALLOWED"));
    let other =
        DequeueRequest { namespace: "other".into(), demands: vec![demand("t", 1)], ..Default::default() };
    assert_eq!(RefusalDetails::call(wire.client().dequeue(other).await).reason, "NOT_ALLOWED");
}
