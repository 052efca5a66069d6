//! Begins spans.

use forebay_access::CALLS;
use http::HeaderMap;
use opentelemetry::{
    Context, KeyValue,
    trace::{
        Span as _, SpanBuilder, SpanContext, SpanKind, TraceContextExt as _, Tracer as _, TracerProvider as _,
    },
};
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_sdk::{
    Resource,
    trace::{Sampler, SdkTracer, SdkTracerProvider, SpanData},
};
use tokio::sync::mpsc;
use tonic::{Status, metadata::MetadataMap};

use super::{
    call_span::{CallSpan, Outcome, System},
    context,
    dial::{self, TracesError},
    export::ExportTask,
    queue::Queue,
    settings::TraceSettings,
};

/// How the paths of calls begin that have spans. Health checks and reflection have none.
const PATHS: &str = "/forebay.v1.";
/// The method of a call that there is not. What the caller calls it could be anything.
const OTHER: &str = "_OTHER";

/// Marks a call that has its span already, or was chosen to have none.
#[derive(Debug, Clone, Copy)]
pub struct SpanMarker;

/// Begins the spans of calls.
#[derive(Debug, Clone)]
pub struct Traces(SdkTracer);

impl Traces {
    /// Begins to send spans to a collector, in the name of a node.
    pub fn start(settings: &TraceSettings, node: &str) -> Result<(Self, ExportTask), TracesError> {
        let channel = dial::channel(settings)?;
        let (traces, spans, sender) = Self::new(settings.ratio, node);
        Ok((traces, ExportTask::start(spans, channel, settings.headers.clone(), sender)))
    }

    /// The same, where spans that have ended come out of a queue, and what their sender says of itself.
    fn new(ratio: f64, node: &str) -> (Self, mpsc::Receiver<SpanData>, ResourceAttributesWithSchema) {
        let resource = Resource::builder()
            .with_service_name("forebay")
            .with_attributes([
                KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
                KeyValue::new("service.instance.id", node.to_owned()),
            ])
            .build();
        let (queue, spans) = Queue::new();
        let sender = ResourceAttributesWithSchema::from(&resource);
        let root = Sampler::TraceIdRatioBased(ratio);
        let provider = SdkTracerProvider::builder()
            .with_resource(resource)
            .with_sampler(Sampler::ParentBased(Box::new(root)))
            .with_span_processor(queue)
            .build();
        (Self(provider.tracer("forebay")), spans, sender)
    }

    /// The span of a call of a client. `None`: it is not recorded. `known`: its caller is, and so may choose
    /// whether it is recorded. Anybody could have spans made else.
    pub fn of_call(&self, system: System, path: &str, headers: &HeaderMap, known: bool) -> Option<CallSpan> {
        let method = method(path)?;
        let name = if method == OTHER { system.name() } else { method };
        let parent = known.then(|| context::of_headers(headers)).flatten();
        self.begin(system, name, method, parent)
    }

    fn begin(
        &self,
        system: System,
        name: &'static str,
        method: &'static str,
        parent: Option<SpanContext>,
    ) -> Option<CallSpan> {
        let context = Context::new();
        let context = match parent {
            Some(parent) => context.with_remote_span_context(parent),
            None => context,
        };
        let began = opentelemetry::time::now();
        let builder = SpanBuilder::from_name(name).with_kind(SpanKind::Server).with_start_time(began);
        let builder = builder.with_attributes([
            KeyValue::new("rpc.system.name", system.name()),
            KeyValue::new("rpc.method", method),
        ]);
        let span = self.0.build_with_context(builder, &context);
        span.is_recording().then(|| CallSpan::new(span, self.0.clone(), began, system))
    }
}

/// Serves a call that another node has passed on: in a span, if it is part of a trace that is recorded.
pub async fn forwarded<T>(
    traces: Option<&Traces>,
    method: &'static str,
    metadata: &MetadataMap,
    call: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    let span = traces.and_then(|traces| {
        let parent = context::of_headers(metadata.as_ref())?;
        traces.begin(System::Grpc, method, method, Some(parent))
    });
    match span {
        Some(span) => {
            let outcome =
                |answer: &Result<T, Status>| answer.as_ref().err().map_or(Outcome::OK, Outcome::of_status);
            span.around(call, outcome).await
        }
        None => call.await,
    }
}

/// The method with a path, one of those that there are. `None`: its calls have no spans.
fn method(path: &str) -> Option<&'static str> {
    if !path.starts_with(PATHS) {
        return None;
    }
    let listed = CALLS.iter().find(|(listed, _)| *listed == path);
    Some(listed.map_or(OTHER, |(path, _)| path.trim_start_matches('/')))
}

#[cfg(test)]
mod tests {
    use forebay_types::{Reason, Refusal};
    use opentelemetry::{Value, trace::Status as SpanStatus};

    use super::*;
    use crate::rpc::of_call;

