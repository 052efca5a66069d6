//! The span of a dequeue.
//!
//! It is made when the answer is there, with the time at which the call began: a poll that finds nothing has
//! none. So the call itself cannot carry it. It carries what its caller has begun, if anything: what the
//! server records is then beside this span, and never below one that nobody will ever have seen.

use std::time::SystemTime;

use forebay_proto::v1::{self, topic_demand::Selector};
use opentelemetry::{Context, KeyValue, trace::SpanKind};

use super::{
    codes::error_type,
    context,
    span::{LINKS_MAX, OpenSpan, Operation, common, count, name_server, tracer},
};
use crate::{address::Address, error::Error};

/// Items are asked for.
const DEQUEUE: Operation = Operation { name: "dequeue", kind: "receive", side: SpanKind::Client };

/// A dequeue that may come to have a span.
pub(crate) struct DequeueSpan {
    /// When it began.
    since: SystemTime,
}

impl DequeueSpan {
    /// A dequeue begins.
    pub(crate) fn begin() -> Self {
        Self { since: opentelemetry::time::now() }
    }

    /// It has ended: makes its span, unless it was answered without items. `server`: the only one that it can
    /// have gone to.
    pub(crate) fn end(
        self,
        request: &v1::DequeueRequest,
        answer: &Result<Vec<v1::DequeuedItem>, Error>,
        server: impl FnOnce() -> Option<Address>,
    ) {
        let items = answer.as_deref().unwrap_or_default();
        let topic = match answer.as_deref() {
            Ok([]) => return,
            Ok(_) => common(items.iter().map(|item| item.topic.as_str())),
            Err(_) => common(request.demands.iter().filter_map(topic)),
        };
        let (since, parent) = (Some(self.since), Context::current());
        let Some(call) = OpenSpan::begin(&tracer(), &DEQUEUE, topic, since, &parent) else { return };
        if let Some(span) = call.recorded() {
            count(&span, items.len());
            name_server(&span, server().as_ref());
            for item in items.iter().take(LINKS_MAX) {
                if let Some(creation) = context::of_item(&item.headers) {
                    span.add_link(creation, vec![attempt(item.attempt)]);
                }
            }
        }
        call.end(answer.as_ref().err().map(error_type));
    }
}

/// Which delivery of an item this is.
pub(super) fn attempt(attempt: u32) -> KeyValue {
    KeyValue::new("forebay.attempt", i64::from(attempt))
}

fn topic(demand: &v1::TopicDemand) -> Option<&str> {
    match demand.selector.as_ref()? {
        Selector::Topic(topic) => Some(topic),
        _ => None,
    }
}
