//! A provider that records the spans of one test.

use std::{
    cell::RefCell,
    rc::Rc,
    sync::{Arc, Mutex, Once},
    time::Duration,
};

use opentelemetry::{
    Context, InstrumentationScope,
    global::{self, BoxedSpan, BoxedTracer},
    trace::{SpanBuilder, TraceContextExt as _, Tracer, TracerProvider, noop::NoopTracer},
};
use opentelemetry_sdk::{
    error::OTelSdkResult,
    trace::{Sampler, SdkTracerProvider, Span, SpanData, SpanProcessor},
};

thread_local! {
    /// Makes the spans of the test that this thread runs; `None`: as if there were no provider.
    static TRACER: RefCell<Option<Rc<BoxedTracer>>> = const { RefCell::new(None) };
}

/// The provider of the whole program, in which tests run side by side: each has its own thread.
#[derive(Debug)]
struct OfThread;

impl TracerProvider for OfThread {
    type Tracer = Self;

    fn tracer_with_scope(&self, scope: InstrumentationScope) -> Self {
        assert!(matches!(scope.name(), "forebay-client" | "test"), "{scope:?}");
        Self
    }
}

impl Tracer for OfThread {
    type Span = BoxedSpan;

    fn build_with_context(&self, builder: SpanBuilder, parent: &Context) -> BoxedSpan {
        let tracer = TRACER.with_borrow(Clone::clone);
        let none = || Rc::new(BoxedTracer::new(Box::new(NoopTracer::new())));
        tracer.unwrap_or_else(none).build_with_context(builder, parent)
    }
}

/// The spans of a test that have ended. Ends with the test.
#[derive(Debug, Clone, Default)]
pub(super) struct Recorder(Arc<Mutex<Vec<SpanData>>>);

impl Recorder {
    /// From now on all spans are recorded.
    pub(super) fn start() -> Guard {
        Self::sampling(Sampler::AlwaysOn)
    }

    /// The same for spans that a sampler chooses.
    pub(super) fn sampling(sampler: Sampler) -> Guard {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| global::set_tracer_provider(OfThread));
        let recorder = Self::default();
        let provider = SdkTracerProvider::builder()
            .with_sampler(sampler)
            // More than the client makes, so that its own bound is seen.
            .with_max_links_per_span(1_000)
            .with_span_processor(recorder.clone())
            .build();
        let tracer = BoxedTracer::new(Box::new(provider.tracer("forebay-client")));
        TRACER.set(Some(Rc::new(tracer)));
        Guard(recorder)
    }
}

/// Records until it is dropped.
pub(super) struct Guard(Recorder);

impl Guard {
    /// A span of the caller's own, as current while it calls.
    pub(super) fn caller(&self) -> Context {
        Context::new().with_span(global::tracer("test").start("caller"))
    }

    /// The spans so far, in the order of their ends.
    pub(super) fn spans(&self) -> Vec<SpanData> {
        self.0.0.lock().unwrap().clone()
    }

    /// Spans of one operation.
    pub(super) fn of(&self, operation: &str) -> Vec<SpanData> {
        let mut spans = self.spans();
        spans.retain(|span| span.name.split(' ').next() == Some(operation));
        spans
    }

    /// The only one of an operation.
    #[track_caller]
    pub(super) fn only(&self, operation: &str) -> SpanData {
        let mut spans = self.of(operation);
        assert_eq!(spans.len(), 1, "{spans:#?}");
        spans.remove(0)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        TRACER.set(None);
    }
}

impl SpanProcessor for Recorder {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        self.0.lock().unwrap().push(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}
