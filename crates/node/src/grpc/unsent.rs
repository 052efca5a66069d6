//! An answer's body whose bytes are counted until the client has taken them: a client that asks and does not
//! read is refused further items before it fills the node's memory.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use forebay_types::{Reason, Refusal};
use http_body::{Frame, SizeHint};
use tonic::{Status, body::Body};

/// Bytes of answers that were given and have not been taken yet.
#[derive(Debug, Default)]
pub struct Unsent(AtomicUsize);

impl Unsent {
    /// How many there are.
    pub fn bytes(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

/// Refuses a call for items while too much lies unread on its connection, or on all of them together.
pub fn admit(node: &Unsent, node_most: usize, connection: &Unsent, most: usize) -> Result<(), Refusal> {
    let message = if connection.bytes() >= most {
        "answers on this connection wait to be read"
    } else if node.bytes() >= node_most {
        "too many answers of this node wait to be read"
    } else {
        return Ok(());
    };
    Err(Refusal::new(Reason::Overloaded, message))
}

/// How large a message is, told by the handler that made it.
#[derive(Debug, Clone, Copy)]
pub struct AnswerBytes(pub usize);

/// The body. Dropped when it was sent, or its client went away.
pub struct Counted {
    inner: Body,
    bytes: usize,
    counters: [Arc<Unsent>; 2],
}

impl Counted {
    /// Counts `bytes` as unsent.
    pub fn new(inner: Body, bytes: usize, counters: [Arc<Unsent>; 2]) -> Self {
        for counter in &counters {
            counter.0.fetch_add(bytes, Ordering::AcqRel);
        }
        Self { inner, bytes, counters }
    }
}

impl http_body::Body for Counted {
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

impl Drop for Counted {
    fn drop(&mut self) {
        for counter in &self.counters {
            counter.0.fetch_sub(self.bytes, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_read_counts_until_its_body_goes() {
        let (node, connection) = (Arc::new(Unsent::default()), Arc::new(Unsent::default()));
        assert!(admit(&node, 100, &connection, 10).is_ok());
        let body = Counted::new(Body::empty(), 10, [node.clone(), connection.clone()]);
        assert_eq!(admit(&node, 100, &connection, 10).unwrap_err().reason, Reason::Overloaded);
        assert!(admit(&node, 100, &Unsent::default(), 10).is_ok(), "another connection is not disturbed");
        assert!(admit(&node, 10, &Unsent::default(), 10).is_err());
        drop(body);
        assert!(admit(&node, 10, &connection, 10).is_ok());
    }
}
