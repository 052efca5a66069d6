//! `ExtendLease`

use std::time::Duration;

use forebay_proto::v1::{
    EnqueueItem, ExtendLeaseRequest, ExtendLeaseResponse, ExtendLeaseResult, LeaseExtension,
};
use tonic::{Code, Response, Status};

use super::{NAMESPACE, RefusalDetails, Wire, beside, item, micros, seconds, span};

async fn call(wire: &Wire, request: ExtendLeaseRequest) -> Result<Response<ExtendLeaseResponse>, Status> {
    wire.client().extend_lease(request).await
}

fn of(receipt: &str, lease_duration: Option<prost_types::Duration>) -> LeaseExtension {
    LeaseExtension { receipt: receipt.into(), lease_duration }
}

fn request(extensions: Vec<LeaseExtension>) -> ExtendLeaseRequest {
    ExtendLeaseRequest { namespace: NAMESPACE.into(), extensions }
}

async fn extend(wire: &Wire, extension: LeaseExtension) -> ExtendLeaseResult {
    call(wire, request(vec![extension])).await.unwrap().into_inner().results.remove(0)
}

#[tokio::test]
async fn each_wrong_value_is_named() {
    let wire = Wire::start().await;
    let nobody = ExtendLeaseRequest { namespace: String::new(), extensions: vec![of("x", None)] };
    RefusalDetails::call(call(&wire, nobody).await).invalid("namespace");
    RefusalDetails::call(call(&wire, request(vec![])).await).invalid("extensions");
    RefusalDetails::call(call(&wire, request(vec![of("x", None); 1_001])).await).too_large("extensions");

    wire.stored(vec![item("t")]).await;
    let got = wire.take_one("t").await;
    let wrong = [seconds(0), seconds(-1), seconds(43_201), span(Duration::from_millis(999))];
    let mut extensions = vec![of("x", None)];
    extensions.extend(wrong.map(|wrong| of(&got.receipt, Some(wrong))));
    extensions.push(of(&got.receipt, None));
    let results = call(&wire, request(extensions)).await.unwrap().into_inner().results;
    RefusalDetails::member(&results[0].error).is(
        Code::InvalidArgument,
        "INVALID_RECEIPT",
        Some("extensions[0].receipt"),
    );
    for (index, result) in results.iter().enumerate().take(5).skip(1) {
        beside(&result.error, &result.reason, &result.retry_after);
        RefusalDetails::member(&result.error).invalid(&format!("extensions[{index}].lease_duration"));
    }
    assert_eq!(results[5].error, None, "a sibling is extended");
}

#[tokio::test]
async fn an_extension_counts_from_now_and_keeps_the_receipt() {
    let wire = Wire::start().await;
    wire.stored(vec![EnqueueItem { lease_duration: Some(seconds(40)), ..item("t") }]).await;
    let got = wire.take_one("t").await;
    let longer = extend(&wire, of(&got.receipt, Some(seconds(3_600)))).await;
    assert_eq!(longer.error, None);
    assert!(micros(&longer.lease_expires_at) > micros(&got.lease_expires_at));
    // Without a duration the item's own applies, which shortens the lease here.
    let own = extend(&wire, of(&got.receipt, None)).await;
    let left = micros(&own.lease_expires_at) - micros(&got.enqueued_at);
    assert!((40_000_000..60_000_000).contains(&left), "{left}");

    // A lease that is shortened to 1 s ends after 1 s.
    assert_eq!(extend(&wire, of(&got.receipt, Some(seconds(1)))).await.error, None);
    let again = wire.take_one("t").await;
    assert_eq!(again.attempt, 2);
    RefusalDetails::member(&extend(&wire, of(&got.receipt, None)).await.error).lost("leased");
    assert_eq!(wire.ack(&again.receipt).await, None);
    RefusalDetails::member(&extend(&wire, of(&again.receipt, None)).await.error).lost("gone");
}
