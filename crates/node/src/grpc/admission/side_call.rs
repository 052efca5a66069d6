//! A health check, a reflection call or a stream to KEDA. It may stream for as long as its client likes, and
//! its rights last.

use std::{
    future::ready,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use tokio::sync::oneshot;
use tonic::{Status, body::Body};

use super::{load::ConnectionLoad, rights::Rights};
use crate::{access::Rechecks, grpc::status};

/// Counts the call on its connection until it is dropped.
pub struct SideCall(Arc<ConnectionLoad>);

impl SideCall {
    /// One more; `None` if the connection has as many as it may.
    pub fn begin(connection: Arc<ConnectionLoad>) -> Option<Self> {
        connection.side_calls.try_acquire().then_some(Self(connection))
    }

    /// The call lasts until its answer has ended. `rights`: what it needs, if they may end before.
    pub fn until_the_end_of(self, body: Body, rights: Option<Lasting>) -> Body {
        match body.is_end_stream() {
            true => body,
            false => Body::new(SideBody { body, rights, _call: self }),
        }
    }
}

impl Drop for SideCall {
    fn drop(&mut self) {
        self.0.side_calls.release();
    }
}

/// Rights that are looked at again while an answer lasts.
pub struct Lasting {
    /// The looks.
    looks: Rechecks<Status>,
    /// Ends the request when it is dropped.
    _request: oneshot::Sender<()>,
}

impl Lasting {
    /// Looks at rights from time to time. Returns the request, which ends with the answer: whoever goes on to
    /// send it holds nothing of the node.
    pub fn new(rights: Rights, every: Duration, request: Body) -> (Self, Body) {
        let (end, ended) = oneshot::channel();
        let look = move || ready(rights.check_again().err().map(|refusal| status::of_call(&refusal)));
        let lasting = Self { looks: Rechecks::new(every, look), _request: end };
        (lasting, Body::new(Request { body: request, ended: Some(ended) }))
    }
}

/// An answer with its call.
struct SideBody {
    /// The answer.
    body: Body,
    /// What it needs.
    rights: Option<Lasting>,
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
        if let Some(ended) = self.rights.as_mut().and_then(|rights| rights.looks.poll_ended(context)) {
            (self.body, self.rights) = (Body::empty(), None);
            let mut trailers = http::HeaderMap::new();
            return Poll::Ready(Some(ended.add_header(&mut trailers).map(|()| Frame::trailers(trailers))));
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A request that ends with its answer.
struct Request {
    /// The request.
    body: Body,
    /// Tells that the answer has ended. `None`: it has.
    ended: Option<oneshot::Receiver<()>>,
}

impl http_body::Body for Request {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        // What has told that is not asked again: it would panic.
        if self.ended.as_mut().is_some_and(|ended| Pin::new(ended).poll(context).is_ready()) {
            (self.body, self.ended) = (Body::empty(), None);
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    /// A server may ask for more of it than there is.
    #[tokio::test]
    async fn a_request_whose_answer_has_ended_stays_at_its_end() {
        let (end, ended) = oneshot::channel();
        let mut request = Request { body: Body::empty(), ended: Some(ended) };
        drop::<oneshot::Sender<()>>(end);
        for _ in 0..2 {
            assert!(request.frame().await.is_none());
        }
    }
}
