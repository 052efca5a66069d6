//! One call in progress: its deadline, and the permits that it holds on its connection and on the node.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use forebay_engine::AnswerBy;
use forebay_types::{Reason, Refusal};
use http::HeaderMap;
use tokio::time::Instant;
use tonic::Status;

use super::{
    answer_bytes::{AnswerCharge, STREAM_BYTES},
    load::{AdmissionLoad, ConnectionLoad, Full},
    request_bytes::RequestCharge,
    rights::{Rights, bypassed},
    wire,
};
use crate::rpc::overloaded;

/// So long before its deadline a call is answered with what is known.
const ANSWER_BEFORE: Duration = Duration::from_millis(200);

/// The longest that a call may take, whatever deadline its caller sets.
const CALL_TIMEOUT_MAX: Duration = Duration::from_secs(30);
/// A call with less time than this cannot complete and is refused.
const CALL_TIMEOUT_MIN: Duration = Duration::from_millis(5);

/// Bytes that the answer to one member may take: an error with its details, and its reason and delay once
/// more.
const MEMBER_ANSWER_BYTES: usize = 352;

/// A call. Dropping the last clone releases what it holds.
#[derive(Clone)]
pub struct Call {
    /// When the answer must be sent.
    deadline: Instant,
    /// Shared by the clones; released with the last one.
    held: Arc<CallResources>,
}

/// Counters and rights that one call holds.
struct CallResources {
    /// The node's counters.
    node: Arc<AdmissionLoad>,
    /// The connection's.
    connection: Arc<ConnectionLoad>,
    /// Bytes that its request counts as.
    request: RequestCharge,
    /// Bytes that its answer counts as.
    answer: Arc<AnswerCharge>,
    /// One of the `PERMIT` constants.
    permit: AtomicU8,
    /// Rights of its caller.
    rights: Arc<Rights>,
}

/// The request is being received.
const PERMIT_NONE: u8 = 0;
/// The call is in progress.
const PERMIT_CALL: u8 = 1;
/// It waits as a long poll.
const PERMIT_PARKED: u8 = 2;

impl Call {
    /// Admits a call, or refuses it. Its request has not been received yet.
    pub fn admit(
        headers: &HeaderMap,
        node: &Arc<AdmissionLoad>,
        connection: &Arc<ConnectionLoad>,
        answer: &Arc<AnswerCharge>,
        rights: Arc<Rights>,
    ) -> Result<Self, Refusal> {
        connection.rate.take()?;
        let allowed = wire::timeout(headers)?.unwrap_or(CALL_TIMEOUT_MAX).min(CALL_TIMEOUT_MAX);
        if allowed < CALL_TIMEOUT_MIN {
            let message = format!("the deadline is less than {CALL_TIMEOUT_MIN:?} away; allow more time");
            return Err(Refusal::new(Reason::DeadlineExceeded, message));
        }
        answer.reserve(STREAM_BYTES)?;
        let held = CallResources {
            node: node.clone(),
            connection: connection.clone(),
            request: RequestCharge::new(node.clone(), connection.clone()),
            answer: answer.clone(),
            permit: AtomicU8::new(PERMIT_NONE),
            rights,
        };
        Ok(Self { deadline: Instant::now() + allowed, held: Arc::new(held) })
    }

    /// The bytes that its request counts as.
    pub fn request(&self) -> &RequestCharge {
        &self.held.request
    }

    /// The request was received: from now on the call is in progress, or it is refused.
    pub fn start(&self) -> Result<(), Refusal> {
        let CallResources { node, connection, permit, .. } = &*self.held;
        match node.take(&node.calls, &connection.calls, 1) {
            Ok(()) => permit.store(PERMIT_CALL, Ordering::Release),
            Err(Full::Connection) => {
                let message = "too many calls are in progress on this connection; retry later";
                return Err(overloaded("engine.calls_per_connection", message));
            }
            Err(Full::Node) => {
                let message = "too many calls are in progress on this node; retry later";
                return Err(overloaded("engine.calls", message));
            }
        }
        Ok(())
    }

    /// The call that a request belongs to. The admission layer attached it.
    pub fn of<T>(request: &tonic::Request<T>) -> Result<Self, Status> {
        request.extensions().get().cloned().ok_or_else(bypassed)
    }

