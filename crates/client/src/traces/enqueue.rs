//! Spans of items that are created, and of the calls that store them.

use forebay_proto::v1;
use opentelemetry::{
    Context,
    global::BoxedTracer,
    trace::{SpanContext, SpanKind},
};

use super::{
    context,
    headers::{Room, names_creation, put},
    span::{CallSpan, LINKS_MAX, OpenSpan, Operation, common, count, name_server, tracer},
};
use crate::{address::Address, trace_config::TraceConfig};

/// An item is created.
const CREATE: Operation = Operation { name: "create", kind: "create", side: SpanKind::Producer };

/// Begins the span of an enqueue, and puts on each item the context in which it is created, unless the item
/// names one: that of the call for a single item, or where items have no spans of their own; else that of the
/// item. The call links to those that are not its own. `server`: the only one that it can go to.
pub(crate) fn enqueue(
    items: &mut [v1::EnqueueItem],
    config: TraceConfig,
    server: impl FnOnce() -> Option<Address>,
) -> CallSpan {
    let (is_batch, tracer, parent) = (items.len() != 1, tracer(), Context::current());
    let creates = is_batch && config.create_spans;
    // Consumers link to the span that is on the items: it is the producer's.
    let is_creation = !creates && !items.iter().all(names_creation);
    let side = if is_creation { SpanKind::Producer } else { SpanKind::Client };
    let operation = Operation { name: "enqueue", kind: "send", side };
    let topic = common(items.iter().map(|item| item.topic.as_str()));
    let Some(call) = OpenSpan::begin(&tracer, &operation, topic, None, &parent) else {
        return CallSpan::of(None);
    };
    let mut links = Vec::new();
    let mut room = Room::of_call(items);
    for item in items.iter_mut() {
        let created = if names_creation(item) {
            context::of_item(&item.headers)
        } else if creates {
            create_below(&tracer, &parent, item, &mut room).map(|created| {
                let context = created.span_context();
                created.end(None);
                context
            })
        } else {
            put(item, &call.span_context(), &mut room);
            None
        };
        links.extend(created.filter(|_| links.len() < LINKS_MAX));
    }
    if let Some(span) = call.recorded() {
        if is_batch {
            count(&span, items.len());
        }
        name_server(&span, server().as_ref());
        links.into_iter().for_each(|link: SpanContext| span.add_link(link, Vec::new()));
    }
    CallSpan::of(Some(call))
}

/// Begins the span of an item that is handed to a producer, and puts its context on the item: the call that
/// stores it is made elsewhere, together with items of others. Nothing happens where items have no spans of
/// their own, or the item names one.
pub(crate) fn create(item: &mut v1::EnqueueItem, config: TraceConfig) -> CallSpan {
    if !config.create_spans || names_creation(item) {
        return CallSpan::of(None);
    }
    CallSpan::of(create_below(&tracer(), &Context::current(), item, &mut Room::of_item()))
}

fn create_below(
    tracer: &BoxedTracer,
    parent: &Context,
    item: &mut v1::EnqueueItem,
    room: &mut Room,
) -> Option<OpenSpan> {
    let span = OpenSpan::begin(tracer, &CREATE, Some(&item.topic), None, parent)?;
    put(item, &span.span_context(), room);
    Some(span)
}
