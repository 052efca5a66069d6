//! Counts an answer's bytes until the client has read them, whatever the verb. Callers that do not read are
//! refused before their answers fill the node's memory.
//!
//! An answer is encoded at once, so that it costs what it is counted as. What h2 keeps of it carries the
//! charge: the body while it waits for the client's window, its bytes while they wait for the socket, and of
//! a refusal, which has no body, a header.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use forebay_types::Refusal;
use http::{HeaderMap, HeaderValue, Response};
use http_body::{Body as _, Frame};
use http_body_util::BodyExt as _;
use tonic::{Status, body::Body};

use super::load::{AdmissionLoad, ConnectionLoad, Full};
use crate::rpc::overloaded;

/// Bytes of a stream while it is open, beside its body: hyper's task, h2's entry, its headers.
pub const STREAM_BYTES: usize = 4 << 10;
/// An answer up to this size is copied, so that it does not keep the larger buffer in which it was encoded.
const COPY_BYTES_MAX: usize = 64 << 10;

/// Bytes that one answer counts as, on its connection and on the node. Removed when the value is dropped.
pub struct AnswerCharge {
    /// Bytes that are counted now.
    bytes: AtomicUsize,
    /// The node's counter.
    node: Arc<AdmissionLoad>,
    /// The connection's.
    connection: Arc<ConnectionLoad>,
}

impl AnswerCharge {
    /// Counts nothing yet.
    pub fn new(node: Arc<AdmissionLoad>, connection: Arc<ConnectionLoad>) -> Self {
        Self { bytes: AtomicUsize::new(0), node, connection }
    }

    /// Counts `bytes` more before the answer is made, or refuses the call: too much is unread.
    pub fn reserve(&self, bytes: usize) -> Result<(), Refusal> {
        match self.node.take(&self.node.unread, &self.connection.unread, bytes) {
            Ok(()) => {
                self.bytes.fetch_add(bytes, Ordering::AcqRel);
                Ok(())
            }
            Err(Full::Connection) => Err(overloaded(
                "memory.unsent_bytes_per_connection",
                "too many bytes of answers are unread on this connection; read them first",
            )),
            Err(Full::Node) => Err(overloaded(
                "memory.unsent_bytes",
                "too many bytes of answers are unread on this node; retry later",
            )),
        }
    }

    /// Counts nothing, until the answer is made.
    pub fn release(&self) {
        self.set(0);
    }

    /// Counts an answer that is made already, until its last byte is dropped.
    pub fn carried_by(self, bytes: Bytes) -> Bytes {
        self.set(STREAM_BYTES + bytes.len());
        Bytes::from_owner(ChargedBytes { bytes, _charge: Arc::new(self) })
    }

    /// The answer has so many bytes. It is made already, so that it counts even beyond the limits.
    fn set(&self, bytes: usize) {
        let before = self.bytes.swap(bytes, Ordering::AcqRel);
        for counter in [&self.node.unread, &self.connection.unread] {
            counter.acquire_anyway(bytes);
            counter.release_many(before);
        }
    }
}

impl Drop for AnswerCharge {
    fn drop(&mut self) {
        let bytes = *self.bytes.get_mut();
        self.node.unread.release_many(bytes);
        self.connection.unread.release_many(bytes);
    }
}

/// Encodes an answer and counts it until it is sent, or its client is gone.
pub async fn hold(response: Response<Body>, charge: Arc<AnswerCharge>) -> Response<Body> {
    let (mut head, body) = response.into_parts();
    if body.is_end_stream() {
        charge.set(STREAM_BYTES + header_bytes(&head.headers));
        if let Some(value) = head.headers.get_mut("grpc-status") {
            hold_in(value, charge);
        }
        return Response::from_parts(head, body);
    }
    // Our answers are one message, which is ready.
    let collected = match body.collect().await {
        Ok(collected) => collected,
        Err(status) => return status.into_http(),
    };
    let trailers = collected.trailers().cloned();
    let mut data = collected.to_bytes();
    if data.len() <= COPY_BYTES_MAX {
        data = Bytes::copy_from_slice(&data);
    }
    charge.set(STREAM_BYTES + data.len() + trailers.as_ref().map_or(0, header_bytes));
    let data = Some(Bytes::from_owner(ChargedBytes { bytes: data, _charge: charge.clone() }));
    Response::from_parts(head, Body::new(AnswerBody { data, trailers, _charge: charge }))
}

/// A header value keeps the charge until it is written. A sensitive one is not kept for later answers.
fn hold_in(value: &mut HeaderValue, charge: Arc<AnswerCharge>) {
    let bytes = Bytes::copy_from_slice(value.as_bytes());
    let held = Bytes::from_owner(ChargedBytes { bytes, _charge: charge });
    if let Ok(mut held) = HeaderValue::from_maybe_shared(held) {
        held.set_sensitive(true);
        *value = held;
    }
}

/// Bytes of headers in memory, roughly.
fn header_bytes(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| 64 + name.as_str().len() + value.len()).sum()
}

