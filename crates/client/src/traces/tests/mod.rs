//! Tests of the spans, of their content, and of what calls and items carry, against a scripted server.

mod consumer;
mod dequeue;
mod enqueue;
mod failures;
mod producer;
mod recorder;
mod settle;

use forebay_proto::trace_context::{PARENT, write_parent};
use opentelemetry_sdk::trace::SpanData;

use recorder::Recorder;

/// An attribute as text; empty if the span has none of this name.
fn attribute(span: &SpanData, name: &str) -> String {
    let found = span.attributes.iter().find(|attribute| attribute.key.as_str() == name);
    found.map(|attribute| attribute.value.to_string()).unwrap_or_default()
}

/// Describes a span's operation: name, type, topic and number of members.
fn operation(span: &SpanData) -> [String; 4] {
    assert_eq!(attribute(span, "messaging.system"), "forebay");
    ["operation.name", "operation.type", "destination.name", "batch.message_count"]
        .map(|name| attribute(span, &format!("messaging.{name}")))
}

/// The `traceparent` of a span.
fn parent(span: &SpanData) -> String {
    write_parent(&span.span_context)
}

/// The `traceparent` of each link of a span.
fn links(span: &SpanData) -> Vec<String> {
    span.links.iter().map(|link| write_parent(&link.span_context)).collect()
}

/// Whether one span is below the other.
fn is_below(span: &SpanData, above: &SpanData) -> bool {
    let (own, other) = (&span.span_context, &above.span_context);
    own.trace_id() == other.trace_id() && span.parent_span_id == other.span_id()
}

/// Values that calls carried as `traceparent`.
fn carried(metadata: &[tonic::metadata::MetadataMap]) -> Vec<String> {
    let text = |call: &tonic::metadata::MetadataMap| {
        call.get(PARENT).map(|parent| parent.to_str().unwrap().to_owned()).unwrap_or_default()
    };
    metadata.iter().map(text).collect()
}
