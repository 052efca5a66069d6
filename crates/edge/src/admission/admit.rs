//! The layer of admission: limits calls and bytes in memory, checks rights and deadlines, and measures.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use forebay_engine::{ReportedNamespaces, paid_by};
use forebay_types::Refusal;
use http::{Request, Response, request::Parts};
use http_body_util::Full;
use tonic::body::Body;
use tower::Service;

use super::{
    answer_bytes::{self, AnswerCharge},
    arrival::Arrival,
    call::Call,
    connection::{Caller, ClientName},
    deferred::DeferredAnswer,
    details::add_details,
    lasting::{LOOK_EVERY, deny, until},
    load::AdmissionLoad,
    measured::MeteredCall,
    message_members,
    rights::Rights,
    service::{CallService, ResponseFuture, refuse, take_ready},
    side_call::{RightsWatch, SideCall},
    wire,
};
use crate::{
    audit::Auditor,
    rpc::{refused, status},
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

/// Context in which calls are admitted.
pub struct AdmissionContext {
    /// The node's counters, shared with the pages and metrics that show them.
    pub load: Arc<AdmissionLoad>,
    /// Bounds of a request before it is decoded.
    pub bounds: RequestBounds,
    /// The namespaces of which refusals are counted by name.
    pub reported: ReportedNamespaces,
    /// The audit log, which has calls too to which their callers have no right.
    pub audit: Arc<Auditor>,
}

/// A service with admission control.
#[derive(Clone)]
pub struct Admission<S> {
    /// Shared by its clones.
    pub(super) context: Arc<AdmissionContext>,
    /// The service that handles admitted calls.
    pub(super) inner: S,
}

impl<S: CallService> Service<Arrival> for Admission<S> {
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, arrival: Arrival) -> Self::Future {
        match wire::check_head(arrival.request.headers()) {
            Ok(()) => self.admit(arrival),
            Err(refusal) => refuse(&refusal),
        }
    }
}

impl<S: CallService> Admission<S> {
    /// Lets a call in, and has it served.
    fn admit(&mut self, arrival: Arrival) -> ResponseFuture<S::Error> {
        let Arrival { mut request, caller, rights } = arrival;
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
        let context = self.context.clone();
        let charge = Arc::new(AnswerCharge::new(context.load.clone(), connection.clone()));
        let rights = rights.map(Arc::new);
        let admitted = rights.clone().and_then(|rights| {
            rights.check_head()?;
            let call = Call::admit(request.headers(), &context.load, connection, &charge, rights.clone())?;
            Ok((rights, call))
        });
        let client = caller.from();
        let (rights, call) = match admitted {
            Ok(admitted) => admitted,
            Err(refusal) => {
                let (rights, head) = (rights.ok(), request.into_parts().0);
                return Box::pin(async move {
                    let refuse = refuse_by_head(&context.audit, rights, head, client, refusal);
                    let response = refused::serve(measured.called, context.reported.clone(), refuse).await;
                    measured.record(&response);
                    Ok(answer_bytes::hold(response, charge).await)
                });
            }
        };
        let inner = take_ready(&mut self.inner);
        request.extensions_mut().insert(caller.principal);
        rights.tell(request.extensions_mut());
        // A change that has begun comes to its end, also if it ends the caller's own rights.
        let may_end = rights.may_end() && !context.audit.changes(request.uri().path());
        let begun = begin(inner, request, call.clone(), context.clone(), rights.clone(), client);
        let served = Box::pin(serve::<S>(Box::pin(begun)));
        Box::pin(async move {
            let answered = async {
                match until(call.deadline(), may_end.then_some(&*rights), served).await {
                    Ok(response) => response.map(add_details),
                    Err(refusal) => Ok(status::of_call(&refusal).into_http()),
                }
            };
            let answered = refused::serve(measured.called, context.reported.clone(), answered);
            let response = paid_by(rights.payer(), answered).await?;
            // It was in progress until it is answered, whatever its handler has kept of it.
            drop(call);
            measured.record(&response);
            Ok(answer_bytes::hold(response, charge).await)
        })
    }

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
        let permit = match SideCall::begin(&self.context.load, caller.load) {
            Ok(permit) => permit,
            Err(refusal) => return refuse(&refusal),
        };
        let answer = self.inner.call(request);
        Box::pin(async move { Ok(answer.await?.map(|body| permit.until_the_end_of(body, rights))) })
    }
}

/// The handler's answer to come, or one instead of it that refuses the call.
type HandlerAnswer<S> = Result<Pin<Box<<S as Service<Request<Body>>>::Future>>, Response<Body>>;

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

/// Serves a call to its end. Each box is gone before the next one comes: many calls wait for long.
async fn serve<S: CallService>(
    begun: Pin<Box<impl Future<Output = HandlerAnswer<S>>>>,
) -> Result<Response<Body>, S::Error> {
    // A match keeps its value until its end.
    let begun = begun.await;
    let mut response = match begun {
        Ok(answer) => answer.await?,
        Err(refused) => return Ok(refused),
    };
    match DeferredAnswer::take(&mut response) {
        Some(work) => {
            drop(response);
            Ok(work.await)
        }
        None => Ok(response),
    }
}

/// Receives the request, and has it served. An answer instead of the handler's refuses the call.
async fn begin<S: CallService>(
    mut inner: S,
    request: Request<Body>,
    call: Call,
    context: Arc<AdmissionContext>,
    rights: Arc<Rights>,
    client: ClientName,
) -> HandlerAnswer<S> {
    let (mut head, mut body) = request.into_parts();
    let received = call.request().receive(&mut body, context.bounds.bytes).await;
    let checked = received.and_then(|bytes| {
        wire::check_message(&bytes)?;
        message_members::check(&bytes, context.bounds.members)?;
        Ok(bytes)
    });
    if let Ok(bytes) = &checked
        && let Err(refusal) = rights.check(bytes)
    {
        Box::pin(deny(&context.audit, &head, Some(bytes), &rights, client, &refusal)).await;
        return Err(status::of_call(&refusal).into_http());
    }
    match checked.and_then(|bytes| call.start().map(|()| bytes)) {
        Ok(bytes) => {
            head.extensions.insert(call);
            Ok(Box::pin(inner.call(Request::from_parts(head, Body::new(Full::new(bytes))))))
        }
        Err(refusal) => Err(status::of_call(&refusal).into_http()),
    }
}
