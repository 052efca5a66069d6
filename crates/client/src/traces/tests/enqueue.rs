//! Enqueues: their spans, and what they put on items.

use forebay_proto::{trace_context, v1};
use opentelemetry::{
    Context,
    context::FutureExt as _,
    trace::{SpanKind, Status, TraceContextExt as _},
};
use opentelemetry_sdk::trace::Sampler;
use tonic::Code;

use super::{Recorder, attribute, carried, is_below, links, operation, parent};
use crate::{
    NewItem, TraceConfig,
    testing::{Fake, Network, config},
};

const OWN: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn item(topic: &str) -> NewItem {
    NewItem::new(topic, "the payload")
}

fn with_own() -> NewItem {
    let mut item = item("a");
    item.headers.insert("traceparent".to_owned(), OWN.to_owned());
    item
}

/// The `traceparent` of each item of a call.
fn named(call: &v1::EnqueueRequest) -> Vec<String> {
    let named = |item: &v1::EnqueueItem| item.headers.get("traceparent").cloned().unwrap_or_default();
    call.items.iter().map(named).collect()
}

#[tokio::test(start_paused = true)]
async fn an_enqueue_of_one_item_creates_it() {
    let (recorder, (fake, client)) = (Recorder::start(), Fake::start().await);
    let caller = recorder.caller();
    let mut given = item("mail");
    given.headers.insert("h".to_owned(), "the header".to_owned());
    let answer = client.enqueue(vec![given]).with_context(caller.clone()).await.unwrap();
    assert_eq!(answer[0].as_ref().unwrap().item_id, "the payload", "the scripted server answers so");
    caller.span().end();
    let (span, caller) = (recorder.only("enqueue"), recorder.only("caller"));
    assert_eq!((&*span.name, &span.span_kind), ("enqueue mail", &SpanKind::Producer));
    assert_eq!(operation(&span), ["enqueue", "send", "mail", ""]);
    assert_eq!(attribute(&span, "messaging.message.id"), "the payload");
    assert_eq!([attribute(&span, "server.address"), attribute(&span, "server.port")], ["fake", "1"]);
    assert!(is_below(&span, &caller) && span.links.is_empty());
    assert_eq!((attribute(&span, "error.type"), &span.status), (String::new(), &Status::Unset));
    assert!(!format!("{span:?}").contains("the header"), "{span:?}");

    let call = &fake.enqueue.calls()[0];
    assert_eq!(named(call), [parent(&span)]);
    assert_eq!(call.items[0].headers.len(), 2, "an empty state is no header");
    assert_eq!(carried(&fake.enqueue.metadata()), [parent(&span)]);
}

