//! Middleware around every call: its deadline, the limits on calls and on bytes in memory, and the metrics.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use forebay_access::{Needs, of_call};
use forebay_engine::{ReportedNamespaces, paid_by};
use forebay_types::{Reason, Refusal};
use http::{Request, Response, request::Parts};
use http_body_util::Full;
use tonic::body::Body;
use tower::{Layer, Service};

use super::{
    answer_bytes::{self, AnswerCharge},
    call::Call,
    connection::{Caller, ClientName},
    details::add_details,
    lasting::{LOOK_EVERY, deny, until},
    load::AdmissionLoad,
    measured::MeteredCall,
    message_members,
    rights::Rights,
    side_call::{RightsWatch, SideCall},
    wire,
};
use crate::{
    access::Access,
    audit::Auditor,
    rpc::{refused, status},
    traces::{Outcome, SpanMarker, System, Traces},
};

/// Bounds of a request before it is decoded. The field checks are stricter.
#[derive(Debug, Clone, Copy)]
pub struct RequestBounds {
    /// Encoded bytes.
    pub bytes: usize,
    /// Strings and members of the message.
    pub members: usize,
    /// Values of JSON.
    pub values: usize,
}

/// Adds admission control to a service.
#[derive(Clone)]
pub struct AdmissionLayer {
    /// The node's counters, shared with the pages and metrics that show them.
    pub load: Arc<AdmissionLoad>,
    /// Bounds of a request before it is decoded.
    pub bounds: RequestBounds,
    /// Decides who may call what.
    pub access: Arc<Access>,
    /// Writes calls down.
    pub audit: Arc<Auditor>,
    /// The namespaces of which refusals are counted by name.
    pub reported: ReportedNamespaces,
    /// Begins their spans.
    pub traces: Option<Traces>,
}

impl<S> Layer<S> for AdmissionLayer {
    type Service = Admission<S>;

    fn layer(&self, inner: S) -> Admission<S> {
        let Self { load, bounds, access, audit, reported, traces } = self.clone();
        Admission { inner, load, bounds, access, audit, reported, traces }
    }
}

/// A service with admission control.
#[derive(Clone)]
pub struct Admission<S> {
    /// The service that handles admitted calls.
    inner: S,
    /// The node's counters.
    load: Arc<AdmissionLoad>,
    /// Bounds of a request before it is decoded.
    bounds: RequestBounds,
    /// Decides who may call what.
    access: Arc<Access>,
    /// Writes calls down.
    audit: Arc<Auditor>,
    /// The namespaces of which refusals are counted by name.
    reported: ReportedNamespaces,
    /// Begins their spans.
    traces: Option<Traces>,
}

impl<S> Admission<S> {
    /// The access control of calls.
    pub fn access(&self) -> &Arc<Access> {
        &self.access
    }

    /// The bounds of a request before it is decoded.
    pub fn bounds(&self) -> RequestBounds {
        self.bounds
    }

    /// The node's counters.
    pub fn load(&self) -> &Arc<AdmissionLoad> {
        &self.load
    }

    /// The traces that begin the spans of calls.
    pub fn traces(&self) -> Option<&Traces> {
        self.traces.as_ref()
    }
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
        let Some(caller) = request.extensions().get::<Caller>().cloned() else {
            let refusal = Refusal::new(Reason::Overloaded, "the call has no connection of this server");
            return refuse(&refusal);
        };
        caller.load.begin();
        let rights = match of_call(request.uri().path()) {
            Needs::Nothing => Ok(None),
            _ => Rights::of(&self.access, &request, &caller).map(Some),
        };
        let traces = self.traces.as_ref().filter(|_| request.extensions().get::<SpanMarker>().is_none());
        let (path, headers, known) = (request.uri().path(), request.headers(), rights.is_ok());
        let span = traces.and_then(|it| it.of_call(System::Grpc, path, headers, known));
        let answer = match wire::check_head(headers) {
            Ok(()) => self.admit(request, caller, rights),
            Err(refusal) => refuse(&refusal),
        };
        match span {
            Some(span) => Box::pin(span.around(answer, Outcome::of_response)),
            None => answer,
        }
    }
}

impl<S> Admission<S>
where
    S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
{
    /// Lets a call in, and has it served. `rights`: those that it needs. `None`: it needs none.
    fn admit(
        &mut self,
        mut request: Request<Body>,
        caller: Caller,
        rights: Result<Option<Rights>, Refusal>,
    ) -> ResponseFuture<S::Error> {
        let rights = match rights {
            Ok(Some(rights)) => Ok(rights),
            Ok(None) => return self.side_call(request, caller, None),
            Err(refusal) => Err(refusal),
        };
        let Some(measured) = MeteredCall::of(&request) else {
            return match rights.and_then(|rights| rights.check_head().map(|()| rights)) {
                Ok(rights) => self.admit_unmeasured(request, caller, rights),
                Err(refusal) => refuse(&refusal),
            };
        };
        let connection = &caller.load;
        let reported = self.reported.clone();
        let charge = Arc::new(AnswerCharge::new(self.load.clone(), connection.clone()));
        let rights = rights.map(Arc::new);
        let admitted = rights.clone().and_then(|rights| {
            rights.check_head()?;
            let call = Call::admit(request.headers(), &self.load, connection, &charge, rights.clone())?;
            Ok((rights, call))
        });
        let (audit, client) = (self.audit.clone(), caller.from());
        let (rights, call) = match admitted {
            Ok(admitted) => admitted,
            Err(refusal) => {
                let (rights, head) = (rights.ok(), request.into_parts().0);
                return Box::pin(async move {
                    let refuse = refuse_by_head(&audit, rights, head, client, refusal);
                    let response = refused::serve(measured.called, reported, refuse).await;
                    measured.record(&response);
                    Ok(answer_bytes::hold(response, charge).await)
                });
            }
        };
        // The service has been asked whether it is ready, so that its clone stays behind.
        let clone = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, clone);
        let bounds = self.bounds;
        request.extensions_mut().insert(caller.principal);
        rights.tell(request.extensions_mut());
        Box::pin(async move {
            let deadline = call.deadline();
            // A change that has begun comes to its end, also if it ends the caller's own rights.
            let may_end = rights.may_end() && !audit.changes(request.uri().path());
            let answered = async {
                // In a box: what waits for it would have it moved at each layer, and it is large.
                let served = Box::pin(serve(inner, request, call, bounds, &rights, &audit, client));
                match until(deadline, may_end.then_some(&*rights), served).await {
                    Ok(response) => response.map(add_details),
                    Err(refusal) => Ok(status::of_call(&refusal).into_http()),
                }
            };
            let answered = refused::serve(measured.called, reported, answered);
            let response = paid_by(rights.payer(), answered).await?;
            measured.record(&response);
            Ok(answer_bytes::hold(response, charge).await)
        })
    }
}

