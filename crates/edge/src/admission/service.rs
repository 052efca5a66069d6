//! The services between which the layers of calls lie, and how they answer.

use std::pin::Pin;

use forebay_types::Refusal;
use http::{Request, Response};
use tonic::body::Body;
use tower::Service;

use crate::rpc::status;

/// An answer that is on its way. It is in a box once, and no layer moves what is in the box.
pub type ResponseFuture<E> = Pin<Box<dyn Future<Output = Result<Response<Body>, E>> + Send>>;

/// A service of calls, with a clone for each call.
pub trait CallService:
    Service<Request<Body>, Response = Response<Body>, Future: Send, Error: Send> + Clone + Send + 'static
{
}

impl<S> CallService for S where
    S: Service<Request<Body>, Response = Response<Body>, Future: Send, Error: Send> + Clone + Send + 'static
{
}

/// Answers that a call is refused.
pub fn refuse<E: Send + 'static>(refusal: &Refusal) -> ResponseFuture<E> {
    Box::pin(std::future::ready(Ok(status::of_call(refusal).into_http())))
}

/// Takes a service that has been asked whether it is ready, so that its clone stays behind.
pub fn take_ready<S: Clone>(service: &mut S) -> S {
    let clone = service.clone();
    std::mem::replace(service, clone)
}
