//! How spans are named to others.

use std::collections::HashMap;

use forebay_proto::trace_context::{self, PARENT, STATE};
use opentelemetry::{
    Context,
    trace::{SpanContext, TraceContextExt as _},
};
use tonic::metadata::MetadataMap;

/// Has a call carry the current span: that of its operation, or whatever its caller has begun.
pub(crate) fn carry(metadata: &mut MetadataMap) {
    Context::map_current(|current| {
        let span = current.span();
        let context = span.span_context();
        if context.is_valid() {
            trace_context::carry(context, metadata);
        }
    });
}

/// The span in which an item was created, as its headers name it. `None`: they name none, or not validly.
pub(super) fn of_item(headers: &HashMap<String, String>) -> Option<SpanContext> {
    trace_context::read(headers.get(PARENT)?, headers.get(STATE).map(String::as_str))
}
