//! A span: how it begins, what goes into it, and how it ends.

use std::time::SystemTime;

use opentelemetry::{
    Context, KeyValue,
    context::FutureExt as _,
    global::{self, BoxedTracer},
    trace::{
        Span as _, SpanBuilder, SpanContext, SpanKind, SpanRef, Status, TraceContextExt as _, Tracer as _,
    },
};

use super::codes::{CANCELLED, error_type};
use crate::{address::Address, error::Error};

/// Links of a span. A call has up to 1,000 members, of which one trace should not have to hold all.
pub(super) const LINKS_MAX: usize = 128;

/// Operation that a span is of, in the words of the conventions.
pub(super) struct Operation {
    /// Name that this client gives it. With the topic behind it, the name of the span.
    pub(super) name: &'static str,
    /// Name that the conventions give it.
    pub(super) kind: &'static str,
    /// On which side of which exchange it is.
    pub(super) side: SpanKind,
}

/// Makes spans. It is asked for each time, so that a program may set its provider when it likes.
pub(super) fn tracer() -> BoxedTracer {
    global::tracer("forebay-client")
}

/// A span that has begun. One that is dropped before its end was given up.
pub(super) struct OpenSpan {
    /// Context with the span: all that the operation does with it is below the span.
    context: Context,
    /// It has ended.
    ended: bool,
}

impl OpenSpan {
    /// Begins a span below that of `parent`. `None`: there are no spans, since the program has no provider or
    /// wants none here.
    pub(super) fn begin(
        tracer: &BoxedTracer,
        operation: &Operation,
        topic: Option<&str>,
        since: Option<SystemTime>,
        parent: &Context,
    ) -> Option<Self> {
        // Attributes that samplers may decide by.
        let attributes = [
            KeyValue::new("messaging.system", "forebay"),
            KeyValue::new("messaging.operation.name", operation.name),
            KeyValue::new("messaging.operation.type", operation.kind),
        ];
        let topic_attribute =
            topic.map(|topic| KeyValue::new("messaging.destination.name", topic.to_owned()));
        let builder = SpanBuilder {
            start_time: since,
            ..SpanBuilder::from_name(operation.name)
                .with_kind(operation.side.clone())
                .with_attributes(attributes.into_iter().chain(topic_attribute))
        };
        let mut span = tracer.build_with_context(builder, parent);
        let (id, above) = (span.span_context(), parent.span());
        if !id.is_valid() || id.span_id() == above.span_context().span_id() {
            return None;
        }
        if let Some(topic) = topic.filter(|_| span.is_recording()) {
            span.update_name(format!("{} {topic}", operation.name));
        }
        Some(Self { context: parent.with_span(span), ended: false })
    }

    /// Context of all that is to be below the span.
    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    /// Names the span.
    pub(super) fn span_context(&self) -> SpanContext {
        self.span().span_context().clone()
    }

    /// The span, if anything that goes into it is kept.
    pub(super) fn recorded(&self) -> Option<SpanRef<'_>> {
        Some(self.span()).filter(SpanRef::is_recording)
    }

    /// It has ended, and failed because of this.
    pub(super) fn end(mut self, failure: Option<&'static str>) {
        self.finish(failure);
    }

    fn span(&self) -> SpanRef<'_> {
        self.context.span()
    }

    fn finish(&mut self, failure: Option<&'static str>) {
        self.ended = true;
        let span = self.span();
        if let Some(failure) = failure {
            span.set_attribute(KeyValue::new("error.type", failure));
            // Without the message, which may hold what the caller has sent.
            span.set_status(Status::error(""));
        }
        span.end();
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        if !self.ended {
            self.finish(Some(CANCELLED));
        }
    }
}

/// Says how many members the call of a span has.
pub(super) fn count(span: &SpanRef<'_>, members: usize) {
    let members = i64::try_from(members).unwrap_or(i64::MAX);
    span.set_attribute(KeyValue::new("messaging.batch.message_count", members));
}

/// Says which server is called. Only for calls that can go to no other one.
pub(super) fn name_server(span: &SpanRef<'_>, server: Option<&Address>) {
    let Some((host, port)) = server.and_then(|server| server.host_port().rsplit_once(':')) else { return };
    // The brackets of an IPv6 address belong to URLs.
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    span.set_attribute(KeyValue::new("server.address", host));
    if let Ok(port) = port.parse::<u16>() {
        span.set_attribute(KeyValue::new("server.port", i64::from(port)));
    }
}

/// Makes a call below a span, if there is one.
pub(super) async fn within<F: Future>(context: Option<Context>, call: F) -> F::Output {
    match context {
        Some(context) => call.with_context(context).await,
        None => call.await,
    }
}

/// The topic, if all have the same.
pub(super) fn common<'a>(mut topics: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let first = topics.next()?;
    topics.all(|topic| topic == first).then_some(first)
}

/// The span of a call, if there is one.
pub(crate) struct CallSpan(Option<OpenSpan>);

impl CallSpan {
    /// Of a call that has begun.
    pub(super) fn of(span: Option<OpenSpan>) -> Self {
        Self(span)
    }

    /// Makes the call, as part of the span.
    pub(crate) async fn around<T>(self, call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let answer = within(self.context(), call).await;
        self.end(answer.as_ref().err());
        answer
    }

    /// Makes a call of which each member has an answer. It has failed if one of them has. `id`: the item that
    /// the answer is about, for a call of one member.
    pub(crate) async fn around_members<R>(
        self,
        call: impl Future<Output = Result<Vec<Result<R, Error>>, Error>>,
        id: impl FnOnce(&R) -> Option<&str>,
    ) -> Result<Vec<Result<R, Error>>, Error> {
        let answer = within(self.context(), call).await;
        let span = self.0.as_ref().and_then(OpenSpan::recorded);
        if let (Some(span), Ok([Ok(one)])) = (span, answer.as_deref())
            && let Some(id) = id(one)
        {
            span.set_attribute(KeyValue::new("messaging.message.id", id.to_owned()));
        }
        let failed = match &answer {
            Ok(members) => members.iter().find_map(|member| member.as_ref().err()),
            Err(error) => Some(error),
        };
        self.end(failed);
        answer
    }

    fn context(&self) -> Option<Context> {
        self.0.as_ref().map(|span| span.context().clone())
    }

    fn end(self, error: Option<&Error>) {
        if let Some(span) = self.0 {
            span.end(error.map(error_type));
        }
    }
}