    const ENQUEUE: &str = "forebay.v1.QueueService/Enqueue";
    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    /// A call with a `traceparent`, if it has one.
    fn begin(traces: &Traces, system: System, parent: &str) -> Option<CallSpan> {
        let mut headers = HeaderMap::new();
        if !parent.is_empty() {
            headers.insert("traceparent", parent.parse().unwrap());
        }
        traces.of_call(system, &format!("/{ENQUEUE}"), &headers, true)
    }

    fn attribute<'a>(span: &'a SpanData, name: &str) -> Option<&'a Value> {
        span.attributes.iter().find(|it| it.key.as_str() == name).map(|it| &it.value)
    }

    #[tokio::test]
    async fn a_call_is_recorded_if_its_caller_says_so_or_by_the_ratio() {
        let (never, mut spans, _) = Traces::new(0.0, "n");
        assert!(begin(&never, System::Grpc, "").is_none());
        assert!(begin(&never, System::Grpc, &PARENT.replace("-01", "-00")).is_none());
        assert!(begin(&never, System::Grpc, "00-malformed").is_none());
        begin(&never, System::Grpc, PARENT).unwrap().around(async {}, |()| Outcome::OK).await;
        let span = spans.try_recv().unwrap();
        assert_eq!((&*span.name, span.span_kind.clone()), (ENQUEUE, SpanKind::Server));
        assert_eq!(span.span_context.trace_id().to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(span.parent_span_id.to_string(), "00f067aa0ba902b7");
        assert_eq!(attribute(&span, "rpc.system.name"), Some(&"grpc".into()));
        assert_eq!(attribute(&span, "rpc.method"), Some(&ENQUEUE.into()));
        assert_eq!(attribute(&span, "rpc.response.status_code"), Some(&"OK".into()));
        assert!(attribute(&span, "error.type").is_none() && span.status == SpanStatus::Unset);
        let headers = HeaderMap::from_iter([(
            http::header::HeaderName::from_static("traceparent"),
            PARENT.parse().unwrap(),
        )]);
        let of_nobody = never.of_call(System::Grpc, &format!("/{ENQUEUE}"), &headers, false);
        assert!(of_nobody.is_none(), "a caller that is refused chooses nothing");
        let (always, _spans, _) = Traces::new(1.0, "n");
        assert!(begin(&always, System::Grpc, "").is_some() && begin(&always, System::Grpc, "00-x").is_some());
        assert!(begin(&always, System::Grpc, &PARENT.replace("-01", "-00")).is_none());
    }

    #[tokio::test]
    async fn a_span_says_how_its_call_ended() {
        let (traces, mut spans, _) = Traces::new(1.0, "n");
        let cancelled = begin(&traces, System::Grpc, "").unwrap();
        drop(cancelled.around(std::future::pending::<()>(), |()| Outcome::OK));
        let span = spans.try_recv().unwrap();
        assert_eq!(attribute(&span, "rpc.response.status_code"), Some(&"CANCELLED".into()));
        let mut of = async |system, reason| {
            let status = of_call(&Refusal::new(reason, "what the caller has sent"));
            let outcome = |_: &()| Outcome::of_status(&status);
            begin(&traces, system, "").unwrap().around(async {}, outcome).await;
            let span = spans.try_recv().unwrap();
            assert!(!format!("{span:?}").contains("what the caller has sent"), "{span:?}");
            let text = |name| attribute(&span, name).map(ToString::to_string).unwrap_or_default();
            (text("rpc.response.status_code"), text("error.type"), span.status.clone())
        };
        let expected = |code: &str, reason: &str, status| (code.to_owned(), reason.to_owned(), status);
        let refused = of(System::Grpc, Reason::TooLarge).await;
        assert_eq!(refused, expected("INVALID_ARGUMENT", "TOO_LARGE", SpanStatus::Unset));
        let failed = of(System::Connect, Reason::ShardUnavailable).await;
        assert_eq!(failed, expected("unavailable", "SHARD_UNAVAILABLE", SpanStatus::error("")));
    }

    #[tokio::test]
    async fn spans_beyond_the_queue_are_dropped_and_calls_do_not_wait() {
        let (traces, mut spans, _) = Traces::new(1.0, "n");
        for _ in 0..5_000 {
            begin(&traces, System::Grpc, "").unwrap().around(async {}, |()| Outcome::OK).await;
        }
        let mut waiting = 0;
        while spans.try_recv().is_ok() {
            waiting += 1;
        }
        assert_eq!(waiting, 4_096);
    }

    #[test]
    fn what_callers_make_up_names_no_span() {
        assert_eq!(method("/forebay.v1.QueueService/Enqueue"), Some("forebay.v1.QueueService/Enqueue"));
        assert_eq!(method("/forebay.v1.AdminService/GetItem"), Some("forebay.v1.AdminService/GetItem"));
        for path in ["/forebay.v1.QueueService/enqueue", "/forebay.v1.QueueService/Enqueue/", "/forebay.v1.X"]
        {
            assert_eq!(method(path), Some(OTHER), "{path}");
        }
        for path in ["/grpc.health.v1.Health/Check", "/", ""] {
            assert_eq!(method(path), None, "{path}");
        }
    }
}
