//! `Ack`

use forebay_proto::v1::{Ack, AckRequest, AckResponse, EnqueueItem, Nack};
use tonic::{Code, Response, Status};

use super::{NAMESPACE, RefusalDetails, Wire, item, seconds};

async fn call(wire: &Wire, request: AckRequest) -> Result<Response<AckResponse>, Status> {
    wire.client().ack(request).await
}

fn request(receipts: &[&str]) -> AckRequest {
    let acks = receipts.iter().map(|receipt| Ack { receipt: (*receipt).into() }).collect();
    AckRequest { namespace: NAMESPACE.into(), acks }
}

#[tokio::test]
async fn a_call_that_is_wrong_as_a_whole_fails_whole() {
    let wire = Wire::start().await;
    let empty = AckRequest { namespace: String::new(), ..request(&["x"]) };
    RefusalDetails::call(call(&wire, empty).await).invalid("namespace");
    RefusalDetails::call(call(&wire, request(&[])).await).invalid("acks");
    RefusalDetails::call(call(&wire, request(&["x"; 1_001])).await).too_large("acks");
}

#[tokio::test]
async fn each_receipt_has_its_own_answer() {
    let wire = Wire::start().await;
    wire.stored(vec![item("t"); 3]).await;
    let got = wire.take("t", 3).await;
    let long = "A".repeat(10_000);
    let broken = &got[0].receipt[1..];
    let receipts = [&got[0].receipt, "", &got[1].receipt, "no receipt", &got[0].receipt, broken, &long];
    let results = call(&wire, request(&receipts)).await.unwrap().into_inner().results;
    assert_eq!(results.len(), receipts.len());
    assert_eq!((&results[0].error, &results[2].error), (&None, &None));
    for wrong in [1, 3, 5, 6] {
        let path = format!("acks[{wrong}].receipt");
        RefusalDetails::member(&results[wrong].error).is(
            Code::InvalidArgument,
            "INVALID_RECEIPT",
            Some(&path),
        );
    }
    assert_eq!(results[4].error, None, "a receipt that is repeated in one call has one answer");
    RefusalDetails::member(&wire.ack(&got[0].receipt).await).lost("gone");
    assert_eq!(wire.ack(&got[2].receipt).await, None);
    assert!(wire.is_empty("t").await);
}

#[tokio::test]
async fn an_old_receipt_says_where_the_item_is() {
    let wire = Wire::start().await;
    wire.stored(vec![EnqueueItem { max_attempts: 3, ..item("fate") }]).await;
    let first = wire.take_one("fate").await;
    let delay = Some(seconds(1));
    assert_eq!(wire.nack(Nack { receipt: first.receipt.clone(), delay, ..Default::default() }).await, None);
    RefusalDetails::member(&wire.ack(&first.receipt).await).lost("waiting");

    let second = wire.take_one("fate").await;
    assert_eq!(second.attempt, 2);
    RefusalDetails::member(&wire.ack(&first.receipt).await).lost("leased");

    let dead_letter = true;
    assert_eq!(wire.nack(Nack { receipt: second.receipt, dead_letter, ..Default::default() }).await, None);
    RefusalDetails::member(&wire.ack(&first.receipt).await).lost("dead");
    assert!(wire.is_empty("fate").await);
}
