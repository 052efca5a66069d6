//! What every request of the HTTP port must pass first: it is for this node, no foreign web page sent it to
//! change something, and who asks for a page may see it. Who makes a call is decided with the call.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use forebay_access::{Needs, of_page};
use forebay_types::{Reason, Refusal};

use super::{
    connect::{self, Failure},
    hosts::Hosts,
    origins::Origins,
};
use crate::{access::Access, connections::Episodes, grpc::Caller};

/// Paths that tell nothing. Supervisors and load balancers ask them by any name.
const PROBES: [&str; 2] = ["/healthz", "/readyz"];

/// Whom requests must be for, and where they may come from.
pub struct Gate {
    /// The names of this node.
    hosts: Hosts,
    /// Origins of which pages may make calls.
    origins: Origins,
    /// Who may see which page.
    access: Arc<Access>,
    /// Refused requests.
    refused: Episodes,
}

impl Gate {
    /// With these names, origins and rights.
    pub fn new(hosts: Hosts, origins: Origins, access: Arc<Access>) -> Self {
        Self { hosts, origins, access, refused: Episodes::default() }
    }

    fn check(&self, request: &Request) -> Result<(), Failure> {
        let path = request.uri().path();
        if !PROBES.contains(&path) {
            self.hosts.check(request.uri(), request.headers()).map_err(Failure::misdirected)?;
        }
        let calls = path.starts_with(connect::PATHS);
        if !self.origins.may_change(request.method(), request.headers(), calls) {
            let message = "a web page of another origin sent this request \
                           (`cors_origins` under [http] lists those that may)";
            return Err(Refusal::new(Reason::NotAllowed, message).into());
        }
        Ok(())
    }

    /// Whether who asks for a page may see it.
    fn permit(&self, request: &Request) -> Result<(), Failure> {
        let path = request.uri().path();
        let needs = of_page(path);
        if needs == Needs::Nothing || path.starts_with(connect::PATHS) {
            return Ok(());
        }
        let caller = request.extensions().get::<Caller>();
        let caller =
            caller.ok_or_else(|| Failure::internal("the request has no connection of this server"))?;
        let who = self.access.authenticate(request.headers(), caller, "http")?;
        Ok(who.permit(needs, "")?)
    }
}

/// Lets a request pass, or answers why not.
pub async fn pass(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    match gate.check(&request) {
        Ok(()) => match gate.permit(&request) {
            Ok(()) => next.run(request).await,
            Err(failure) => failure.answer(None),
        },
        Err(failure) => {
            if gate.refused.begins() {
                let why = failure.message();
                tracing::warn!("an HTTP request was refused: {why}");
            }
            failure.answer(None)
        }
    }
}
