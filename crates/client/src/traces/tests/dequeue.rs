//! Dequeues: their spans, and what the calls carry.

use std::time::Duration;

use forebay_proto::v1;
use opentelemetry::{
    context::FutureExt as _,
    trace::{SpanKind, TraceContextExt as _},
};

use super::{Recorder, carried, is_below, links, operation, parent};
use crate::{
    DequeueCall,
    testing::{Fake, item},
};

const CREATED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A delivery of an item that was created in a trace.
fn created(number: usize, attempt: u32) -> v1::DequeuedItem {
    let headers = [("traceparent".to_owned(), CREATED.to_owned())].into();
    v1::DequeuedItem { attempt, headers, ..item(number) }
}

#[tokio::test(start_paused = true)]
async fn a_dequeue_links_to_where_its_items_were_created() {
    let (recorder, (fake, client)) = (Recorder::start(), Fake::start().await);
    let other = v1::DequeuedItem { topic: "b".to_owned(), ..item(2) };
    fake.dequeue.answer(v1::DequeueResponse { items: vec![created(0, 1), created(1, 3)] });
    fake.dequeue.answer(v1::DequeueResponse { items: vec![created(0, 1), other] });
    let caller = recorder.caller();
    client.dequeue(DequeueCall::topic("a", 10)).with_context(caller.clone()).await.unwrap();
    client.dequeue(DequeueCall::topic("a", 10)).await.unwrap();
    caller.span().end();
    let ([span, mixed], caller): ([_; 2], _) =
        (recorder.of("dequeue").try_into().unwrap(), recorder.only("caller"));
    assert_eq!((&*span.name, &span.span_kind), ("dequeue a", &SpanKind::Client));
    assert_eq!(operation(&span), ["dequeue", "receive", "a", "2"]);
    assert_eq!(links(&span), [CREATED, CREATED]);
    let attempts: Vec<_> = span.links.iter().map(|link| link.attributes[0].value.to_string()).collect();
    assert!(span.links.iter().all(|link| link.attributes[0].key.as_str() == "forebay.attempt"));
    assert_eq!(attempts, ["1", "3"]);
    assert!(is_below(&span, &caller));
    assert_eq!((&*mixed.name, operation(&mixed)[2].as_str()), ("dequeue", ""));
    assert_eq!(links(&mixed), [CREATED], "the other item names no span");
    // The span was made later than the calls, and nothing is below it.
    assert_eq!(carried(&fake.dequeue.metadata()), [parent(&caller), String::new()]);
}

#[tokio::test]
async fn the_span_of_a_dequeue_begins_with_its_call() {
    let (recorder, (fake, client)) = (Recorder::start(), Fake::start().await);
    fake.dequeue.hold(true);
    fake.dequeue.answer(v1::DequeueResponse { items: vec![item(0)] });
    let call = tokio::spawn(async move { client.dequeue(DequeueCall::topic("a", 1)).await });
    tokio::time::sleep(Duration::from_millis(20)).await;
    fake.dequeue.hold(false);
    call.await.unwrap().unwrap();
    let span = recorder.only("dequeue");
    let took = span.end_time.duration_since(span.start_time).unwrap();
    assert!(took >= Duration::from_millis(15), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn an_empty_poll_has_no_span() {
    let (recorder, (fake, client)) = (Recorder::start(), Fake::start().await);
    let call = DequeueCall::topic("a", 1).wait(Duration::from_secs(5));
    assert_eq!(client.dequeue(call).await.unwrap(), []);
    assert!(recorder.spans().is_empty());
    assert_eq!(carried(&fake.dequeue.metadata()), [""]);
}

#[tokio::test(start_paused = true)]
async fn a_dequeue_has_a_bounded_number_of_links() {
    let (recorder, (fake, client)) = (Recorder::start(), Fake::start().await);
    fake.dequeue.answer(v1::DequeueResponse { items: (0..300).map(|number| created(number, 1)).collect() });
    client.dequeue(DequeueCall::topic("a", 300)).await.unwrap();
    let span = recorder.only("dequeue");
    assert_eq!((span.links.len(), operation(&span)[3].as_str()), (128, "300"));
}
