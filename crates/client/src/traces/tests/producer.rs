//! A producer: whose span the items of one call are below.

use opentelemetry::{
    context::FutureExt as _,
    trace::{SpanKind, TraceContextExt as _},
};

use super::{Recorder, attribute, is_below, links, parent};
use crate::{
    NewItem, Producer, ProducerConfig, TraceConfig,
    testing::{Fake, Network, config},
};

#[tokio::test(start_paused = true)]
async fn each_item_is_created_below_the_span_of_who_sent_it() {
    let (recorder, (fake, client)) = (Recorder::start(), Fake::start().await);
    fake.enqueue.hold(true);
    let producer = Producer::start(client, ProducerConfig { calls: 1, ..ProducerConfig::default() });
    let first = producer.send(NewItem::new("a", "1")).await.unwrap();
    fake.enqueue.seen(1).await;
    let mut callers = Vec::new();
    for topic in ["b", "c"] {
        let caller = recorder.caller();
        let pending = producer.send(NewItem::new(topic, "1")).with_context(caller.clone()).await.unwrap();
        callers.push((caller, pending));
    }
    fake.enqueue.hold(false);
    assert!(first.await.is_ok());
    for (caller, pending) in callers {
        assert!(pending.await.is_ok());
        caller.span().end();
    }
    producer.close().await.unwrap();
    let (created, callers) = (recorder.of("create"), recorder.of("caller"));
    assert!(is_below(&created[1], &callers[0]) && is_below(&created[2], &callers[1]));
    let names: Vec<_> = created.iter().map(parent).collect();
    let [one, batch]: [_; 2] = recorder.of("enqueue").try_into().unwrap();
    assert_eq!((links(&one), links(&batch)), (names[..1].to_vec(), names[1..].to_vec()));
    assert!([&one, &batch].iter().all(|span| span.span_kind == SpanKind::Client));
    assert_eq!(attribute(&batch, "messaging.batch.message_count"), "2");
    let calls = fake.enqueue.calls();
    let named = calls.iter().flat_map(|call| &call.items).map(|item| item.headers["traceparent"].clone());
    assert_eq!(named.collect::<Vec<_>>(), names);
}

#[tokio::test(start_paused = true)]
async fn a_closed_producer_says_so_in_the_span_of_the_item() {
    let (recorder, (_fake, client)) = (Recorder::start(), Fake::start().await);
    let producer = Producer::start(client, ProducerConfig::default());
    producer.close().await.unwrap();
    producer.send(NewItem::new("a", "1")).await.unwrap_err();
    assert_eq!(attribute(&recorder.only("create"), "error.type"), "FAILED_PRECONDITION");
}

#[tokio::test(start_paused = true)]
async fn a_full_batch_has_room_for_what_is_put_on_its_items() {
    for create_spans in [true, false] {
        let (recorder, network) = (Recorder::start(), Network::default());
        let fake = network.fake("a:1");
        let traces = TraceConfig { create_spans, ..TraceConfig::default() };
        let client = network.configured(config(&["a:1"]).traces(traces));
        let config = ProducerConfig { batch_bytes: 4 << 20, calls: 1, ..ProducerConfig::default() };
        let producer = Producer::start(client, config);
        fake.enqueue.hold(true);
        let mut pending = vec![producer.send(NewItem::new("a", "first")).await.unwrap()];
        fake.enqueue.seen(1).await;
        for _ in 1..3_000 {
            pending.push(producer.send(NewItem::new("a", vec![b'x'; 4_200])).await.unwrap());
        }
        fake.enqueue.hold(false);
        for pending in pending {
            pending.await.unwrap();
        }
        let calls = fake.enqueue.calls();
        let largest = calls.iter().map(prost::Message::encoded_len).max().unwrap();
        assert!(largest > (4 << 20) - (64 << 10), "{largest}");
        // The limit of a batch leaves out what a call has beside its items.
        assert!(largest < (4 << 20) + 100, "{largest}");
        assert_eq!(recorder.of("create").len(), if create_spans { 3_000 } else { 0 });
    }
}
