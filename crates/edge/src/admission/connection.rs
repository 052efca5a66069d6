//! Connections, each with its own load counters, which its calls share.

use std::{
    fmt, io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use forebay_types::Refusal;
use futures_util::Stream;
use http::HeaderMap;

use super::{
    load::{AdmissionLoad, ConnectionLoad},
    watch::Watch,
};
use crate::{
    access::{Access, AuthenticatedCaller},
    tls::{AcceptedConnection, GuardedStream, Listener, Principal},
};

/// Accepts connections.
pub struct AdmissionListener {
    /// The bound port.
    listener: Listener,
    /// The node's counters.
    load: Arc<AdmissionLoad>,
}

impl AdmissionListener {
    /// Accepts from a port whose connections `load` counts.
    pub fn new(listener: Listener, load: Arc<AdmissionLoad>) -> Self {
        Self { listener, load }
    }
}

impl Stream for AdmissionListener {
    type Item = io::Result<GuardedStream<Caller, Watch>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let AcceptedConnection { stream, principal, client, lifetime } =
            ready!(self.listener.poll_accept(context));
        let load = Arc::new(ConnectionLoad::new(&self.load.limits, lifetime.place().clone()));
        let watch = Watch::new(load.clone(), self.load.limits.timeouts);
        let caller = Caller { load, principal, client };
        Poll::Ready(Some(Ok(GuardedStream::new(stream, lifetime, caller, watch))))
    }
}

/// Whose calls come over a connection, and what they have taken on.
#[derive(Clone)]
pub struct Caller {
    /// Shared by the calls of the connection.
    pub load: Arc<ConnectionLoad>,
    /// The caller at the other end.
    pub principal: Principal,
    /// Where that is. Behind a proxy that is believed: where the proxy says, without a port (0).
    pub client: SocketAddr,
}

impl Caller {
    /// Where it is, for people.
    pub fn from(&self) -> ClientName {
        ClientName(self.client)
    }

    /// Finds whose a request is. `port`: as metrics name it. With credentials that are accepted, the
    /// connection keeps its place.
    pub fn authenticate(
        &self,
        access: &Access,
        headers: &HeaderMap,
        port: &'static str,
    ) -> Result<AuthenticatedCaller, Refusal> {
        let found = access.authenticate(headers, &self.principal, self.from(), port)?;
        self.load.accept();
        Ok(found)
    }
}

/// Where a client is, for people. It is written where somebody is told, and no call pays for it else.
#[derive(Debug, Clone, Copy)]
pub struct ClientName(SocketAddr);

impl fmt::Display for ClientName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.port() {
            0 => self.0.ip().fmt(f),
            _ => self.0.fmt(f),
        }
    }
}
