//! Spans that have ended, until they are sent. A full queue drops those that come.

use std::time::Duration;

use opentelemetry::Context;
use opentelemetry_sdk::{
    error::OTelSdkResult,
    trace::{Span, SpanData, SpanProcessor},
};
use tokio::sync::mpsc::{self, error::TrySendError};

/// How many spans wait. One has at most about 1 KiB, of which the caller's `tracestate` is half.
const SPANS_MAX: usize = 4_096;

/// Takes the spans that end.
#[derive(Debug)]
pub struct Queue(mpsc::Sender<SpanData>);

impl Queue {
    /// A queue, and what its spans come out of.
    pub fn new() -> (Self, mpsc::Receiver<SpanData>) {
        let (sender, receiver) = mpsc::channel(SPANS_MAX);
        (Self(sender), receiver)
    }
}

impl SpanProcessor for Queue {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        match self.0.try_send(span) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => count_dropped("full", 1),
            Err(TrySendError::Closed(_)) => count_dropped("stopped", 1),
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// Counts spans that reach no collector.
pub(crate) fn count_dropped(cause: &'static str, spans: u64) {
    metrics::counter!("forebay_spans_dropped_total", "cause" => cause).increment(spans);
}
