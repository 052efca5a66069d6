//! `Nack`

use std::time::Duration;

use forebay_proto::v1::{
    EnqueueItem, GetItemRequest, Nack, NackRequest, NackResponse, admin_service_client::AdminServiceClient,
};
use tokio::time::Instant;
use tonic::{Code, Response, Status};

use super::{NAMESPACE, RefusalDetails, Wire, item, seconds};

async fn call(wire: &Wire, request: NackRequest) -> Result<Response<NackResponse>, Status> {
    wire.client().nack(request).await
}

fn of(receipt: &str) -> Nack {
    Nack { receipt: receipt.into(), ..Default::default() }
}

#[tokio::test]
async fn each_wrong_value_is_named() {
    let wire = Wire::start().await;
    let request = |nacks| NackRequest { namespace: NAMESPACE.into(), nacks };
    RefusalDetails::call(call(&wire, NackRequest { namespace: String::new(), nacks: vec![of("x")] }).await)
        .invalid("namespace");
    RefusalDetails::call(call(&wire, request(vec![])).await).invalid("nacks");
    RefusalDetails::call(call(&wire, request(vec![of("x"); 1_001])).await).too_large("nacks");

    wire.stored(vec![item("t")]).await;
    let got = wire.take_one("t").await;
    let good = || of(&got.receipt);
    let wrong = [
        (of("x"), "INVALID_RECEIPT", "receipt"),
        (Nack { delay: Some(seconds(-1)), ..good() }, "INVALID_FIELD", "delay"),
        (Nack { delay: Some(seconds(366 * 86_400 + 1)), ..good() }, "INVALID_FIELD", "delay"),
        (Nack { metadata: Some(vec![0; 4_097].into()), ..good() }, "TOO_LARGE", "metadata"),
        (Nack { dead_letter: true, release: true, ..good() }, "INVALID_FIELD", "release"),
    ];
    let nacks = wrong.iter().map(|(nack, _, _)| nack.clone()).collect();
    let results = call(&wire, request(nacks)).await.unwrap().into_inner().results;
    for (index, (_, reason, field)) in wrong.iter().enumerate() {
        let path = format!("nacks[{index}].{field}");
        RefusalDetails::member(&results[index].error).is(Code::InvalidArgument, reason, Some(&path));
    }
    assert_eq!(wire.ack(&got.receipt).await, None, "the delivery goes on");
}

/// However long a text is, the failure counts.
#[tokio::test]
async fn a_reason_that_is_too_long_is_cut() {
    let wire = Wire::start().await;
    for (topic, reason, kept) in [
        ("ascii", "r".repeat(1_025), "r".repeat(1_021) + "…"),
        ("wide", "é".repeat(200_000), "é".repeat(510) + "…"),
    ] {
        let id = wire.stored(vec![EnqueueItem { max_attempts: 1, ..item(topic) }]).await.remove(0);
        let got = wire.take_one(topic).await;
        assert_eq!(wire.nack(Nack { reason, ..of(&got.receipt) }).await, None);
        let request = GetItemRequest { namespace: NAMESPACE.into(), item_id: id, ..Default::default() };
        let found =
            AdminServiceClient::new(wire.node.channel()).get_item(request).await.unwrap().into_inner();
        assert_eq!(found.item.unwrap().death.unwrap().reason, kept);
    }
}

/// Given, or set for the topic; and the caller is told.
#[tokio::test]
async fn a_delay_that_would_pass_the_expiry_is_cut() {
    let wire = Wire::start().await;
    let expiring = EnqueueItem { ttl: Some(seconds(4)), ..item("cut") };
    wire.stored(vec![expiring]).await;
    let got = wire.take_one("cut").await;
    let request = |nack| NackRequest { namespace: NAMESPACE.into(), nacks: vec![nack] };
    let long = Nack { delay: Some(seconds(60)), ..of(&got.receipt) };
    let result = call(&wire, request(long)).await.unwrap().into_inner().results.remove(0);
    assert!(result.error.is_none() && result.delay_cut, "{result:?}");
    let again = wire.take_one("cut").await;
    assert_eq!((again.attempt, again.failures), (2, 1));
    let brief = Nack { delay: Some(seconds(0)), ..of(&again.receipt) };
    let result = call(&wire, request(brief)).await.unwrap().into_inner().results.remove(0);
    assert!(result.error.is_none() && !result.delay_cut, "{result:?}");
}

#[tokio::test]
async fn a_nacked_item_is_unchanged_but_for_its_metadata() {
    let wire = Wire::start().await;
    let sent = EnqueueItem { priority: 3, metadata: "old".into(), ..item("back") };
    wire.stored(vec![sent]).await;
    let first = wire.take_one("back").await;
    assert_eq!(wire.nack(of(&first.receipt)).await, None);
    let second = wire.take_one("back").await;
    assert_eq!((second.priority, second.attempt, &second.metadata[..]), (3, 2, &b"old"[..]));
    assert_eq!((&second.item_id, &second.payload), (&first.item_id, &first.payload));

    let metadata = Some("new".into());
    assert_eq!(wire.nack(Nack { metadata, ..of(&second.receipt) }).await, None);
    let third = wire.take_one("back").await;
    assert_eq!(&third.metadata[..], b"new");
    // Empty metadata replaces the old; absent metadata does not.
    assert_eq!(wire.nack(Nack { metadata: Some("".into()), ..of(&third.receipt) }).await, None);
    assert!(wire.take_one("back").await.metadata.is_empty());
}

#[tokio::test]
async fn a_nacked_item_waits_for_its_delay() {
    let wire = Wire::start().await;
    wire.stored(vec![item("later")]).await;
    let first = wire.take_one("later").await;
    let began = Instant::now();
    assert_eq!(wire.nack(Nack { delay: Some(seconds(1)), ..of(&first.receipt) }).await, None);
    assert!(wire.is_empty("later").await);
    assert_eq!(wire.take_one("later").await.attempt, 2);
    assert!(began.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn failures_are_counted_and_releases_are_not() {
    let wire = Wire::start().await;
    wire.stored(vec![EnqueueItem { max_attempts: 2, ..item("count") }]).await;
    for attempt in 1..=5 {
        let got = wire.take_one("count").await;
        assert_eq!(got.attempt, attempt);
        assert_eq!(wire.nack(Nack { release: true, ..of(&got.receipt) }).await, None);
    }
    let got = wire.take_one("count").await;
    assert_eq!(wire.nack(of(&got.receipt)).await, None);
    let got = wire.take_one("count").await;
    assert_eq!(wire.nack(Nack { reason: "hopeless".into(), ..of(&got.receipt) }).await, None);
    RefusalDetails::member(&wire.ack(&got.receipt).await).lost("dead");
    assert!(wire.is_empty("count").await);
}
