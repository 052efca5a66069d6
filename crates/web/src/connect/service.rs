//! The steps of a call: its head, its message, the router, its answer.

use std::{sync::Arc, time::Duration};

use axum::body::Body;
use bytes::Bytes;
use forebay_edge::{
    access::AuthenticatedCaller,
    admission::{AnswerCharge, Caller, Calls, ConnectionLoad, Protocol, RequestCharge},
    random::random,
    traces::{Outcome, SpanMarker, System},
};
use forebay_types::{Reason, Refusal};
use http::{
    HeaderName, HeaderValue, Request, Response, StatusCode,
    header::{CACHE_CONTROL, EXPECT, X_CONTENT_TYPE_OPTIONS},
    request::Parts,
};
use http_body_util::BodyExt as _;
use prost_reflect::{DescriptorError, DescriptorPool};
use tokio::time::{timeout, timeout_at};
use tonic::Code;
use tower::ServiceExt as _;

use super::{
    failure::Failure,
    heavy::{Heavy, Turn},
    media,
    methods::{Method, Methods, pool},
    request::RequestHead,
    response::RouterResponse,
};
use crate::origins::{Origins, preflight};

/// How the paths of calls begin.
pub const PATHS: &str = "/forebay.";
/// Names a call in the log.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-forebay-request-id");
/// Bytes of a refused request that are still read, and how long. Else the caller, who is still sending, finds
/// the connection broken before it reads why.
const DISCARDED_BYTES_MAX: usize = 8 << 20;
const DISCARD_TIMEOUT: Duration = Duration::from_secs(2);

/// Serves calls over HTTP.
pub struct Connect {
    /// The router of the gRPC port.
    calls: Calls,
    /// The methods that can be called.
    methods: Methods,
    /// The types of messages and error details.
    pool: DescriptorPool,
    /// Origins of which pages may make calls.
    origins: Origins,
    /// Bounds large translations.
    heavy: Heavy,
}

impl Connect {
    /// Serves the services of a descriptor set through a router.
    pub fn new(services: &[u8], calls: Calls, origins: Origins) -> Result<Self, DescriptorError> {
        let pool = pool(services)?;
        Ok(Self { calls, methods: Methods::new(&pool), pool, origins, heavy: Heavy::new() })
    }

    /// The router of the gRPC port.
    pub fn calls(&self) -> &Calls {
        &self.calls
    }

