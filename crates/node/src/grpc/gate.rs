//! What stands before every call: its deadline, the limits on calls at work and on bytes in memory, and
//! the figures. An answer that tonic made by itself gets our error details here.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use forebay_types::{Reason, Refusal};
use http::{Request, Response};
use tokio::time::{Instant, timeout_at};
use tonic::{Code, Status, body::Body};
use tower::{Layer, Service};

use super::{
    call::Call,
    connection::ConnectionLoad,
    metered::Metered,
    status,
    unsent::{self, AnswerBytes, Counted, Unsent},
};

/// How much a node takes on at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadLimits {
    /// Calls at work on the node; calls that wait for an item don't count.
    pub calls: usize,
    /// The same on one connection.
    pub calls_per_connection: usize,
    /// Calls of one connection that wait for an item; one more is answered at once.
    pub parked_per_connection: usize,
    /// Bytes of requests that are being read or checked.
    pub request_bytes: usize,
    /// Bytes of items in answers that wait to be read; a further dequeue is refused.
    pub unsent_bytes: usize,
    /// The same on one connection.
    pub unsent_bytes_per_connection: usize,
}

impl Default for LoadLimits {
    fn default() -> Self {
        Self {
            calls: 4_096,
            calls_per_connection: 256,
            parked_per_connection: 768,
            request_bytes: 256 << 20,
            unsent_bytes: 256 << 20,
            unsent_bytes_per_connection: 32 << 20,
        }
    }
}

/// What the node has taken on.
pub struct Load {
    /// Calls at work.
    pub working: Seats,
    /// Bytes of requests in memory.
    pub request_bytes: Seats,
    /// Answers that wait to be read.
    pub unsent: Arc<Unsent>,
    unsent_most: [usize; 2],
}

impl Load {
    /// Nothing yet.
    pub fn new(limits: &LoadLimits) -> Self {
        Self {
            working: Seats::new(limits.calls),
            request_bytes: Seats::new(limits.request_bytes),
            unsent: Arc::default(),
            unsent_most: [limits.unsent_bytes, limits.unsent_bytes_per_connection],
        }
    }
}

/// A number that stays within its limit.
pub struct Seats {
    taken: AtomicUsize,
    most: usize,
}

impl Seats {
    /// None taken.
    pub fn new(most: usize) -> Self {
        Self { taken: AtomicUsize::new(0), most }
    }

    /// Takes one if one is free.
    pub fn take(&self) -> bool {
        self.take_many(1)
    }

    /// Takes so many if they are free.
    pub fn take_many(&self, number: usize) -> bool {
        let more = |taken: usize| taken.checked_add(number).filter(|sum| *sum <= self.most);
        self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok()
    }

    /// Gives one back.
    pub fn give(&self) {
        self.give_many(1);
    }

    /// Gives so many back.
    pub fn give_many(&self, number: usize) {
        self.taken.fetch_sub(number, Ordering::AcqRel);
    }

    /// How many are taken.
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }
}

/// Puts the gate before a service.
#[derive(Clone)]
pub struct GateLayer {
    /// The node's load.
    pub load: Arc<Load>,
}

impl<S> Layer<S> for GateLayer {
    type Service = Gate<S>;

    fn layer(&self, inner: S) -> Gate<S> {
        Gate { inner, load: self.load.clone() }
    }
}

/// A service behind the gate.
#[derive(Clone)]
pub struct Gate<S> {
    inner: S,
    load: Arc<Load>,
}

type Outcome<E> = Pin<Box<dyn Future<Output = Result<Response<Body>, E>> + Send>>;

