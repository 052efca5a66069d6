//! Acks, nacks, extensions, and calls that have no span.

use forebay_proto::v1;
use opentelemetry::{
    context::FutureExt as _,
    trace::{SpanKind, TraceContextExt as _},
};

use super::{Recorder, attribute, carried, is_below, links, operation, parent};
use crate::{
    DequeueCall, Nack, NackAction, TraceConfig,
    testing::{Fake, Network, item},
    traces::{HandlerContext, process},
};

#[tokio::test(start_paused = true)]
async fn each_way_to_settle_has_a_span_that_its_call_carries() {
    let (recorder, (fake, client)) = (Recorder::start(), Fake::start().await);
    let caller = recorder.caller();
    let calls = async {
        client.ack(vec!["secret-1".into(), "secret-2".into()]).await.unwrap();
        client.nack(vec![Nack::new("secret-3", NackAction::DeadLetter).reason("secret")]).await.unwrap();
        client.extend_lease(vec!["secret-4".into()], None).await.unwrap();
    };
    calls.with_context(caller.clone()).await;
    caller.span().end();
    let (spans, caller) =
        (["ack", "nack", "extend"].map(|name| recorder.only(name)), recorder.only("caller"));
    for (span, (name, count)) in spans.iter().zip([("ack", "2"), ("nack", "1"), ("extend", "1")]) {
        assert_eq!((&*span.name, &span.span_kind), (name, &SpanKind::Client));
        assert_eq!(operation(span), [name, "settle", "", count]);
        assert_eq!(attribute(span, "server.address"), "fake");
        assert!(is_below(span, &caller) && span.links.is_empty());
        assert!(!format!("{span:?}").contains("secret"), "{span:?}");
    }
    assert_eq!(carried(&fake.ack.metadata()), [parent(&spans[0])]);
    assert_eq!(carried(&fake.nack.metadata()), [parent(&spans[1])]);
    assert_eq!(carried(&fake.extend.metadata()), [parent(&spans[2])]);
}

#[tokio::test(start_paused = true)]
async fn one_ack_after_several_handlers_links_to_each() {
    let (recorder, (fake, client)) = (Recorder::start(), Fake::start().await);
    fake.dequeue.answer(v1::DequeueResponse { items: (0..300).map(item).collect() });
    let items = client.dequeue(DequeueCall::topic("a", 300)).await.unwrap();
    let handle = |item| process(item, TraceConfig::default()).end(None);
    let handled: Vec<_> = items.iter().map(handle).collect();
    let receipts = |count: usize| items[..count].iter().map(|item| item.receipt.clone()).collect();
    client.ack_processed(receipts(300), &handled).await.unwrap();
    client.ack_processed(receipts(1), &handled[..1]).await.unwrap();
    client.ack_processed(receipts(2), &[HandlerContext::none(), handled[0].clone()]).await.unwrap();
    let (handlers, acks) = (recorder.of("process"), recorder.of("ack"));
    let names: Vec<_> = handlers.iter().map(parent).collect();
    assert_eq!(acks.iter().map(links).collect::<Vec<_>>(), [&names[..128], &[], &names[..1]]);
    let below = acks.iter().map(|ack| is_below(ack, &handlers[0])).collect::<Vec<_>>();
    assert_eq!(below, [false, true, false]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_may_go_to_several_servers_names_none() {
    let (recorder, network) = (Recorder::start(), Network::default());
    let (_a, _b) = (network.fake("a:1"), network.fake("b:1"));
    network.client(&["a:1", "b:1"]).ack(vec!["r".into()]).await.unwrap();
    assert_eq!(attribute(&recorder.only("ack"), "server.address"), "");
}

#[tokio::test(start_paused = true)]
async fn calls_without_a_span_carry_that_of_their_caller() {
    let (recorder, (fake, client)) = (Recorder::start(), Fake::start().await);
    fake.nodes.answer(v1::ListNodesResponse::default());
    let caller = recorder.caller();
    let calls = async {
        client.nodes().await.unwrap();
        client.active_topics(Default::default()).await.unwrap();
    };
    calls.with_context(caller.clone()).await;
    caller.span().end();
    let caller = recorder.only("caller");
    assert_eq!(recorder.spans().len(), 1);
    assert_eq!(carried(&fake.topics.metadata()), [parent(&caller)]);
    assert_eq!(carried(&fake.nodes.metadata())[0], parent(&caller));
}
