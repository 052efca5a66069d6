//! What every request of the HTTP port must pass first: it is for this node, and no foreign web page sent it
//! to change something. Who may see a page is decided by its keeper, who makes a call with the call.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};

use super::{
    connect::{self, Failure},
    guard::{self, Keeper},
    hosts::Hosts,
    origins::{self, Origins},
};
use crate::connections::Episodes;

/// Paths that tell nothing. Supervisors and load balancers ask them by any name.
const PROBES: [&str; 2] = ["/healthz", "/readyz"];

/// Whom requests must be for, and where they may come from.
pub struct Gate {
    /// The names of this node.
    hosts: Hosts,
    /// Origins of which pages may make calls.
    origins: Origins,
    /// Who may see which page.
    pub keeper: Arc<Keeper>,
    /// Refused requests.
    refused: Episodes,
}

impl Gate {
    /// With these names, origins and rights.
    pub fn new(hosts: Hosts, origins: Origins, keeper: Keeper) -> Self {
        Self { hosts, origins, keeper: Arc::new(keeper), refused: Episodes::default() }
    }

    fn check(&self, request: &Request, calls: bool) -> Result<(), Failure> {
        if !PROBES.contains(&request.uri().path()) {
            self.hosts.check(request.uri(), request.headers()).map_err(Failure::misdirected)?;
        }
        match !calls || self.origins.may_change(request.method(), request.headers(), true) {
            true => Ok(()),
            false => Err(origins::foreign().into()),
        }
    }
}

/// Lets a request pass, or answers why not.
pub async fn pass(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    let calls = request.uri().path().starts_with(connect::PATHS);
    match gate.check(&request, calls) {
        Ok(()) if calls => next.run(request).await,
        Ok(()) => guard::pass(&gate.keeper, request, next).await,
        Err(failure) => {
            if gate.refused.begins() {
                let why = failure.message();
                tracing::warn!("an HTTP request was refused: {why}");
            }
            let mut response = failure.answer(None);
            if !calls {
                guard::protect(response.headers_mut(), gate.keeper.is_secure());
            }
            response
        }
    }
}
