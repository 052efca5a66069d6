//! The span of a handler.

use opentelemetry::{
    Context, KeyValue,
    trace::{SpanContext, SpanKind, TraceContextExt as _},
};

use super::{
    context,
    dequeue::attempt,
    span::{OpenSpan, Operation, tracer, within},
};
use crate::{dequeued::ReceivedItem, trace_config::TraceConfig};

/// An item is handled.
const PROCESS: Operation = Operation { name: "process", kind: "process", side: SpanKind::Consumer };

/// Begins the span of a handler. It begins a trace and links to the one in which the item was created, or is
/// part of that, if it is wanted so.
pub(crate) fn process(item: &ReceivedItem, config: TraceConfig) -> HandlerSpan {
    let above = if config.process_is_child { context::of_item(&item.headers) } else { None };
    let parent = above.map_or_else(Context::new, |above| Context::new().with_remote_span_context(above));
    let span = OpenSpan::begin(&tracer(), &PROCESS, Some(&item.topic), None, &parent);
    if let Some(span) = span.as_ref().and_then(OpenSpan::recorded) {
        span.set_attribute(KeyValue::new("messaging.message.id", item.item_id.clone()));
        if let Some(creation) = context::of_item(&item.headers) {
            span.add_link(creation, vec![attempt(item.attempt)]);
        }
    }
    HandlerSpan(span)
}

/// The span of a handler, if there is one.
pub(crate) struct HandlerSpan(Option<OpenSpan>);

impl HandlerSpan {
    /// The handler, so that what it does is below the span.
    pub(crate) fn around<F: Future>(&self, handler: F) -> impl Future<Output = F::Output> + use<F> {
        within(self.0.as_ref().map(|span| span.context().clone()), handler)
    }

    /// The handler has ended. `failed`: it has failed, and this is the word for how.
    pub(crate) fn end(self, failed: Option<&'static str>) -> HandlerContext {
        let context = self.0.as_ref().map(OpenSpan::span_context);
        if let Some(span) = self.0 {
            span.end(failed);
        }
        HandlerContext(context)
    }
}

/// Names the span of a handler that has ended, for the call that settles its delivery.
#[derive(Debug, Clone)]
pub(crate) struct HandlerContext(pub(super) Option<SpanContext>);

impl HandlerContext {
    /// No handler has run.
    pub(crate) fn none() -> Self {
        Self(None)
    }
}
