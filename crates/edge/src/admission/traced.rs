//! The layer of traces: begins the spans of calls. It lies around admission, so that refused calls have spans
//! too.

use std::task::{Context, Poll};

use http::Response;
use tonic::body::Body;
use tower::Service;

use super::{arrival::Arrival, service::ResponseFuture};
use crate::traces::{Outcome, SpanMarker, System, Traces};

/// A service whose calls have spans.
#[derive(Clone)]
pub struct TraceService<S> {
    /// Begins them. `None`: there are none.
    pub(super) traces: Option<Traces>,
    /// The next layer.
    pub(super) inner: S,
}

impl<S, E> Service<Arrival> for TraceService<S>
where
    S: Service<Arrival, Response = Response<Body>, Error = E, Future = ResponseFuture<E>>,
    E: Send + 'static,
{
    type Response = Response<Body>;
    type Error = E;
    type Future = ResponseFuture<E>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), E>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, arrival: Arrival) -> ResponseFuture<E> {
        let (request, is_known) = (&arrival.request, arrival.rights.is_ok());
        let traces = self.traces.as_ref().filter(|_| request.extensions().get::<SpanMarker>().is_none());
        let path = request.uri().path();
        let span = traces.and_then(|it| it.of_call(System::Grpc, path, request.headers(), is_known));
        let answer = self.inner.call(arrival);
        match span {
            Some(span) => Box::pin(span.around(answer, Outcome::of_response)),
            None => answer,
        }
    }
}