#[tokio::test(start_paused = true)]
async fn an_item_that_names_a_span_keeps_it() {
    let (recorder, (fake, client)) = (Recorder::start(), Fake::start().await);
    client.enqueue(vec![with_own()]).await.unwrap();
    client.enqueue(vec![with_own(), item("a")]).await.unwrap();
    let [one, several]: [_; 2] = recorder.of("enqueue").try_into().unwrap();
    let created = parent(&recorder.only("create"));
    assert_eq!((one.span_kind.clone(), links(&one)), (SpanKind::Client, vec![OWN.to_owned()]));
    assert_eq!(links(&several), [OWN, &created]);
    let calls = fake.enqueue.calls();
    assert_eq!((named(&calls[0]), named(&calls[1])), (vec![OWN.to_owned()], vec![OWN.to_owned(), created]));
    assert_eq!(calls[0].items[0].headers.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn each_item_of_several_is_created_by_itself() {
    let (recorder, (fake, client)) = (Recorder::start(), Fake::start().await);
    let caller = recorder.caller();
    client.enqueue(vec![item("a"), item("b")]).with_context(caller.clone()).await.unwrap();
    client.enqueue(vec![item("b"), item("b")]).await.unwrap();
    caller.span().end();
    let [mixed, same]: [_; 2] = recorder.of("enqueue").try_into().unwrap();
    assert_eq!((&*mixed.name, &*same.name), ("enqueue", "enqueue b"));
    assert_eq!(operation(&mixed), ["enqueue", "send", "", "2"]);
    assert_eq!(operation(&same), ["enqueue", "send", "b", "2"]);
    assert_eq!(mixed.span_kind, SpanKind::Client);

    let created = recorder.of("create");
    assert_eq!(
        created.iter().map(|span| &*span.name).collect::<Vec<_>>(),
        ["create a", "create b", "create b", "create b"]
    );
    assert_eq!(operation(&created[0]), ["create", "create", "a", ""]);
    assert!(created.iter().all(|span| span.span_kind == SpanKind::Producer && span.links.is_empty()));
    let caller = recorder.only("caller");
    assert!(created[..2].iter().chain([&mixed]).all(|span| is_below(span, &caller)));
    let names: Vec<_> = created.iter().map(parent).collect();
    assert_eq!((links(&mixed), links(&same)), (names[..2].to_vec(), names[2..].to_vec()));
    let calls = fake.enqueue.calls();
    assert_eq!([named(&calls[0]), named(&calls[1])].concat(), names);
    assert_eq!(carried(&fake.enqueue.metadata()), [parent(&mixed), parent(&same)]);
}

#[tokio::test(start_paused = true)]
async fn without_spans_of_items_their_call_creates_them() {
    let (recorder, network) = (Recorder::start(), Network::default());
    let fake = network.fake("a:1");
    let traces = TraceConfig { create_spans: false, ..TraceConfig::default() };
    let client = network.configured(config(&["a:1"]).traces(traces));
    client.enqueue(vec![item("a"), with_own()]).await.unwrap();
    let span = recorder.only("enqueue");
    assert_eq!((recorder.spans().len(), &span.span_kind), (1, &SpanKind::Producer));
    assert_eq!(links(&span), [OWN]);
    assert_eq!(named(&fake.enqueue.calls()[0]), [&parent(&span), OWN]);
}

#[tokio::test(start_paused = true)]
async fn a_span_has_a_bounded_number_of_links() {
    let (recorder, (fake, client)) = (Recorder::start(), Fake::start().await);
    client.enqueue((0..300).map(|_| item("a")).collect()).await.unwrap();
    let span = recorder.only("enqueue");
    assert_eq!((recorder.of("create").len(), span.links.len(), span.links.dropped_count), (300, 128, 0));
    assert!(named(&fake.enqueue.calls()[0]).iter().all(|parent| !parent.is_empty()));
}

#[tokio::test(start_paused = true)]
async fn attempts_of_a_call_are_one_span_and_put_the_same_on_items() {
    let (recorder, (fake, client)) = (Recorder::start(), Fake::start().await);
    fake.enqueue.fail(Code::Unavailable, None, 2);
    client.enqueue(vec![item("a"), item("a")]).await.unwrap();
    let span = recorder.only("enqueue");
    assert_eq!((span.status.clone(), recorder.of("create").len()), (Status::Unset, 2));
    let calls = fake.enqueue.calls();
    assert!(calls.len() == 3 && calls.iter().all(|call| *call == calls[0]));
    assert_eq!(carried(&fake.enqueue.metadata()), vec![parent(&span); 3]);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_sampled_is_named_all_the_same() {
    let (recorder, (fake, client)) = (Recorder::sampling(Sampler::AlwaysOff), Fake::start().await);
    client.enqueue(vec![item("a")]).await.unwrap();
    assert!(recorder.spans().is_empty());
    let named = named(&fake.enqueue.calls()[0]);
    assert!(named[0].ends_with("-00"), "{named:?}");
    assert_eq!(carried(&fake.enqueue.metadata()), named);
}

#[tokio::test(start_paused = true)]
async fn without_a_provider_items_are_as_they_were_given_and_calls_carry_what_their_caller_has() {
    // The provider of the other tests is there, and does nothing for this one.
    drop(Recorder::start());
    let (fake, client) = Fake::start().await;
    client.enqueue(vec![item("a")]).await.unwrap();
    client.enqueue(vec![item("a"), item("a")]).await.unwrap();
    assert_eq!(carried(&fake.enqueue.metadata()), ["", ""]);
    let remote = trace_context::read(OWN, None).unwrap();
    let caller = Context::new().with_remote_span_context(remote);
    client.enqueue(vec![item("a"), item("a")]).with_context(caller).await.unwrap();
    assert_eq!(carried(&fake.enqueue.metadata())[2], OWN);
    let calls = fake.enqueue.calls();
    assert!(calls.iter().flat_map(|call| &call.items).all(|item| item.headers.is_empty()));
}
