//! Spans of acks, nacks and extensions.

use opentelemetry::{
    Context,
    trace::{SpanKind, TraceContextExt as _},
};

use super::{
    process::HandlerContext,
    span::{CallSpan, LINKS_MAX, OpenSpan, Operation, count, name_server, tracer},
};
use crate::address::Address;

/// Begins the span of a call that settles so many deliveries, those of `handled` among them: below the
/// handler, if the call is for one alone; else it links to the handlers. `server`: the only one that it can
/// go to.
pub(crate) fn settle(
    name: &'static str,
    members: usize,
    handled: &[HandlerContext],
    server: impl FnOnce() -> Option<Address>,
) -> CallSpan {
    let operation = Operation { name, kind: "settle", side: SpanKind::Client };
    let (parent, links) = match handled {
        [HandlerContext(Some(only))] => (Context::new().with_remote_span_context(only.clone()), &[][..]),
        several => (Context::current(), several),
    };
    let call = OpenSpan::begin(&tracer(), &operation, None, None, &parent);
    if let Some(span) = call.as_ref().and_then(OpenSpan::recorded) {
        count(&span, members);
        name_server(&span, server().as_ref());
        let named = links.iter().filter_map(|HandlerContext(handler)| handler.clone());
        named.take(LINKS_MAX).for_each(|handler| span.add_link(handler, Vec::new()));
    }
    CallSpan::of(call)
}
