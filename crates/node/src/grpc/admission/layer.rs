//! Middleware around every call: its deadline, the limits on calls and on bytes in memory, and the metrics.
//! A refusal that tonic made by itself gets its error details here.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use forebay_types::{Reason, Refusal};
use http::{Request, Response};
use http_body_util::Full;
use tokio::time::{Instant, timeout_at};
use tonic::{Code, Status, body::Body};
use tower::{Layer, Service};

use super::{
    answer_bytes::{self, AnswerCharge},
    call::Call,
    load::{AdmissionLoad, ConnectionLoad, overloaded},
    message_members,
    side_call::SideCall,
};
use crate::grpc::status;

/// What a request may have before it is decoded. The field checks are stricter.
#[derive(Debug, Clone, Copy)]
pub struct RequestBounds {
    /// Encoded bytes.
    pub bytes: usize,
    /// Strings and members of the message.
    pub members: usize,
}

/// Adds admission control to a service.
#[derive(Clone)]
pub struct AdmissionLayer {
    /// The node's counters, shared with the pages and metrics that show them.
    pub load: Arc<AdmissionLoad>,
    /// What a request may have before it is decoded.
    pub bounds: RequestBounds,
}

impl<S> Layer<S> for AdmissionLayer {
    type Service = Admission<S>;

    fn layer(&self, inner: S) -> Admission<S> {
        Admission { inner, load: self.load.clone(), bounds: self.bounds }
    }
}

/// A service with admission control.
#[derive(Clone)]
pub struct Admission<S> {
    /// The service that handles admitted calls.
    inner: S,
    /// The node's counters.
    load: Arc<AdmissionLoad>,
    /// What a request may have before it is decoded.
    bounds: RequestBounds,
}

type ResponseFuture<E> = Pin<Box<dyn Future<Output = Result<Response<Body>, E>> + Send>>;

impl<S> Service<Request<Body>> for Admission<S>
where
    S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Some(connection) = request.extensions().get::<Arc<ConnectionLoad>>().cloned() else {
            let refusal = Refusal::new(Reason::Overloaded, "the call has no connection of this server");
            return Box::pin(std::future::ready(Ok(status::of_call(&refusal).into_http())));
        };
        connection.begin();
        let Some(method) = method(request.uri().path()) else {
            return side_call(connection, self.inner.call(request));
        };
        let began = Instant::now();
        let charge = Arc::new(AnswerCharge::new(self.load.clone(), connection.clone()));
        let call = match Call::admit(request.headers(), &self.load, &connection, &charge) {
            Ok(call) => call,
            Err(refusal) => {
                let response = status::of_call(&refusal).into_http();
                record(method, &response, began);
                return Box::pin(async move { Ok(answer_bytes::hold(response, charge).await) });
            }
        };
        // The service has been asked whether it is ready, so that its clone stays behind.
        let clone = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, clone);
        let bounds = self.bounds;
        Box::pin(async move {
            let deadline = call.deadline();
            let response = match timeout_at(deadline, serve(inner, request, call, bounds)).await {
                Ok(response) => add_details(response?),
                Err(_) => {
                    let message = "the deadline passed before the call completed";
                    status::of_call(&Refusal::new(Reason::DeadlineExceeded, message)).into_http()
                }
            };
            record(method, &response, began);
            Ok(answer_bytes::hold(response, charge).await)
        })
    }
}

/// Receives the request, then has the call served.
async fn serve<S>(
    mut inner: S,
    request: Request<Body>,
    call: Call,
    bounds: RequestBounds,
) -> Result<Response<Body>, S::Error>
where
    S: Service<Request<Body>, Response = Response<Body>>,
{
    let (mut head, body) = request.into_parts();
    let received = call.request().receive(body, bounds.bytes).await;
    let checked = received.and_then(|bytes| {
        message_members::check(&bytes, bounds.members)?;
        call.start()?;
        Ok(bytes)
    });
    match checked {
        Ok(bytes) => {
            head.extensions.insert(call);
            inner.call(Request::from_parts(head, Body::new(Full::new(bytes)))).await
        }
        Err(refusal) => Ok(status::of_call(&refusal).into_http()),
    }
}

/// Health and reflection: answered from memory. Their streams may stay open, so that their number is limited.
fn side_call<E: Send + 'static>(
    connection: Arc<ConnectionLoad>,
    answer: impl Future<Output = Result<Response<Body>, E>> + Send + 'static,
) -> ResponseFuture<E> {
    let Some(permit) = SideCall::begin(connection) else {
        let message = "too many health checks and reflection calls are open on this connection";
        let refusal = overloaded("health checks and reflection", message);
        return Box::pin(std::future::ready(Ok(status::of_call(&refusal).into_http())));
    };
    Box::pin(async move { Ok(answer.await?.map(|body| permit.until_the_end_of(body))) })
}

/// The calls that are limited and measured, by path.
fn method(path: &str) -> Option<&'static str> {
    if path.starts_with("/forebay.v1.AdminService/") {
        return Some("other");
    }
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

/// Adds error details to a refusal that tonic made before a handler saw the call.
fn add_details(response: Response<Body>) -> Response<Body> {
    let Some(status) = Status::from_header_map(response.headers()) else { return response };
    if !status.details().is_empty() {
        return response;
    }
    let message = status.message();
    let refusal = match status.code() {
        Code::OutOfRange => Refusal::new(Reason::TooLarge, message),
        // A body that is not protobuf, is truncated, or has invalid framing.
        Code::Internal => Refusal::new(Reason::InvalidField, format!("cannot decode the request: {message}")),
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
    fn a_refusal_of_tonic_gets_details() {
        use tonic_types::StatusExt as _;
        for (status, code, reason) in [
            (Status::out_of_range("big"), Code::InvalidArgument, "TOO_LARGE"),
            (Status::internal("cut"), Code::InvalidArgument, "INVALID_FIELD"),
            (Status::unimplemented("what"), Code::Unimplemented, "UNIMPLEMENTED"),
        ] {
            let response = add_details(status.into_http());
            let status = Status::from_header_map(response.headers()).unwrap();
            assert_eq!(status.code(), code);
            assert_eq!(status.get_details_error_info().unwrap().reason, reason);
        }
    }
}
