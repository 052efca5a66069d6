//! The span of a call that this node serves.

use std::time::SystemTime;

use forebay_proto::codes::spelled;
use http::Response;
use opentelemetry::{
    KeyValue,
    trace::{Span as _, Status as SpanStatus},
};
use opentelemetry_sdk::trace::{SdkTracer, Span};
use tonic::{Code, Status, body::Body};
use tonic_types::StatusExt as _;

use super::{current, stages};

/// The protocol of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// gRPC.
    Grpc,
    /// Connect: messages as JSON or protobuf over HTTP.
    Connect,
}

impl System {
    /// Its name by the conventions.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Grpc => "grpc",
            Self::Connect => "connectrpc",
        }
    }

    fn spelled(self, code: Code) -> Option<String> {
        match (self, code) {
            // It has no code for what went well.
            (Self::Connect, Code::Ok) => None,
            (Self::Connect, Code::Cancelled) => Some("canceled".to_owned()),
            (Self::Connect, _) => Some(spelled(code).to_ascii_lowercase()),
            (Self::Grpc, _) => Some(spelled(code).to_owned()),
        }
    }
}

/// Outcome of a call.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The code of its answer.
    code: Code,
    /// Why it was refused.
    reason: Option<String>,
}

impl Outcome {
    /// It was served. Some of its members may be refused.
    pub const OK: Self = Self { code: Code::Ok, reason: None };
    /// Nobody waits for the answer any more.
    const CANCELLED: Self = Self { code: Code::Cancelled, reason: None };

    /// A status says it.
    pub fn of_status(status: &Status) -> Self {
        let reason = status.get_details_error_info().map(|info| info.reason);
        Self { code: status.code(), reason }
    }

    /// A response of gRPC says it. One that was refused has its status among its headers.
    pub(crate) fn of_response<E>(response: &Result<Response<Body>, E>) -> Self {
        match response {
            Ok(response) => Status::from_header_map(response.headers())
                .map_or(Self::OK, |status| Self::of_status(&status)),
            Err(_) => Self { code: Code::Unknown, reason: None },
        }
    }
}

/// The span of a call. One that is dropped was given up by its caller.
pub struct CallSpan {
    /// Is recorded.
    span: Span,
    /// Begins those below it.
    tracer: SdkTracer,
    /// When it began.
    began: SystemTime,
    /// The call's protocol.
    system: System,
    /// Its outcome is known.
    ended: bool,
}

impl CallSpan {
    /// A span that has begun.
    pub(super) fn new(span: Span, tracer: SdkTracer, began: SystemTime, system: System) -> Self {
        Self { span, tracer, began, system, ended: false }
    }

    /// Serves the call. What it passes on to other nodes is part of the same trace.
    pub async fn around<T>(
        mut self,
        call: impl Future<Output = T>,
        outcome: impl FnOnce(&T) -> Outcome,
    ) -> T {
        let (answer, notes) = current::serve(self.span.span_context().clone(), call).await;
        self.span.set_attributes(notes.attributes);
        for (origin, attributes) in notes.origins {
            self.span.add_link(origin, attributes);
        }
        stages::record(&self.tracer, self.span.span_context(), self.began, &notes.commits);
        self.end(outcome(&answer));
        answer
    }

    fn end(&mut self, Outcome { code, reason }: Outcome) {
        self.ended = true;
        if let Some(code) = self.system.spelled(code) {
            self.span.set_attribute(KeyValue::new("rpc.response.status_code", code));
        }
        if code != Code::Ok {
            let reason = reason.unwrap_or_else(|| spelled(code).to_owned());
            self.span.set_attribute(KeyValue::new("error.type", reason));
        }
        if is_failure(code) {
            // Without the message, which may hold what the caller has sent.
            self.span.set_status(SpanStatus::error(""));
        }
        self.span.end();
    }
}

impl Drop for CallSpan {
    fn drop(&mut self) {
        if !self.ended {
            self.end(Outcome::CANCELLED);
        }
    }
}

/// Whether the server has failed, rather than refused what its caller should not have asked. The conventions
/// draw the line so.
fn is_failure(code: Code) -> bool {
    matches!(
        code,
        Code::Unknown
            | Code::DeadlineExceeded
            | Code::Unimplemented
            | Code::Internal
            | Code::Unavailable
            | Code::DataLoss
    )
}