    /// Answers a request below [`PATHS`].
    pub async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let mut answer = match self.origins.is_preflight(&head.method, &head.headers) {
            true => permission(),
            false => self.call(&head, body).await,
        };
        let headers = answer.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        self.origins.permit(&head.headers, headers);
        answer
    }

    async fn call(&self, head: &Parts, body: Body) -> Response<Body> {
        // Without random numbers a call has no name, and works.
        let id = random().map(|id| format!("{id:016x}")).unwrap_or_default();
        let mut body = tonic::body::Body::new(body);
        let who = self.who(head);
        let traces = self.calls.traces();
        let span =
            traces.and_then(|it| it.of_call(System::Connect, head.uri.path(), &head.headers, who.is_ok()));
        let served = self.serve(head, who, &mut body);
        let served = match span {
            Some(span) => span.around(served, outcome).await,
            None => served.await,
        };
        let mut answer = match served {
            Ok(answer) => answer,
            Err(failure) => {
                self.log(head, &failure, &id);
                // Nothing is on its way yet from who waits to be asked for the body.
                if !head.headers.contains_key(EXPECT) {
                    discard(body).await;
                }
                failure.answer(Some(&self.pool))
            }
        };
        if let Ok(id) = HeaderValue::try_from(id) {
            answer.headers_mut().insert(REQUEST_ID, id);
        }
        answer
    }

    /// Finds who makes a call, and over which connection.
    fn who(&self, head: &Parts) -> Result<(Caller, AuthenticatedCaller), Failure> {
        let caller = head.extensions.get::<Caller>().cloned();
        let caller = caller.ok_or_else(|| Failure::internal("the call has no connection of this server"))?;
        let who = caller.authenticate(self.calls.access(), &head.headers, "http")?;
        Ok((caller, who))
    }

    async fn serve(
        &self,
        head: &Parts,
        who: Result<(Caller, AuthenticatedCaller), Failure>,
        body: &mut tonic::body::Body,
    ) -> Result<Response<Body>, Failure> {
        let (caller, who) = who?;
        if self.calls.load().http_connections.is_crowded() {
            return Err(Failure::crowded());
        }
        let connection = caller.load.clone();
        let turn = Turn::of(&who.identity, &caller.client);
        let path = head.uri.path();
        let unknown = || Failure::unimplemented(format!("there is no method {path}"));
        let method = self.methods.find(path).ok_or_else(unknown)?;
        let asked = RequestHead::read(head, method)?;

        let late = |_| {
            let message = "the deadline passed before the request was read";
            Failure::from(Refusal::new(Reason::DeadlineExceeded, message))
        };
        let receiving = self.receive(&asked, method, body, &turn, &connection);
        let message = timeout_at(asked.deadline, receiving).await.map_err(late)??;

        let mut request = asked.call(&head.headers, method, message, caller);
        request.extensions_mut().insert(who);
        request.extensions_mut().insert(SpanMarker);
        request.extensions_mut().insert(Protocol::Connect);
        let answered = match self.calls.clone().oneshot(request).await {
            Ok(response) => RouterResponse::receive(response).await?,
            Err(never) => match never {},
        };
        let translation = answered.translation(asked.codec, method, media::accepts_gzip(&head.headers));
        let written = self.heavy.run(&turn, answered.message.len(), translation).await?;
        let charge = AnswerCharge::new(self.calls.load().clone(), connection);
        Ok(answered.answer(written, asked.codec, charge))
    }

    /// Receives the message of a request, and frames it for the router. Its bytes count until then; the
    /// router counts the frame.
    async fn receive(
        &self,
        asked: &RequestHead,
        method: &Arc<Method>,
        body: &mut tonic::body::Body,
        turn: &Turn,
        connection: &Arc<ConnectionLoad>,
    ) -> Result<Bytes, Failure> {
        let bounds = self.calls.bounds();
        let charge = Arc::new(RequestCharge::new(self.calls.load().clone(), connection.clone()));
        let message = match &asked.message {
            Some(message) => message.clone(),
            None => charge.receive(body, bounds.bytes).await?,
        };
        let weight = asked.weight(message.len());
        self.heavy.run(turn, weight, asked.translation(message, method, bounds, &charge)).await
    }

    /// A refusal is for its caller. What should not happen is for operators.
    fn log(&self, head: &Parts, failure: &Failure, id: &str) {
        let (path, code, why) = (head.uri.path(), failure.code(), failure.message());
        match code {
            Code::Internal | Code::Unknown | Code::DataLoss => {
                tracing::error!(request.id = id, "call {id} of {path} failed: {why}");
            }
            _ => tracing::debug!(request.id = id, ?code, "call {id} of {path} was refused: {why}"),
        }
    }
}

/// The outcome of a call, for its span.
fn outcome(served: &Result<Response<Body>, Failure>) -> Outcome {
    served.as_ref().err().map_or(Outcome::OK, |failure| Outcome::of_status(failure.status()))
}

/// A page of a listed origin may make calls.
fn permission() -> Response<Body> {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    *answer.headers_mut() = preflight();
    answer
}

/// Reads what is left of a request.
async fn discard(mut body: tonic::body::Body) {
    let read = async {
        let mut left = DISCARDED_BYTES_MAX;
        while let Some(Ok(frame)) = body.frame().await {
            match left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) {
                Some(rest) => left = rest,
                None => break,
            }
        }
    };
    // A client that sends more slowly finds the connection closed.
    let _ = timeout(DISCARD_TIMEOUT, read).await;
}
