//! The calls of a page, made for whoever reads it. They pass the router of the gRPC port, with its checks,
//! limits and audit.

use std::task::{Context, Poll};

use forebay_edge::{
    access::AuthenticatedCaller,
    admission::{Caller, Calls, Protocol},
};
use forebay_proto::v1::queue_service_client::QueueServiceClient;
use http::{Request, Response};
use tonic::body::Body;
use tower::Service;

/// The queue, for a reader.
pub(crate) type QueueCalls = QueueServiceClient<OnBehalf>;

/// Makes calls for somebody.
#[derive(Clone)]
pub(crate) struct OnBehalf {
    /// The router of the gRPC port.
    calls: Calls,
    /// The connection on which the page was asked for.
    caller: Caller,
    /// The visitor who has asked for it.
    who: Option<AuthenticatedCaller>,
}

impl OnBehalf {
    /// For whoever asked for a page on this connection.
    pub fn new(calls: Calls, caller: Caller, who: Option<AuthenticatedCaller>) -> Self {
        Self { calls, caller, who }
    }
}

impl Service<Request<Body>> for OnBehalf {
    type Response = Response<Body>;
    type Error = <Calls as Service<Request<Body>>>::Error;
    type Future = <Calls as Service<Request<Body>>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.calls.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let extensions = request.extensions_mut();
        extensions.insert(self.caller.clone());
        extensions.insert(Protocol::Page);
        if let Some(who) = self.who.clone() {
            extensions.insert(who);
        }
        self.calls.call(request)
    }
}
