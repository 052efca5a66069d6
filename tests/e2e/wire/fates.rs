//! Fates of items and deliveries, as `/metrics` counts them by namespace.

use std::time::Duration;

use forebay_proto::v1::{DequeueRequest, EnqueueItem, Nack};

use super::{NAMESPACE, Wire, asked, item, seconds, span};

/// Returns the value of a counter.
async fn count(wire: &Wire, name: &str) -> f64 {
    wire.metric(&format!("forebay_{name}_total{{namespace=\"{NAMESPACE}\"}}")).await
}

/// How many items died of this.
fn died(cause: &str) -> String {
    format!("forebay_dead_lettered_total{{namespace=\"{NAMESPACE}\",cause=\"{cause}\"}}")
}

/// Takes an item whose lease runs out soon.
async fn take_briefly(wire: &Wire, topic: &str) {
    let lease_duration = Some(seconds(1));
    let request = DequeueRequest { wait: Some(seconds(10)), lease_duration, ..asked(topic, 1) };
    assert_eq!(wire.client().dequeue(request).await.unwrap().into_inner().items.len(), 1);
}

#[tokio::test]
async fn each_end_of_a_delivery_is_counted() {
    let wire = Wire::start().await;
    wire.stored(vec![item("t"); 4]).await;
    for (release, dead_letter) in [(false, false), (true, false), (false, true)] {
        let receipt = wire.take_one("t").await.receipt;
        assert_eq!(wire.nack(Nack { receipt, release, dead_letter, ..Nack::default() }).await, None);
    }
    assert_eq!([count(&wire, "nacked").await, count(&wire, "released").await], [2.0, 1.0]);
    assert_eq!(count(&wire, "lapsed").await, 0.0, "it begins at 0");
    take_briefly(&wire, "t").await;
    let lapsed = format!("forebay_lapsed_total{{namespace=\"{NAMESPACE}\"}}");
    wire.wait_for_metric(&lapsed, |lapsed| lapsed == 1.0).await;
    assert_eq!(count(&wire, "failed_deliveries").await, 3.0, "those that were nacked or have lapsed");
    assert_eq!(wire.metric(&died("dead-lettered")).await, 1.0);
}

#[tokio::test]
async fn dead_letters_have_a_cause() {
    let wire = Wire::start().await;
    wire.stored(vec![EnqueueItem { max_attempts: 1, ..item("t") }; 3]).await;
    for _ in 0..2 {
        let receipt = wire.take_one("t").await.receipt;
        assert_eq!(wire.nack(Nack { receipt, ..Nack::default() }).await, None);
    }
    take_briefly(&wire, "t").await;
    wire.wait_for_metric(&died("lease ended"), |items| items == 1.0).await;
    assert_eq!([wire.metric(&died("nacked")).await, wire.metric(&died("dead-lettered")).await], [2.0, 0.0]);
}

#[tokio::test]
async fn items_that_expire_and_those_that_are_there_already_are_counted() {
    let wire = Wire::start().await;
    wire.stored(vec![EnqueueItem { ttl: Some(span(Duration::from_millis(300))), ..item("short") }; 2]).await;
    let keyed = || EnqueueItem { dedupe_key: "order 7".into(), ..item("t") };
    wire.stored(vec![keyed()]).await;
    wire.stored(vec![keyed(); 3]).await;
    assert_eq!([count(&wire, "enqueued").await, count(&wire, "duplicates").await], [3.0, 3.0]);
    let expired = format!("forebay_expired_total{{namespace=\"{NAMESPACE}\"}}");
    wire.wait_for_metric(&expired, |items| items == 2.0).await;
}
