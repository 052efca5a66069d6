//! Stages that a call waits for within the engine, as spans below its own: until it is part of a batch, and
//! then for the commit of that batch. Hundreds of calls may wait for one commit: it is a span of each that is
//! recorded, so that every trace is whole by itself. Shard, epoch and number say which are the same.

use std::time::SystemTime;

use forebay_engine::SeenCommit;
use opentelemetry::{
    Context, KeyValue,
    trace::{Span as _, SpanBuilder, SpanContext, SpanKind, TraceContextExt as _, Tracer as _},
};
use opentelemetry_sdk::trace::SdkTracer;

/// The wait until a batch with members of the call is handed over.
const WAIT: &str = "forebay.wait";
/// The commit of a batch.
const COMMIT: &str = "forebay.commit";

/// Ends the spans of a call that has begun then. One that waited for no commit has none.
pub fn record(tracer: &SdkTracer, call: &SpanContext, began: SystemTime, commits: &[SeenCommit]) {
    let times = |commit: &SeenCommit| {
        let ended = SystemTime::from(commit.ended_at);
        // The clock may have been set back meanwhile: no part of a call begins before it.
        let sent = ended.checked_sub(commit.took).unwrap_or(ended).max(began);
        (sent, ended.max(sent))
    };
    let Some(first) = commits.iter().map(|commit| times(commit).0).min() else { return };
    let context = Context::new().with_remote_span_context(call.clone());
    let span = |name: &'static str, attributes: Vec<KeyValue>, (from, until): (SystemTime, SystemTime)| {
        let builder = SpanBuilder::from_name(name).with_kind(SpanKind::Internal).with_start_time(from);
        let mut span = tracer.build_with_context(builder.with_attributes(attributes), &context);
        span.end_with_timestamp(until);
    };
    span(WAIT, Vec::new(), (began, first));
    for commit in commits {
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let attributes = vec![
            KeyValue::new("messaging.destination.partition.id", commit.shard.to_string()),
            KeyValue::new("forebay.epoch", number(commit.epoch)),
            KeyValue::new("forebay.batch", number(commit.batch)),
            KeyValue::new("forebay.batch.rows", number(commit.rows as u64)),
        ];
        span(COMMIT, attributes, times(commit));
    }
}
