//! Counts a response's bytes until the client has read them. A client that dequeues without reading is
//! refused further items before its responses fill the node's memory.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use forebay_types::{Reason, Refusal};
use http_body::{Frame, SizeHint};
use tonic::{Status, body::Body};

use super::load::UnreadBytes;

/// Refuses a dequeue while too many bytes are unread on its connection or on the node.
pub fn admit(node: &UnreadBytes, connection: &UnreadBytes) -> Result<(), Refusal> {
    let message = if connection.is_full() {
        "too many response bytes are unread on this connection; read them first"
    } else if node.is_full() {
        "too many response bytes are unread on this node; retry later"
    } else {
        return Ok(());
    };
    Err(Refusal::new(Reason::Overloaded, message))
}

/// The encoded size of a response, set by the handler that made it.
#[derive(Debug, Clone, Copy)]
pub struct ResponseBytes(pub usize);

/// A response body that is counted as unread until it is dropped: sent, or its client is gone.
pub struct ResponseGuard {
    /// The body to send.
    inner: Body,
    /// Bytes of this response, removed on drop.
    bytes: usize,
    /// The node's counter and the connection's.
    counters: [Arc<UnreadBytes>; 2],
}

impl ResponseGuard {
    /// Counts `bytes` as unread.
    pub fn new(inner: Body, bytes: usize, counters: [Arc<UnreadBytes>; 2]) -> Self {
        for counter in &counters {
            counter.add(bytes);
        }
        Self { inner, bytes, counters }
    }
}

impl http_body::Body for ResponseGuard {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Pin::new(&mut self.inner).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for ResponseGuard {
    fn drop(&mut self) {
        for counter in &self.counters {
            counter.remove(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_counts_until_its_body_is_dropped() {
        let (node, connection) = (Arc::new(UnreadBytes::new(11)), Arc::new(UnreadBytes::new(10)));
        assert!(admit(&node, &connection).is_ok());
        let body = ResponseGuard::new(Body::empty(), 10, [node.clone(), connection.clone()]);
        assert_eq!(admit(&node, &connection).unwrap_err().reason, Reason::Overloaded);
        let other = Arc::new(UnreadBytes::new(10));
        assert!(admit(&node, &other).is_ok(), "another connection is not affected");
        let second = ResponseGuard::new(Body::empty(), 1, [node.clone(), other.clone()]);
        assert!(admit(&node, &other).is_err(), "the node's maximum is reached");
        drop((body, second));
        assert!(admit(&node, &connection).is_ok());
    }
}
