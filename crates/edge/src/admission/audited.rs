//! The layer of the audit log: writes calls down before they are served, and how they ended. It lies below
//! admission, so that it sees admitted calls alone.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use forebay_access::Identity;
use futures_util::future::Either;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use tonic::body::Body;
use tower::Service;

use super::{
    call::Call,
    connection::Caller,
    rights::bypassed,
    service::{CallService, ResponseFuture, take_ready},
};
use crate::{audit::Auditor, rpc::status};

/// A service whose calls are written down.
#[derive(Clone)]
pub struct AuditService<S> {
    /// Writes them down.
    pub(super) audit: Arc<Auditor>,
    /// The service that handles them.
    pub(super) inner: S,
}

impl<S: CallService> Service<Request<Body>> for AuditService<S> {
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Either<S::Future, ResponseFuture<S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        // Calls of the queue pass as they are.
        match self.audit.records(request.uri().path()) {
            true => {
                let served = serve(take_ready(&mut self.inner), request, self.audit.clone());
                Either::Right(Box::pin(served))
            }
            false => Either::Left(self.inner.call(request)),
        }
    }
}

/// Writes a call down, has it served, and writes down how it ended.
async fn serve<S: CallService>(
    mut inner: S,
    request: Request<Body>,
    audit: Arc<Auditor>,
) -> Result<Response<Body>, S::Error> {
    let (head, body) = request.into_parts();
    let (call, caller) = (head.extensions.get::<Call>().cloned(), head.extensions.get::<Caller>().cloned());
    let identity = head.extensions.get::<Arc<Identity>>().cloned();
    // Nothing is served that would be written down as nobody's.
    let (Some(call), Some(caller), Some(identity)) = (call, caller, identity) else {
        return Ok(bypassed().into_http());
    };
    // It was received as a whole.
    let bytes = match body.collect().await {
        Ok(collected) => collected.to_bytes(),
        Err(status) => return Ok(status.into_http()),
    };
    let audited = match audit.begin(&head, &bytes, &identity, caller.from()).await {
        Ok(audited) => audited,
        Err(refusal) => return Ok(status::of_call(&refusal).into_http()),
    };
    let response = inner.call(Request::from_parts(head, Body::new(Full::new(bytes)))).await?;
    if let Some(audited) = audited {
        audited.end(&response, call.left() / 2).await;
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use forebay_store::SqliteCatalog;
    use forebay_types::SystemClock;
    use tonic::Status;

    use super::*;

    #[tokio::test]
    async fn a_change_that_was_not_admitted_is_not_served() {
        let catalog = Arc::new(SqliteCatalog::new("nowhere"));
        let audit = Auditor::new(catalog, "node1", Arc::new(SystemClock::default())).unwrap();
        let inner = tower::service_fn(async |_: Request<Body>| {
            Ok::<_, std::convert::Infallible>(Status::ok("served").into_http())
        });
        let mut service = AuditService { audit, inner };
        for (method, message) in
            [("PutTopic", "OVERLOADED: the call bypassed admission control"), ("GetTopic", "served")]
        {
            let mut request = Request::new(Body::empty());
            *request.uri_mut() = format!("/forebay.v1.AdminService/{method}").parse().unwrap();
            let response = service.call(request).await.unwrap();
            assert_eq!(Status::from_header_map(response.headers()).unwrap().message(), message, "{method}");
        }
    }
}
