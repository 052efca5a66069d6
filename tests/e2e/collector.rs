//! A collector of spans, as nodes see it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use opentelemetry_proto::tonic::{
    collector::trace::v1::{
        ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
        trace_service_server::{TraceService, TraceServiceServer},
    },
    common::v1::{KeyValue, any_value::Value},
    trace::v1::{
        ResourceSpans, Span,
        span::{Link, SpanKind},
    },
};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle, time::timeout};
use tonic::{Request, Response, Status, transport::Server};

/// Spans arrive within this time, on a machine that does much else.
const SPANS_TIMEOUT: Duration = Duration::from_secs(20);

/// The trace of a caller.
pub const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
/// Its span.
pub const CALLER: &str = "00f067aa0ba902b7";

/// The `traceparent` of a caller whose span is recorded.
pub fn parent() -> String {
    format!("00-{TRACE}-{CALLER}-01")
}

/// A running collector.
pub struct Collector {
    /// Where it listens, as nodes are told.
    pub endpoint: String,
    /// Spans that it was sent.
    spans: Arc<watch::Sender<Vec<ResourceSpans>>>,
    /// Right to send spans that the last request showed.
    login: Arc<Mutex<Option<String>>>,
    /// Serves it.
    task: JoinHandle<()>,
}

/// Keeps what arrives.
struct Sink {
    /// The spans. `None`: it refuses all of them.
    spans: Option<Arc<watch::Sender<Vec<ResourceSpans>>>>,
    /// Right that a request shows.
    login: Arc<Mutex<Option<String>>>,
}

#[tonic::async_trait]
impl TraceService for Sink {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let login = request.metadata().get("authorization").map(|text| text.to_str().unwrap().to_owned());
        *self.login.lock().unwrap() = login;
        let sent = request.into_inner().resource_spans;
        let mut response = ExportTraceServiceResponse::default();
        match &self.spans {
            Some(kept) => kept.send_modify(|all| all.extend(sent)),
            None => {
                let rejected_spans = i64::try_from(seen(&sent).len()).unwrap();
                let error_message = "none of them".to_owned();
                response.partial_success = Some(ExportTracePartialSuccess { rejected_spans, error_message });
            }
        }
        Ok(Response::new(response))
    }
}

impl Collector {
    /// At a port that is free.
    pub async fn start() -> Self {
        Self::at("127.0.0.1:0").await
    }

    /// At this address.
    pub async fn at(address: &str) -> Self {
        let spans = Arc::new(watch::Sender::new(Vec::new()));
        Self::serve(address, Some(spans.clone()), spans).await
    }

    /// One that answers, and takes no span.
    pub async fn refusing() -> Self {
        Self::serve("127.0.0.1:0", None, Arc::default()).await
    }

    async fn serve(
        address: &str,
        kept: Option<Arc<watch::Sender<Vec<ResourceSpans>>>>,
        spans: Arc<watch::Sender<Vec<ResourceSpans>>>,
    ) -> Self {
        let login = Arc::default();
        let sink = Sink { spans: kept, login: Arc::clone(&login) };
        let listener = TcpListener::bind(address).await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let router = Server::builder().add_service(TraceServiceServer::new(sink));
        let serving = router.serve_with_incoming(tonic::transport::server::TcpIncoming::from(listener));
        let task = tokio::spawn(async { serving.await.unwrap() });
        Self { endpoint, spans, login, task }
    }

    /// The section of a configuration that names it.
    pub fn section(&self, ratio: f64) -> String {
        format!("\n[traces]\nendpoint = \"{}\"\nratio = {ratio}\n", self.endpoint)
    }

    /// The spans of calls, as soon as there are so many.
    pub async fn calls(&self, count: usize) -> Vec<ReceivedSpan> {
        let calls = |all: &[ResourceSpans]| {
            let is_call = |seen: &ReceivedSpan| seen.span.kind() == SpanKind::Server;
            seen(all).into_iter().filter(is_call).collect::<Vec<_>>()
        };
        let mut spans = self.spans.subscribe();
        let enough = spans.wait_for(|all| calls(all).len() >= count);
        let arrived = timeout(SPANS_TIMEOUT, enough).await.map(drop);
        let calls = calls(&self.spans.borrow());
        assert!(arrived.is_ok(), "of {count} spans there are {calls:#?}");
        calls
    }

    /// The spans below that of a call, which have arrived before it.
    pub fn below(&self, call: &ReceivedSpan) -> Vec<ReceivedSpan> {
        let [trace, own, _] = call.ids();
        let is_below = |seen: &ReceivedSpan| {
            let [of, _, above] = seen.ids();
            (of, above) == (trace.clone(), own.clone())
        };
        seen(&self.spans.borrow()).into_iter().filter(is_below).collect()
    }

    /// Returns the right to send spans that the last request showed.
    pub fn login(&self) -> Option<String> {
        self.login.lock().unwrap().clone()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Attributes by their names, in order.
pub type Attributes = Vec<(String, String)>;

/// A span, and who sent it.
#[derive(Debug, Clone)]
pub struct ReceivedSpan {
    /// The sender's attributes.
    pub sender: Attributes,
    /// Itself.
    pub span: Span,
}

impl ReceivedSpan {
    /// Its attributes, by their names.
    pub fn attributes(&self) -> Attributes {
        texts(&self.span.attributes)
    }

    /// The spans to which it is linked, each with its attributes.
    pub fn links(&self) -> Vec<([String; 2], Attributes)> {
        let link = |link: &Link| ([&link.trace_id, &link.span_id].map(|id| hex(id)), texts(&link.attributes));
        self.span.links.iter().map(link).collect()
    }

    /// Its trace, its own id, and that of the span above it.
    pub fn ids(&self) -> [String; 3] {
        [&self.span.trace_id, &self.span.span_id, &self.span.parent_span_id].map(|id| hex(id))
    }
}

fn seen(all: &[ResourceSpans]) -> Vec<ReceivedSpan> {
    let of = |sent: &ResourceSpans| {
        let sender = texts(&sent.resource.as_ref().unwrap().attributes);
        let spans = sent.scope_spans.iter().flat_map(|scope| scope.spans.clone());
        spans.map(|span| ReceivedSpan { sender: sender.clone(), span }).collect::<Vec<_>>()
    };
    all.iter().flat_map(of).collect()
}

fn texts(attributes: &[KeyValue]) -> Attributes {
    let text = |attribute: &KeyValue| match attribute.value.as_ref().and_then(|value| value.value.clone()) {
        Some(Value::StringValue(text)) => (attribute.key.clone(), text),
        Some(Value::IntValue(number)) => (attribute.key.clone(), number.to_string()),
        other => (attribute.key.clone(), format!("{other:?}")),
    };
    let mut texts: Vec<_> = attributes.iter().map(text).collect();
    texts.sort_unstable();
    texts
}

fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}
