//! A health check or a reflection call. It may stream for as long as its client likes, and its rights last.

use std::{
    future::ready,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use forebay_types::Refusal;
use http_body::{Body as _, Frame, SizeHint};
use tokio::sync::oneshot;
use tonic::{Status, body::Body};

use super::{
    answer_bytes::{AnswerCharge, STREAM_BYTES},
    load::{AdmissionLoad, ConnectionLoad},
    rights::Rights,
};
use crate::{
    access::Rechecks,
    rpc::{overloaded, status},
};

/// Health checks that one connection may have open before a credential was accepted on it.
const ANONYMOUS_PER_CONNECTION: usize = 4;

/// Counts the call on its connection until it is dropped, and its memory.
pub struct SideCall {
    /// Its connection.
    connection: Arc<ConnectionLoad>,
    /// Counts those of connections without a credential. `None`: it is none of these.
    anonymous: Option<Arc<AdmissionLoad>>,
    /// Counts its memory while it is open.
    _charge: AnswerCharge,
}

impl SideCall {
    /// One more, if the connection may have that, and the node has room.
    pub fn begin(node: &Arc<AdmissionLoad>, connection: Arc<ConnectionLoad>) -> Result<Self, Refusal> {
        let charge = AnswerCharge::new(node.clone(), connection.clone());
        charge.reserve(STREAM_BYTES)?;
        let full = |what: &str| {
            let message = format!("too many health checks and reflection calls are open {what}");
            overloaded("health checks and reflection", &message)
        };
        if !connection.side_calls.try_acquire() {
            return Err(full("on this connection"));
        }
        let mut begun = Self { connection, anonymous: None, _charge: charge };
        if begun.connection.place().is_accepted() {
            return Ok(begun);
        }
        if begun.connection.side_calls.in_use() > ANONYMOUS_PER_CONNECTION {
            return Err(full("on this connection, where no credential was accepted yet"));
        }
        if !node.anonymous_calls.try_acquire() {
            return Err(full("on connections without a credential"));
        }
        begun.anonymous = Some(node.clone());
        Ok(begun)
    }

    /// The call lasts until its answer has ended. `rights`: what it needs, if they may end before.
    pub fn until_the_end_of(self, body: Body, rights: Option<RightsWatch>) -> Body {
        match body.is_end_stream() {
            true => body,
            false => Body::new(SideBody { body, rights, _call: self }),
        }
    }
}

impl Drop for SideCall {
    fn drop(&mut self) {
        self.connection.side_calls.release();
        self.anonymous.iter().for_each(|node| node.anonymous_calls.release());
    }
}

/// Rights that are looked at again while an answer lasts.
pub struct RightsWatch {
    /// The looks.
    looks: Rechecks<Status>,
    /// Ends the request when it is dropped.
    _request: oneshot::Sender<()>,
}

impl RightsWatch {
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
    /// Rights that it needs.
    rights: Option<RightsWatch>,
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
        // A receiver that has told is not asked again: it would panic.
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
    use crate::admission::load::LoadLimits;

    #[test]
    fn health_checks_without_a_credential_are_few_and_count_as_memory() {
        let node = Arc::new(AdmissionLoad::new(&LoadLimits::default()));
        let open = || Arc::new(ConnectionLoad::open(&node).unwrap());
        let (mut calls, one) = (Vec::new(), open());
        let begin = |connection: &Arc<ConnectionLoad>| SideCall::begin(&node, connection.clone());
        for _ in 0..ANONYMOUS_PER_CONNECTION {
            calls.push(begin(&one).unwrap());
        }
        let refused = begin(&one).err().unwrap();
        assert!(refused.message.contains("where no credential was accepted yet"), "{refused}");
        assert_eq!(node.unread.in_use(), ANONYMOUS_PER_CONNECTION * STREAM_BYTES);
        one.accept();
        calls.extend((0..28).map(|_| begin(&one).unwrap()));
        assert!(begin(&one).is_err(), "with one they are 32");

        let many: Vec<_> = (0..100).map(|_| open()).collect();
        calls.extend(many.iter().flat_map(|connection| (0..4).filter_map(|_| begin(connection).ok())));
        assert_eq!(node.anonymous_calls.in_use(), 256);
        let refused = begin(&open()).err().unwrap();
        assert!(refused.message.contains("on connections without a credential"), "{refused}");
        drop(calls);
        assert_eq!((node.anonymous_calls.in_use(), node.unread.in_use(), one.side_calls.in_use()), (0, 0, 0));
    }

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
