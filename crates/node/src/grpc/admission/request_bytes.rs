//! Counts a request's bytes while they are in memory. They are counted before they are buffered.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tonic::{Status, body::Body};

use super::load::{AdmissionLoad, overloaded};
use crate::grpc::status;

/// A request body that counts its bytes. It lives while the request is received and decoded.
pub struct MeteredBody {
    /// The received body.
    inner: Body,
    /// Counts the bytes of all requests.
    load: Arc<AdmissionLoad>,
    /// Bytes of this request, released on drop.
    counted: usize,
}

impl MeteredBody {
    /// Counts the bytes of `inner`.
    pub fn new(inner: Body, load: Arc<AdmissionLoad>) -> Self {
        Self { inner, load, counted: 0 }
    }
}

impl http_body::Body for MeteredBody {
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
        if !self.load.request_bytes.try_acquire_many(bytes) {
            let message = "too many bytes of requests are in memory on this node; retry later";
            let refusal = overloaded("memory.request_bytes", message);
            return Poll::Ready(Some(Err(status::of_call(&refusal))));
        }
        self.counted += bytes;
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for MeteredBody {
    fn drop(&mut self) {
        self.load.request_bytes.release_many(self.counted);
    }
}
