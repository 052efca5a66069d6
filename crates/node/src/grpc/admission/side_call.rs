//! A health check or a reflection call. It may stream for as long as its client likes.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use tonic::{Status, body::Body};

use super::load::ConnectionLoad;

/// Counts the call on its connection until it is dropped.
pub struct SideCall(Arc<ConnectionLoad>);

impl SideCall {
    /// One more; `None` if the connection has as many as it may.
    pub fn begin(connection: Arc<ConnectionLoad>) -> Option<Self> {
        connection.side_calls.try_acquire().then_some(Self(connection))
    }

    /// The call lasts until its answer has ended.
    pub fn until_the_end_of(self, body: Body) -> Body {
        if body.is_end_stream() { body } else { Body::new(SideBody { body, _call: self }) }
    }
}

impl Drop for SideCall {
    fn drop(&mut self) {
        self.0.side_calls.release();
    }
}

/// An answer with its call.
struct SideBody {
    /// The answer.
    body: Body,
    /// Ends with the answer.
    _call: SideCall,
}

impl http_body::Body for SideBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
