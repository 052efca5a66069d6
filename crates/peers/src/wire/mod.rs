//! The messages of calls that are passed on, from and to the engine's values. Nothing is lost on the way: the
//! node that took the call answers its client as if it had served the call itself.

mod active_topics;
pub mod changes;
mod enqueue;
pub mod explain;
mod fetch;
pub mod refusal;
mod settle;

pub use active_topics::{active_topics, active_topics_call, active_topics_request, active_topics_response};
pub use enqueue::{enqueue_call, enqueue_request, enqueue_response, enqueued};
pub use fetch::{
    fetch_call, fetch_request, fetch_response, fetched, head_message, heads, subscriptions, watch_request,
};
pub use settle::{
    ack_request, acks, extend_request, extend_response, extended, extensions, nack_request, nacks,
    settle_response, settled,
};

/// A message that a node of this program does not send.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} is missing or not valid")]
pub struct MalformedMessage(pub &'static str);

fn micros(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
