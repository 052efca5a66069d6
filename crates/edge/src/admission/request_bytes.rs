//! Receives a request, and counts its bytes until the call ends: on its connection and on the node, and for
//! its namespace once that is known.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use forebay_types::{Namespace, Reason, Refusal};
use http_body_util::BodyExt as _;
use tokio::time::timeout;
use tonic::{Code, body::Body};

use super::load::{AdmissionLoad, ConnectionLoad, Full};
use crate::rpc::overloaded;
use crate::rpc::refused;

/// Bytes before each message of gRPC: a flag and the length.
const PREFIX_BYTES: usize = 5;

/// Bytes that one request counts as. Removed when the call ends.
pub struct RequestCharge {
    /// Bytes that were received and are counted.
    bytes: AtomicUsize,
    /// The namespace that the bytes count for, once it is known.
    namespace: Mutex<Option<Namespace>>,
    /// The node's counters.
    node: Arc<AdmissionLoad>,
    /// The connection's.
    connection: Arc<ConnectionLoad>,
}

impl RequestCharge {
    /// Nothing received yet.
    pub fn new(node: Arc<AdmissionLoad>, connection: Arc<ConnectionLoad>) -> Self {
        Self { bytes: AtomicUsize::new(0), namespace: Mutex::new(None), node, connection }
    }

    /// Receives a whole request, of at most `max` bytes.
    pub async fn receive(&self, body: &mut Body, max: usize) -> Result<Bytes, Refusal> {
        let pause = self.node.limits.body_timeout;
        let (mut first, mut rest) = (None::<Bytes>, BytesMut::new());
        loop {
            let frame = timeout(pause, body.frame()).await.map_err(|_| idle(pause))?;
            let Some(frame) = frame else { break };
            let frame = frame.map_err(|status| broken(&status))?;
            let Ok(data) = frame.into_data() else { continue };
            let received = self.bytes.load(Ordering::Relaxed);
            if received + data.len() > max + PREFIX_BYTES {
                let message = format!("the request has more than {max} bytes");
                return Err(Refusal::new(Reason::TooLarge, message));
            }
            self.count(data.len())?;
            match &first {
                None => first = Some(data),
                // Most requests arrive in one frame and are not copied.
                Some(first) => {
                    if rest.is_empty() {
                        rest.extend_from_slice(first);
                    }
                    rest.extend_from_slice(&data);
                }
            }
        }
        Ok(if rest.is_empty() { first.unwrap_or_default() } else { rest.freeze() })
    }

    /// Counts bytes before they are kept.
    pub fn count(&self, bytes: usize) -> Result<(), Refusal> {
        let (node, connection) = (&self.node.request_bytes, &self.connection.request_bytes);
        match self.node.take(node, connection, bytes) {
            Ok(()) => {
                self.bytes.fetch_add(bytes, Ordering::AcqRel);
                Ok(())
            }
            Err(Full::Connection) => Err(overloaded(
                "memory.request_bytes_per_connection",
                "too many bytes of requests are in memory for this connection; retry later",
            )),
            Err(Full::Node) => Err(overloaded(
                "memory.request_bytes",
                "too many bytes of requests are in memory on this node; retry later",
            )),
        }
    }

    /// The call comes for this namespace. From now on its bytes count for it too, and so does what is
    /// refused.
    pub fn count_for(&self, namespace: &Namespace) -> Result<(), Refusal> {
        refused::name(namespace);
        self.node.namespace_rates.take(namespace)?;
        if !self.node.namespaces.take(namespace, self.bytes.load(Ordering::Acquire)) {
            return Err(overloaded(
                "memory.request_bytes_per_namespace",
                "too many bytes of requests are in memory for this namespace; retry later",
            ));
        }
        *self.lock() = Some(namespace.clone());
        Ok(())
    }

    /// The request is not in memory any more.
    pub fn release(&self) {
        let bytes = self.bytes.swap(0, Ordering::AcqRel);
        self.node.request_bytes.release_many(bytes);
        self.connection.request_bytes.release_many(bytes);
        if let Some(namespace) = self.lock().take() {
            self.node.namespaces.release(&namespace, bytes);
        }
    }

    /// Nobody panics with the lock.
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Namespace>> {
        self.namespace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RequestCharge {
    fn drop(&mut self) {
        self.release();
    }
}

fn idle(pause: Duration) -> Refusal {
    metrics::counter!("forebay_idle_requests_total").increment(1);
    let message =
        format!("nothing of the request arrived for {pause:?} (the limit is `node.body_timeout_ms`)");
    Refusal::new(Reason::DeadlineExceeded, message)
}

fn broken(status: &tonic::Status) -> Refusal {
    match status.code() {
        Code::Cancelled => Refusal::new(Reason::DeadlineExceeded, "the caller ended the request"),
        _ => Refusal::new(Reason::InvalidField, format!("cannot read the request: {}", status.message())),
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, Full as FullBody, StreamBody};

    use super::*;
    use crate::admission::load::LoadLimits;

    fn node() -> Arc<AdmissionLoad> {
        Arc::new(AdmissionLoad::new(&LoadLimits {
            request_bytes: 1_000,
            request_bytes_per_connection: 100,
            request_bytes_per_namespace: 150,
            ..Default::default()
        }))
    }

    fn body(bytes: usize) -> Body {
        Body::new(FullBody::new(Bytes::from(vec![1; bytes])))
    }

    fn charge(node: &Arc<AdmissionLoad>) -> RequestCharge {
        let connection = Arc::new(ConnectionLoad::open(node).unwrap());
        RequestCharge::new(node.clone(), connection)
    }

    #[tokio::test]
    async fn a_request_counts_until_its_call_ends() {
        let node = node();
        let one = charge(&node);
        assert_eq!(one.receive(&mut body(60), 80).await.unwrap().len(), 60);
        let other = RequestCharge::new(node.clone(), one.connection.clone());
        let refused = other.receive(&mut body(60), 80).await.unwrap_err();
        assert!(refused.message.contains("memory.request_bytes_per_connection"), "{refused}");
        assert_eq!(charge(&node).receive(&mut body(60), 80).await.unwrap().len(), 60);
        assert_eq!(charge(&node).receive(&mut body(90), 80).await.unwrap_err().reason, Reason::TooLarge);
        drop((one, other));
        assert_eq!(node.request_bytes.in_use(), 0);
    }

    #[tokio::test]
    async fn a_namespace_has_a_share() {
        let node = node();
        let (a, b) = (Namespace::from("a"), Namespace::from("b"));
        let (one, two) = (charge(&node), charge(&node));
        one.receive(&mut body(80), 80).await.unwrap();
        two.receive(&mut body(80), 80).await.unwrap();
        one.count_for(&a).unwrap();
        assert!(two.count_for(&a).unwrap_err().message.contains("memory.request_bytes_per_namespace"));
        two.count_for(&b).unwrap();
        one.release();
        let three = charge(&node);
        three.receive(&mut body(80), 80).await.unwrap();
        three.count_for(&a).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_of_which_nothing_arrives_is_ended() {
        let node = node();
        let stuck = StreamBody::new(futures_util::stream::pending::<Result<_, tonic::Status>>());
        let mut stuck = Body::new(stuck.map_frame(|frame: http_body::Frame<Bytes>| frame));
        let refused = charge(&node).receive(&mut stuck, 80).await.unwrap_err();
        assert_eq!(refused.reason, Reason::DeadlineExceeded);
        assert!(refused.message.contains("node.body_timeout_ms"), "{refused}");
    }
}
