//! The outermost layer: finds whose a call is. Nothing but the head of its request is there.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use forebay_access::{Needs, of_call};
use forebay_types::{Reason, Refusal};
use http::{Request, Response};
use tonic::body::Body;
use tower::Service;

use super::{
    connection::Caller,
    rights::Rights,
    service::{ResponseFuture, refuse},
};
use crate::access::Access;

/// A call that has arrived.
pub struct Arrival {
    /// Its request, of which the body is not received yet.
    pub request: Request<Body>,
    /// The connection over which it comes.
    pub caller: Caller,
    /// The rights of its caller. `None`: it needs none.
    pub rights: Result<Option<Rights>, Refusal>,
}

/// A service that is told whose its calls are.
#[derive(Clone)]
pub struct Arrivals<S> {
    /// Decides who may call what.
    pub(super) access: Arc<Access>,
    /// The next layer.
    pub(super) inner: S,
}

impl<S, E> Service<Request<Body>> for Arrivals<S>
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

    fn call(&mut self, request: Request<Body>) -> ResponseFuture<E> {
        let Some(caller) = request.extensions().get::<Caller>().cloned() else {
            let refusal = Refusal::new(Reason::Overloaded, "the call has no connection of this server");
            return refuse(&refusal);
        };
        caller.load.begin();
        let rights = match of_call(request.uri().path()) {
            Needs::Nothing => Ok(None),
            _ => Rights::of(&self.access, &request, &caller).map(Some),
        };
        self.inner.call(Arrival { request, caller, rights })
    }
}
