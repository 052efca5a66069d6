//! Batching, buffering and flushing of a producer, against a scripted server.

use super::*;
use crate::testing::Fake;

#[tokio::test(start_paused = true)]
async fn items_queued_during_a_call_are_batched() {
    let (fake, client) = Fake::start().await;
    fake.enqueue.hold(true);
    let config = ProducerConfig { calls: 1, ..ProducerConfig::default() };
    let producer = Producer::start(client, config);
    let first = producer.send(NewItem::new("a", "first")).await.unwrap();
    fake.enqueue.seen(1).await;
    let mut rest = Vec::new();
    for number in 0..2_500 {
        rest.push(producer.send(NewItem::new("a", number.to_string())).await.unwrap());
    }
    fake.enqueue.hold(false);
    assert_eq!(first.await.unwrap().item_id, "first");
    for (number, pending) in rest.into_iter().enumerate() {
        assert_eq!(pending.await.unwrap().item_id, number.to_string());
    }
    let sizes: Vec<_> = fake.enqueue.calls().iter().map(|call| call.items.len()).collect();
    assert_eq!(sizes, [1, 1_000, 1_000, 500]);
}

#[tokio::test(start_paused = true)]
async fn a_request_respects_the_byte_limit() {
    let (fake, client) = Fake::start().await;
    fake.enqueue.hold(true);
    let producer = Producer::start(client, ProducerConfig { calls: 1, ..ProducerConfig::default() });
    let mut all = vec![producer.send(NewItem::new("a", "first")).await.unwrap()];
    fake.enqueue.seen(1).await;
    for _ in 0..40 {
        all.push(producer.send(NewItem::new("a", vec![b'x'; 256 << 10])).await.unwrap());
    }
    fake.enqueue.hold(false);
    for pending in all {
        pending.await.unwrap();
    }
    for call in fake.enqueue.calls() {
        assert!(prost::Message::encoded_len(&call) <= 4 << 20);
    }
    assert_eq!(fake.enqueue.calls().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn send_waits_for_room_and_close_for_the_answers() {
    let (fake, client) = Fake::start().await;
    fake.enqueue.hold(true);
    let config = ProducerConfig { buffer_items: 2, ..ProducerConfig::default() };
    let producer = Producer::start(client, config);
    let one = producer.send(NewItem::new("a", "1")).await.unwrap();
    let two = producer.send(NewItem::new("a", "2")).await.unwrap();
    let third = producer.send(NewItem::new("a", "3"));
    assert!(tokio::time::timeout(Duration::from_secs(1), third).await.is_err());

    let closing = tokio::spawn({
        let producer = producer.clone();
        async move { producer.close().await }
    });
    fake.enqueue.hold(false);
    closing.await.unwrap().unwrap();
    assert!(one.await.is_ok() && two.await.is_ok());
    assert_eq!(producer.send(NewItem::new("a", "4")).await.unwrap_err().code(), Code::FailedPrecondition);
}

#[tokio::test(start_paused = true)]
async fn a_flush_ends_the_linger() {
    let (fake, client) = Fake::start().await;
    let config = ProducerConfig { linger: Duration::from_secs(3_600), ..ProducerConfig::default() };
    let producer = Producer::start(client, config);
    let started = tokio::time::Instant::now();
    let one = producer.send(NewItem::new("a", "1")).await.unwrap();
    let two = producer.send(NewItem::new("a", "2")).await.unwrap();
    producer.flush().await.unwrap();
    assert!(one.await.is_ok() && two.await.is_ok());
    assert!(started.elapsed() < Duration::from_secs(1));
    assert_eq!(fake.enqueue.calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failed_call_fails_each_of_its_items() {
    let (fake, client) = Fake::start().await;
    fake.enqueue.fail(Code::PermissionDenied, Some("NOT_ALLOWED"), 1);
    let producer = Producer::start(client, ProducerConfig::default());
    let error = producer.send(NewItem::new("a", "1")).await.unwrap().await.unwrap_err();
    assert_eq!(error.reason(), Some(crate::Reason::NotAllowed));
}
