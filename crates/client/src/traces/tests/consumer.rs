//! A consumer: the spans of its handlers, and what is below them.

use std::time::Duration;

use forebay_proto::v1;
use opentelemetry::trace::{SpanId, SpanKind, Status};
use opentelemetry_sdk::trace::SpanData;

use super::{Recorder, attribute, carried, is_below, links, operation, parent};
use crate::{
    Client, Consumer, ConsumerConfig, Delivery, NewItem, Outcome, TraceConfig,
    testing::{Fake, Network, config, item},
};

const CREATED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn created(count: usize) -> v1::DequeueResponse {
    let headers = || [("traceparent".to_owned(), CREATED.to_owned())].into();
    let items = (0..count).map(|number| v1::DequeuedItem { attempt: 2, headers: headers(), ..item(number) });
    v1::DequeueResponse { items: items.collect() }
}

/// Runs a handler, which enqueues an item, on what the server has, until it is asked for more.
async fn consume(fake: &Fake, client: Client, outcome: Outcome) {
    let inner = client.clone();
    let consumer = Consumer::start(client, ConsumerConfig::new(["a"]), move |_: Delivery| {
        let (outcome, client) = (outcome.clone(), inner.clone());
        async move {
            client.enqueue(vec![NewItem::new("next", "1")]).await.unwrap();
            outcome
        }
    });
    fake.dequeue.seen(2).await;
    consumer.stop().await.unwrap();
}

fn is_root(span: &SpanData) -> bool {
    span.parent_span_id == SpanId::INVALID
}

#[tokio::test(start_paused = true)]
async fn a_handler_begins_a_trace_with_what_it_does_and_its_ack_below() {
    let (recorder, (fake, client)) = (Recorder::start(), Fake::start().await);
    fake.dequeue.answer(created(1));
    consume(&fake, client, Outcome::Ack).await;
    let span = recorder.only("process");
    assert_eq!((&*span.name, &span.span_kind), ("process a", &SpanKind::Consumer));
    assert_eq!(operation(&span), ["process", "process", "a", ""]);
    assert_eq!(attribute(&span, "messaging.message.id"), "1-0");
    assert!(is_root(&span) && span.status == Status::Unset);
    assert_eq!(links(&span), [CREATED]);
    assert_eq!(span.links[0].attributes[0].value.to_string(), "2");
    let (next, ack, dequeue) = (recorder.only("enqueue"), recorder.only("ack"), recorder.only("dequeue"));
    assert!(is_below(&next, &span) && is_below(&ack, &span) && ack.links.is_empty());
    assert!(is_root(&dequeue));
    assert_eq!(attribute(&dequeue, "server.address"), "fake");
    assert_eq!(carried(&fake.ack.metadata()), [parent(&ack)]);
    assert!(carried(&fake.dequeue.metadata()).iter().all(String::is_empty), "polls are part of no trace");
}

#[tokio::test(start_paused = true)]
async fn a_handler_is_part_of_the_trace_of_its_item_if_that_is_wanted() {
    let (recorder, network) = (Recorder::start(), Network::default());
    let fake = network.fake("a:1");
    let traces = TraceConfig { process_is_child: true, ..TraceConfig::default() };
    let client = network.configured(config(&["a:1"]).traces(traces));
    fake.dequeue.answer(created(1));
    consume(&fake, client, Outcome::Ack).await;
    let span = recorder.only("process");
    assert_eq!(span.parent_span_id.to_string(), "b7ad6b7169203331");
    assert_eq!(links(&span), [CREATED]);
    let trace = span.span_context.trace_id();
    assert_eq!(trace.to_string(), "0af7651916cd43dd8448eb211c80319c");
    assert!(["enqueue", "ack"].iter().all(|name| recorder.only(name).span_context.trace_id() == trace));
}

#[tokio::test(start_paused = true)]
async fn a_handler_fails_with_its_outcome() {
    let outcomes = [
        (Outcome::retry(Duration::from_secs(1), "text of its own"), "RETRY"),
        (Outcome::reject("text of its own"), "REJECT"),
        (Outcome::Release, ""),
    ];
    for (outcome, failure) in outcomes {
        let (recorder, (fake, client)) = (Recorder::start(), Fake::start().await);
        fake.dequeue.answer(created(1));
        consume(&fake, client, outcome).await;
        let (span, nack) = (recorder.only("process"), recorder.only("nack"));
        assert_eq!(attribute(&span, "error.type"), failure);
        assert_eq!(span.status == Status::error(""), !failure.is_empty());
        assert!(is_below(&nack, &span) && nack.status == Status::Unset);
        assert!(!format!("{:?}", recorder.spans()).contains("text of its own"));
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_provider_a_consumer_works_as_ever() {
    drop(Recorder::start());
    let (fake, client) = Fake::start().await;
    fake.dequeue.answer(created(1));
    consume(&fake, client, Outcome::Ack).await;
    assert_eq!(carried(&fake.enqueue.metadata()), [""]);
    assert_eq!(carried(&fake.ack.metadata()), [""]);
}
