//! The messages of calls that are passed on, from and to the engine's values. Nothing is lost on the way: the
//! node that took the call answers its client as if it had served the call itself.

pub mod changes;
mod enqueue;
pub mod explain;
pub mod refusal;
mod settle;

pub use enqueue::{enqueue_call, enqueue_request, enqueue_response, enqueued};
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
