//! The layers of calls, one around the other.

use std::sync::Arc;

use tonic::service::Routes;

use super::{
    admit::{Admission, AdmissionContext, RequestBounds},
    arrival::Arrivals,
    audited::AuditService,
    load::AdmissionLoad,
    traced::TraceService,
};
use crate::{access::Access, traces::Traces};

/// Every call, with its limits: what the gRPC port serves. A request has the load of its connection among its
/// extensions.
pub type Calls = CallLayers<Routes>;

/// A service with all layers around it: the first one sees a call first.
type CallLayers<S> = Arrivals<TraceService<Admission<AuditService<S>>>>;

/// Puts the layers around a service.
pub fn around<S>(
    inner: S,
    access: &Arc<Access>,
    traces: Option<&Traces>,
    context: &Arc<AdmissionContext>,
) -> CallLayers<S> {
    let audited = AuditService { audit: context.audit.clone(), inner };
    let admission = Admission { context: context.clone(), inner: audited };
    Arrivals { access: access.clone(), inner: TraceService { traces: traces.cloned(), inner: admission } }
}

impl Calls {
    /// The access control of calls.
    pub fn access(&self) -> &Arc<Access> {
        &self.access
    }

    /// The traces that begin the spans of calls.
    pub fn traces(&self) -> Option<&Traces> {
        self.inner.traces.as_ref()
    }

    /// The bounds of a request before it is decoded.
    pub fn bounds(&self) -> RequestBounds {
        self.inner.inner.context.bounds
    }

    /// The node's counters.
    pub fn load(&self) -> &Arc<AdmissionLoad> {
        &self.inner.inner.context.load
    }
}

#[cfg(test)]
mod tests {
    use forebay_engine::ReportedNamespaces;
    use http::{Request, Response};
    use http_body_util::Full;
    use tonic::body::Body;
    use tower::Service as _;

    use super::*;
    use crate::{
        admission::{
            connection::Caller,
            load::{ConnectionLoad, LoadLimits},
        },
        audit::Auditor,
        tls::Principal,
    };

    #[tokio::test]
    async fn every_handler_knows_who_calls() {
        let load = Arc::new(AdmissionLoad::new(&LoadLimits::default()));
        let inner = tower::service_fn(async |request: Request<Body>| {
            let principal = request.extensions().get::<Principal>().cloned();
            let mut response = Response::new(Body::empty());
            response.extensions_mut().insert(principal);
            Ok::<_, std::convert::Infallible>(response)
        });
        let bounds = RequestBounds { bytes: 1_000, members: 10, values: 100 };
        let clock = Arc::new(forebay_types::SystemClock::default());
        // It is asked about no call that it would write down.
        let catalog = Arc::new(forebay_store::SqliteCatalog::new("nowhere"));
        let audit = Auditor::new(catalog, "node1", clock).unwrap();
        let reported = ReportedNamespaces::default();
        let context = Arc::new(AdmissionContext { load: load.clone(), bounds, reported, audit });
        let mut service = around(inner, &Access::open(), None, &context);
        let principal = Principal::Certificate {
            name: "spiffe://prod/worker".into(),
            ends: forebay_types::Timestamp::from_micros(i64::MAX),
        };
        for path in ["/forebay.v1.QueueService/Ack", "/grpc.reflection.v1.ServerReflection/X"] {
            let connection = Arc::new(ConnectionLoad::open(&load).unwrap());
            // One message without a field.
            let mut request = Request::new(Body::new(Full::from(&[0_u8; 5][..])));
            *request.uri_mut() = path.parse().unwrap();
            let client = ([127, 0, 0, 1], 1).into();
            let caller = Caller { load: connection, principal: principal.clone(), client };
            request.extensions_mut().insert(caller);
            let response = service.call(request).await.unwrap();
            let known = response.extensions().get::<Option<Principal>>().cloned();
            assert_eq!(known, Some(Some(principal.clone())), "{path}");
        }
    }
}