impl<S> Service<Request<Body>> for Gate<S>
where
    S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Outcome<S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let Some(method) = method(request.uri().path()) else {
            // Health and reflection: small, and answered from memory.
            return Box::pin(self.inner.call(request));
        };
        let began = Instant::now();
        let connection = request.extensions().get::<Arc<ConnectionLoad>>().cloned().unwrap_or_default();
        let [node_most, most] = self.load.unsent_most;
        let room = match method {
            "Dequeue" => unsent::admit(&self.load.unsent, node_most, &connection.unsent, most),
            _ => Ok(()),
        };
        let call = match room.and_then(|()| Call::admit(request.headers(), &self.load, &connection)) {
            Ok(call) => call,
            Err(refusal) => {
                let response = status::of_call(&refusal).into_http();
                record(method, &response, began);
                return Box::pin(std::future::ready(Ok(response)));
            }
        };
        request.extensions_mut().insert(call.clone());
        let request = request.map(|body| Body::new(Metered::new(body, self.load.clone())));
        let answer = self.inner.call(request);
        let counters = [self.load.unsent.clone(), connection.unsent.clone()];
        Box::pin(async move {
            let mut response = match timeout_at(call.deadline(), answer).await {
                Ok(response) => explain(response?),
                Err(_) => {
                    let message = "the call's deadline passed before it was answered";
                    status::of_call(&Refusal::new(Reason::DeadlineExceeded, message)).into_http()
                }
            };
            record(method, &response, began);
            if let Some(AnswerBytes(bytes)) = response.extensions_mut().remove() {
                response = response.map(|body| Body::new(Counted::new(body, bytes, counters)));
            }
            Ok(response)
        })
    }
}

/// The calls that count, by path.
fn method(path: &str) -> Option<&'static str> {
    Some(match path.strip_prefix("/forebay.v1.QueueService/")? {
        "Enqueue" => "Enqueue",
        "Dequeue" => "Dequeue",
        "Ack" => "Ack",
        "Nack" => "Nack",
        "ExtendLease" => "ExtendLease",
        "GetActiveTopics" => "GetActiveTopics",
        _ => "other",
    })
}

/// What tonic refuses before a handler sees it carries no details: it is said again in our words.
fn explain(response: Response<Body>) -> Response<Body> {
    let Some(status) = Status::from_header_map(response.headers()) else { return response };
    if !status.details().is_empty() {
        return response;
    }
    let message = status.message();
    let refusal = match status.code() {
        Code::OutOfRange => Refusal::new(Reason::TooLarge, message),
        // A body that is no protobuf, is cut short, or is framed wrongly.
        Code::Internal => Refusal::new(Reason::InvalidField, format!("the request can't be read: {message}")),
        Code::Unimplemented => Refusal::new(Reason::Unimplemented, message),
        Code::ResourceExhausted => Refusal::new(Reason::Overloaded, message),
        _ => return response,
    };
    status::of_call(&refusal).into_http()
}

fn record(method: &'static str, response: &Response<Body>, began: Instant) {
    let code = response.headers().get("grpc-status").and_then(|code| code.to_str().ok());
    let code = code.and_then(|code| code.parse().ok()).map_or(Code::Ok, Code::from_i32);
    metrics::counter!("forebay_calls_total", "method" => method, "code" => format!("{code:?}")).increment(1);
    metrics::histogram!("forebay_call_seconds", "method" => method).record(began.elapsed());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_stay_within_their_number() {
        let seats = Seats::new(10);
        assert!(seats.take_many(9) && seats.take() && !seats.take());
        seats.give_many(4);
        assert!(!seats.take_many(5) && seats.take_many(4));
        assert!(!seats.take_many(usize::MAX));
        assert_eq!(seats.taken(), 10);
    }

    #[test]
    fn what_tonic_refuses_is_said_in_our_words() {
        use tonic_types::StatusExt as _;
        for (status, code, reason) in [
            (Status::out_of_range("big"), Code::InvalidArgument, "TOO_LARGE"),
            (Status::internal("cut"), Code::InvalidArgument, "INVALID_FIELD"),
            (Status::unimplemented("what"), Code::Unimplemented, "UNIMPLEMENTED"),
        ] {
            let response = explain(status.into_http());
            let status = Status::from_header_map(response.headers()).unwrap();
            assert_eq!(status.code(), code);
            assert_eq!(status.get_details_error_info().unwrap().reason, reason);
        }
    }
}