impl<S> Admission<S>
where
    S: Service<Request<Body>, Response = Response<Body>> + 'static,
    S::Future: Send,
    S::Error: Send,
{
    /// Lets in what is neither limited nor measured as a call is, and has it served.
    fn admit_unmeasured(
        &mut self,
        mut request: Request<Body>,
        caller: Caller,
        rights: Rights,
    ) -> ResponseFuture<S::Error> {
        request.extensions_mut().insert(caller.principal.clone());
        rights.tell(request.extensions_mut());
        let (mut lasting, mut body) = (None, std::mem::take(request.body_mut()));
        if rights.may_end() {
            let (rights, until_then) = RightsWatch::new(rights, LOOK_EVERY, body);
            (lasting, body) = (Some(rights), until_then);
        }
        *request.body_mut() = body;
        self.side_call(request, caller, lasting)
    }

    /// Health and reflection: their streams may stay open, so that their number is limited, and they end when
    /// `rights` do.
    fn side_call(
        &mut self,
        request: Request<Body>,
        caller: Caller,
        rights: Option<RightsWatch>,
    ) -> ResponseFuture<S::Error> {
        let permit = match SideCall::begin(&self.load, caller.load) {
            Ok(permit) => permit,
            Err(refusal) => return refuse(&refusal),
        };
        let answer = self.inner.call(request);
        Box::pin(async move { Ok(answer.await?.map(|body| permit.until_the_end_of(body, rights))) })
    }
}

/// Refuses a call of which nothing but the head is there, and notes it if that is for want of a right.
async fn refuse_by_head(
    audit: &Auditor,
    rights: Option<Arc<Rights>>,
    head: Parts,
    client: ClientName,
    refusal: Refusal,
) -> Response<Body> {
    if let Some(rights) = &rights {
        deny(audit, &head, None, rights, client, &refusal).await;
    }
    status::of_call(&refusal).into_http()
}

/// Receives the request, writes the call down if it changes something, and has it served.
async fn serve<S>(
    mut inner: S,
    request: Request<Body>,
    call: Call,
    bounds: RequestBounds,
    rights: &Rights,
    audit: &Arc<Auditor>,
    client: ClientName,
) -> Result<Response<Body>, S::Error>
where
    S: Service<Request<Body>, Response = Response<Body>>,
{
    let (mut head, mut body) = request.into_parts();
    let received = call.request().receive(&mut body, bounds.bytes).await;
    let checked = received.and_then(|bytes| {
        wire::check_message(&bytes)?;
        message_members::check(&bytes, bounds.members)?;
        Ok(bytes)
    });
    if let Ok(bytes) = &checked
        && let Err(refusal) = rights.check(bytes)
    {
        Box::pin(deny(audit, &head, Some(bytes), rights, client, &refusal)).await;
        return Ok(status::of_call(&refusal).into_http());
    }
    match checked.and_then(|bytes| call.start().map(|()| bytes)) {
        Ok(bytes) => {
            let audited = match rights.identity() {
                Some(caller) => audit.begin(&head, &bytes, caller, client).await,
                // A handler that decides by itself serves nothing that is written down.
                None => Ok(None),
            };
            let audited = match audited {
                Ok(audited) => audited,
                Err(refusal) => return Ok(status::of_call(&refusal).into_http()),
            };
            head.extensions.insert(call.clone());
            let request = Request::from_parts(head, Body::new(Full::new(bytes)));
            let Some(audited) = audited else { return inner.call(request).await };
            let response = inner.call(request).await?;
            audited.end(&response, call.left() / 2).await;
            Ok(response)
        }
        Err(refusal) => Ok(status::of_call(&refusal).into_http()),
    }
}

/// Answers that a call is refused.
fn refuse<E: Send + 'static>(refusal: &Refusal) -> ResponseFuture<E> {
    Box::pin(std::future::ready(Ok(status::of_call(refusal).into_http())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        admission::load::{ConnectionLoad, LoadLimits},
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
        let access = Access::open();
        let clock = Arc::new(forebay_types::SystemClock::default());
        // It is asked about no call that it would write down.
        let catalog = Arc::new(forebay_store::SqliteCatalog::new("nowhere"));
        let audit = Auditor::new(catalog, "node1", clock).unwrap();
        let reported = ReportedNamespaces::default();
        let layer = AdmissionLayer { load: load.clone(), bounds, access, audit, reported, traces: None };
        let mut service = layer.layer(inner);
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
