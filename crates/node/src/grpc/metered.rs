//! A request's body whose bytes are counted while they are in memory: taken before they are buffered.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use forebay_types::{Reason, Refusal};
use http_body::{Frame, SizeHint};
use tonic::{Status, body::Body};

use super::{gate::Load, status};

/// The body. It lives as long as the request is being read and decoded.
pub struct Metered {
    inner: Body,
    load: Arc<Load>,
    taken: usize,
}

impl Metered {
    /// Counts what `inner` brings.
    pub fn new(inner: Body, load: Arc<Load>) -> Self {
        Self { inner, load, taken: 0 }
    }
}

impl http_body::Body for Metered {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let Some(frame) = ready!(Pin::new(&mut self.inner).poll_frame(context)?) else {
            return Poll::Ready(None);
        };
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        if !self.load.request_bytes.take_many(bytes) {
            let refusal = Refusal::new(Reason::Overloaded, "the node has no memory for more requests");
            return Poll::Ready(Some(Err(status::of_call(&refusal))));
        }
        self.taken += bytes;
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for Metered {
    fn drop(&mut self) {
        self.load.request_bytes.give_many(self.taken);
    }
}