/// Bytes with the charge of the answer that they belong to.
struct ChargedBytes {
    /// Part of the answer.
    bytes: Bytes,
    /// Removed with the last part.
    _charge: Arc<AnswerCharge>,
}

impl AsRef<[u8]> for ChargedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The body of an answer: one message and the trailers.
struct AnswerBody {
    /// The message; `None` once it was handed to h2.
    data: Option<Bytes>,
    /// The trailers; `None` once they were handed to h2.
    trailers: Option<HeaderMap>,
    /// Removed with the last part.
    _charge: Arc<AnswerCharge>,
}

impl http_body::Body for AnswerBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let data = self.data.take().map(Frame::data);
        let frame = data.or_else(|| self.trailers.take().map(Frame::trailers));
        Poll::Ready(frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_none() && self.trailers.is_none()
    }
}

#[cfg(test)]
mod tests {
    use forebay_types::Reason;

    use super::*;
    use crate::{admission::load::LoadLimits, rpc::status};

    /// A node with room for 100 KiB, and connections with room for 10 KiB.
    fn node() -> Arc<AdmissionLoad> {
        Arc::new(AdmissionLoad::new(&LoadLimits {
            unread_bytes: 100 << 10,
            unread_bytes_per_connection: 10 << 10,
            ..Default::default()
        }))
    }

    fn connection(node: &Arc<AdmissionLoad>) -> Arc<ConnectionLoad> {
        Arc::new(ConnectionLoad::open(node).unwrap())
    }

    fn charge(node: &Arc<AdmissionLoad>, connection: &Arc<ConnectionLoad>) -> Arc<AnswerCharge> {
        Arc::new(AnswerCharge::new(node.clone(), connection.clone()))
    }

    #[tokio::test]
    async fn an_answer_counts_until_its_last_byte_is_dropped() {
        let node = node();
        let one = connection(&node);
        let made = Response::new(Body::new(http_body_util::Full::new(Bytes::from_static(b"hello"))));
        let mut held = hold(made, charge(&node, &one)).await;
        assert_eq!(one.unread.in_use(), STREAM_BYTES + 5);
        let frame = held.body_mut().frame().await.unwrap().unwrap();
        drop(held);
        let data = frame.into_data().unwrap();
        let rest = data.slice(3..);
        drop(data);
        assert_eq!((&rest[..], node.unread.in_use()), (&b"lo"[..], STREAM_BYTES + 5));
        drop(rest);
        assert_eq!((node.unread.in_use(), one.unread.in_use()), (0, 0));
    }

    #[tokio::test]
    async fn a_refusal_counts_until_its_headers_are_dropped() {
        let node = node();
        let one = connection(&node);
        let refusal = status::of_call(&Refusal::new(Reason::Overloaded, "no")).into_http();
        let (head, body) = hold(refusal, charge(&node, &one)).await.into_parts();
        drop(body);
        assert!(one.unread.in_use() > STREAM_BYTES);
        assert_eq!(Status::from_header_map(&head.headers).unwrap().message(), "OVERLOADED: no");
        drop(head);
        assert_eq!(one.unread.in_use(), 0);
    }

    #[test]
    fn bytes_carry_their_charge() {
        let node = node();
        let one = connection(&node);
        let held = AnswerCharge::new(node.clone(), one.clone()).carried_by(Bytes::from_static(b"hello"));
        let rest = held.slice(4..);
        drop(held);
        assert_eq!((one.unread.in_use(), &rest[..]), (STREAM_BYTES + 5, &b"o"[..]));
        drop(rest);
        assert_eq!((one.unread.in_use(), node.unread.in_use()), (0, 0));
    }

    #[test]
    fn over_the_share_of_a_connection_nothing_more_is_reserved() {
        let node = node();
        let (one, other) = (connection(&node), connection(&node));
        let first = charge(&node, &one);
        first.reserve(20 << 10).expect("an answer that is alone");
        let second = charge(&node, &one);
        assert!(second.reserve(1).unwrap_err().message.contains("memory.unsent_bytes_per_connection"));
        charge(&node, &other).reserve(1).expect("another connection is not affected");
        first.set(1 << 10);
        second.reserve(9 << 10).unwrap();
        drop((first, second));
        assert_eq!((node.unread.in_use(), one.unread.in_use()), (0, 0));
    }

    #[test]
    fn a_full_node_still_serves_those_who_read() {
        let node = node();
        let deaf: Vec<_> = (0..10).map(|_| connection(&node)).collect();
        let held: Vec<_> = deaf.iter().map(|one| charge(&node, one)).collect();
        for charge in &held {
            charge.reserve(10 << 10).unwrap();
        }
        let reader = connection(&node);
        let part = (100 << 10) / 4 / 11;
        assert!(
            charge(&node, &reader).reserve(part + 1).unwrap_err().message.contains("memory.unsent_bytes`")
        );
        charge(&node, &reader).reserve(part).unwrap();
    }
}
