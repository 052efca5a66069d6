//! Checks that every request of the HTTP port must pass first: it is for this node, and no foreign web page
//! sent it to change something. The keeper of a page decides who may see it, and the call itself who may make
//! it.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use forebay_edge::{admission::Caller, connections::Episodes};

use super::{
    connect::{self, Failure},
    guard::{self, Keeper, Proxies},
    hosts::Hosts,
    origins::{self, Origins},
};

/// Paths that tell nothing. Supervisors and load balancers ask them by any name.
const PROBES: [&str; 2] = ["/healthz", "/readyz"];

/// Names that requests must be for, and places that they may come from.
pub struct Gate {
    /// The names of this node.
    hosts: Hosts,
    /// Origins of which pages may make calls.
    origins: Origins,
    /// Proxies that say truly where requests come from.
    proxies: Proxies,
    /// Decides who may see which page.
    pub keeper: Arc<Keeper>,
    /// Refused requests.
    refused: Episodes,
}

impl Gate {
    /// With these names, origins, proxies and rights.
    pub fn new(hosts: Hosts, origins: Origins, proxies: Proxies, keeper: Keeper) -> Self {
        Self { hosts, origins, proxies, keeper: Arc::new(keeper), refused: Episodes::default() }
    }

    fn check(&self, request: &Request, calls: bool) -> Result<(), Failure> {
        if !PROBES.contains(&request.uri().path()) {
            self.hosts.check(request.uri(), request.headers()).map_err(Failure::misdirected)?;
        }
        match !calls || self.origins.may_call(request.headers()) {
            true => Ok(()),
            false => Err(origins::foreign().into()),
        }
    }

    /// A request comes from where a proxy that is believed says.
    fn believe(&self, request: &mut Request) {
        let Some(caller) = request.extensions().get::<Caller>() else { return };
        let peer = caller.client.ip();
        let client = self.proxies.client(request.headers(), peer);
        if client != peer.to_canonical()
            && let Some(caller) = request.extensions_mut().get_mut::<Caller>()
        {
            caller.client = SocketAddr::new(client, 0);
        }
    }
}

/// Lets a request pass, or answers why not.
pub async fn pass(State(gate): State<Arc<Gate>>, mut request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let calls = path.starts_with(connect::PATHS);
    let has_place = PROBES.contains(&path)
        || !request.extensions().get::<Caller>().is_some_and(|caller| caller.load.place().is_for_probes());
    let checked = if has_place { gate.check(&request, calls) } else { Err(Failure::crowded()) };
    gate.believe(&mut request);
    match checked {
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