    /// Whether its caller may still make it. Whoever has waited asks before something is handed out that can
    /// be given back.
    pub fn may_still(&self) -> Result<(), Refusal> {
        self.held.rights.check_again()
    }

    /// When the answer must be sent.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Makes calls of the engine or of other nodes that are answered with what is known shortly before the
    /// deadline, so that the answer still arrives.
    pub fn in_time<T>(&self, calls: impl Future<Output = T>) -> impl Future<Output = T> {
        let margin = ANSWER_BEFORE.min(self.left() / 4);
        AnswerBy(self.deadline - margin).around(calls)
    }

    /// Time left until the deadline.
    pub fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Counts what the answers to so many members may take, or refuses the call.
    pub fn reserve_answers(&self, members: usize) -> Result<(), Refusal> {
        self.reserve_answer(members * MEMBER_ANSWER_BYTES)
    }

    /// Counts so many bytes of the answer, or refuses the call.
    pub fn reserve_answer(&self, bytes: usize) -> Result<(), Refusal> {
        self.held.answer.reserve(bytes)
    }

    /// Exchanges the permit of a call in progress for that of a long poll. `false`: too many are parked on
    /// its connection. What a parked call takes is counted by the engine.
    pub fn park(&self) -> bool {
        let CallResources { connection, request, answer, .. } = &*self.held;
        if !connection.parked.try_acquire() {
            return false;
        }
        self.held.change_permit(PERMIT_PARKED);
        request.release();
        answer.release();
        true
    }
}

impl CallResources {
    /// Releases the permit. The next one is acquired already.
    fn change_permit(&self, next: u8) {
        match self.permit.swap(next, Ordering::AcqRel) {
            PERMIT_CALL => {
                self.connection.calls.release();
                self.node.calls.release();
            }
            PERMIT_PARKED => self.connection.parked.release(),
            _ => {}
        }
    }
}

impl Drop for CallResources {
    fn drop(&mut self) {
        self.change_permit(PERMIT_NONE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::load::LoadLimits;

    fn headers(timeout: &str) -> HeaderMap {
        HeaderMap::from_iter([(http::HeaderName::from_static("grpc-timeout"), timeout.parse().unwrap())])
    }

    fn admit(
        headers: &HeaderMap,
        node: &Arc<AdmissionLoad>,
        one: &Arc<ConnectionLoad>,
    ) -> Result<Call, Refusal> {
        let answer = Arc::new(AnswerCharge::new(node.clone(), one.clone()));
        let call = Call::admit(headers, node, one, &answer, Arc::new(Rights::of_anyone()))?;
        call.start()?;
        Ok(call)
    }

    #[tokio::test]
    async fn a_call_releases_its_permits_whether_parked_or_not() {
        let limits =
            LoadLimits { calls: 2, calls_per_connection: 1, parked_per_connection: 1, ..Default::default() };
        let node = Arc::new(AdmissionLoad::new(&limits));
        let one = Arc::new(ConnectionLoad::open(&node).unwrap());
        let none = HeaderMap::new();

        let first = admit(&none, &node, &one).unwrap();
        assert_eq!(admit(&none, &node, &one).err().unwrap().reason, Reason::Overloaded);
        assert!(first.park());
        let second = admit(&none, &node, &one).unwrap();
        assert!(!second.park(), "one call may park");
        assert_eq!((node.calls.in_use(), one.calls.in_use(), one.parked.in_use()), (1, 1, 1));
        drop((first, second));
        assert_eq!((node.calls.in_use(), one.calls.in_use(), one.parked.in_use()), (0, 0, 0));
    }

    #[tokio::test]
    async fn a_call_with_too_little_time_is_refused() {
        let limits = LoadLimits::default();
        let node = Arc::new(AdmissionLoad::new(&limits));
        let one = Arc::new(ConnectionLoad::open(&node).unwrap());
        let refused = admit(&headers("4m"), &node, &one).err().unwrap();
        assert_eq!(refused.reason, Reason::DeadlineExceeded);
        assert!(admit(&headers("50m"), &node, &one).unwrap().left() <= Duration::from_millis(50));
        assert!(admit(&headers("1H"), &node, &one).unwrap().left() <= CALL_TIMEOUT_MAX);
    }
}
