//! A health check or a reflection call. It may stream for as long as its client likes, and its rights last.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use tokio::{
    sync::oneshot,
    time::{Instant, Sleep, sleep},
};
use tonic::{Status, body::Body};

use super::{load::ConnectionLoad, rights::Rights};
use crate::grpc::status;

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
    /// The rights.
    rights: Rights,
    /// How often they are looked at.
    every: Duration,
    /// The next look.
    look: Pin<Box<Sleep>>,
    /// Ends the request when it is dropped.
    _request: oneshot::Sender<()>,
}

impl Lasting {
    /// Looks at rights from time to time. Returns the request, which ends with the answer: whoever goes on to
    /// send it holds nothing of the node.
    pub fn new(rights: Rights, every: Duration, request: Body) -> (Self, Body) {
        let (end, ended) = oneshot::channel();
        let lasting = Self { rights, every, look: Box::pin(sleep(every)), _request: end };
        (lasting, Body::new(Request { body: request, ended }))
    }

    /// Why the call ends now, if it does.
    fn poll(&mut self, context: &mut Context<'_>) -> Option<Status> {
        while self.look.as_mut().poll(context).is_ready() {
            if let Err(refusal) = self.rights.check_again() {
                return Some(status::of_call(&refusal));
            }
            self.look.as_mut().reset(Instant::now() + self.every);
        }
        None
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
        if let Some(ended) = self.rights.as_mut().and_then(|rights| rights.poll(context)) {
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
    /// The answer has ended.
    ended: oneshot::Receiver<()>,
}

impl http_body::Body for Request {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if Pin::new(&mut self.ended).poll(context).is_ready() {
            self.body = Body::empty();
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
