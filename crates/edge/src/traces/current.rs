//! The span of the call that a task serves, for what serves it: other nodes are told of it, and it is told of
//! the items of the call, and of the commits for which it waits. In a task without one nothing of this does
//! anything.

use std::sync::{Arc, Mutex, PoisonError};

use forebay_engine::{CommitWatch, SeenCommit};
use forebay_proto::trace_context::{self, PARENT, read_parent};
use forebay_types::{ItemId, ShardId};
use http::HeaderMap;
use opentelemetry::{KeyValue, trace::SpanContext};
use tonic::metadata::MetadataMap;

use super::context::of_headers;

/// The most links of a span: each takes some 150 bytes until the collector has it.
const LINKS_MAX: usize = 32;

tokio::task_local! {
    /// Not set: the call has no span that is recorded.
    static CURRENT: Arc<Current>;
}

/// Span of a call, as far as it is known while the call is served.
pub(crate) struct Current {
    /// Names it.
    context: SpanContext,
    /// Goes into it at its end.
    notes: Mutex<Notes>,
}

/// Notes for a span.
#[derive(Debug, Default)]
pub struct Notes {
    /// Its attributes.
    pub attributes: Vec<KeyValue>,
    /// The spans in which the items were created that it delivers, each with what is said of the delivery.
    pub origins: Vec<(SpanContext, Vec<KeyValue>)>,
    /// The commits for which its call has waited.
    pub commits: Vec<SeenCommit>,
}

/// Serves a call that has a span. Returns its answer, and what was noted for the span.
pub async fn serve<T>(context: SpanContext, call: impl Future<Output = T>) -> (T, Notes) {
    let current = Arc::new(Current { context, notes: Mutex::default() });
    let watch = CommitWatch::default();
    let answer = watch.around(CURRENT.scope(current.clone(), call)).await;
    let mut notes = std::mem::take(&mut *current.notes.lock().unwrap_or_else(PoisonError::into_inner));
    notes.commits = watch.commits();
    (answer, notes)
}

/// Has a call to another node carry the trace of the call that this task serves.
pub fn carry(metadata: &mut MetadataMap) {
    let _ = CURRENT.try_with(|current| trace_context::carry(&current.context, metadata));
}

/// The trace of which the call is that this task serves: the one of its span, which may have begun it. Of a
/// call without one, the trace that its headers name.
pub fn trace_id_of(headers: &HeaderMap) -> Option<String> {
    let own = CURRENT.try_with(|current| current.context.trace_id()).ok();
    let trace = own.or_else(|| of_headers(headers).map(|caller| caller.trace_id()));
    trace.map(|trace| trace.to_string())
}

/// Notes how many items the call has stored or delivered, and in which shard they are, if it is one.
pub fn note_items(mut shards: impl Iterator<Item = ShardId>) {
    let _ = CURRENT.try_with(|current| {
        let Some(first) = shards.next() else { return };
        let (count, alone) = shards.fold((1, true), |(count, alone), it| (count + 1, alone && it == first));
        let mut notes = current.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.attributes.push(KeyValue::new("messaging.system", "forebay"));
        notes.attributes.push(KeyValue::new("messaging.batch.message_count", count));
        if alone {
            notes.attributes.push(KeyValue::new("messaging.destination.partition.id", first.to_string()));
        }
    });
}

/// Links the call to the spans in which items were created that it delivers: the first [`LINKS_MAX`] of those
/// whose headers name one. Each item comes with its headers and the number of its delivery.
pub fn note_origins<'a>(items: impl Iterator<Item = (ItemId, &'a [(String, String)], u32)>) {
    let _ = CURRENT.try_with(|current| {
        let origin = |(id, headers, attempt): (ItemId, &[(String, String)], u32)| {
            let parent = headers.iter().find(|(name, _)| name == PARENT)?;
            let attributes = vec![
                KeyValue::new("messaging.message.id", id.to_string()),
                KeyValue::new("forebay.attempt", i64::from(attempt)),
            ];
            Some((read_parent(&parent.1)?, attributes))
        };
        let mut notes = current.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.origins.extend(items.filter_map(origin).take(LINKS_MAX));
    });
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::{SpanId, TraceFlags, TraceId};

    use super::*;

    fn context() -> SpanContext {
        let state = "a=1".parse().unwrap();
        SpanContext::new(TraceId::from(1), SpanId::from(2), TraceFlags::SAMPLED, true, state)
    }

    #[tokio::test]
    async fn a_call_to_another_node_carries_the_trace_of_its_own() {
        let mut metadata = MetadataMap::new();
        carry(&mut metadata);
        assert!(metadata.is_empty());
        serve(context(), async { carry(&mut metadata) }).await;
        assert_eq!(of_headers(&metadata.into_headers()), Some(context()));
    }

    #[tokio::test]
    async fn the_trace_of_a_call_is_that_of_its_span_or_else_of_its_headers() {
        const NAMED: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
        let mut headers = HeaderMap::new();
        assert_eq!(trace_id_of(&headers), None);
        let own = context().trace_id().to_string();
        assert_eq!(serve(context(), async { trace_id_of(&headers) }).await.0, Some(own));
        // It is not recorded, and named all the same.
        headers.insert(PARENT, format!("00-{NAMED}-00f067aa0ba902b7-00").parse().unwrap());
        assert_eq!(trace_id_of(&headers).as_deref(), Some(NAMED));
    }

    #[tokio::test]
    async fn a_span_is_told_of_the_items_of_its_call() {
        let noted = async |shards: &[u32]| {
            let items = async { note_items(shards.iter().copied().map(ShardId)) };
            let notes = serve(context(), items).await.1;
            notes.attributes.iter().map(|note| format!("{}={}", note.key, note.value)).collect::<Vec<_>>()
        };
        let count = |count: u32| format!("messaging.batch.message_count={count}");
        let shard = "messaging.destination.partition.id=7";
        assert_eq!(noted(&[]).await, Vec::<String>::new());
        assert_eq!(noted(&[7, 7]).await, ["messaging.system=forebay", &count(2), shard]);
        assert_eq!(noted(&[7, 8, 7]).await, ["messaging.system=forebay", &count(3)]);
        // Nobody has a span, and nothing is counted.
        note_items(std::iter::from_fn(|| panic!("it is looked at")));
        note_origins(std::iter::from_fn(|| panic!("it is looked at")));
    }

    #[tokio::test]
    async fn a_delivery_is_linked_to_where_its_item_was_created() {
        let id: ItemId = "7-3".parse().unwrap();
        let header = |name: &str, value: String| (name.to_owned(), value);
        let named = [header("a", "b".to_owned()), header(PARENT, trace_context::write_parent(&context()))];
        let malformed = [header(PARENT, "00-1".to_owned())];
        let items: [&[_]; 3] = [&malformed, &named, &[]];
        let delivered = async { note_origins(items.iter().map(|headers| (id, *headers, 2))) };
        let origins = serve(context(), delivered).await.1.origins;
        let [(origin, attributes)] = &origins[..] else { panic!("{origins:?}") };
        assert_eq!((origin.trace_id(), origin.span_id()), (context().trace_id(), context().span_id()));
        let said: Vec<_> = attributes.iter().map(|note| format!("{}={}", note.key, note.value)).collect();
        assert_eq!(said, ["messaging.message.id=7-3", "forebay.attempt=2"]);
        let many = async { note_origins((0..100).map(|_| (id, &named[..], 1))) };
        assert_eq!(serve(context(), many).await.1.origins.len(), LINKS_MAX);
    }
}
