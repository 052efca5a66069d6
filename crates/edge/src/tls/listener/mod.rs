//! Accepts connections, with TLS or without. Each begins in a task of its own, so that a slow one holds up
//! nobody.

use std::{
    future::poll_fn,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{Sleep, sleep, timeout},
};
use tokio_rustls::TlsAcceptor;

use super::{failure, preface, principal::Principal, source::Source, stream::Stream};
use crate::connections::{Lifetime, Places, Stage};

/// Pause after a connection could not be accepted: most often the process is out of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Connections that are accepted in a row. Then those that are there have their turn: else a rush of new ones
/// takes the place of one whose request has come already, before anybody has looked.
const ACCEPTED_IN_A_ROW: u32 = 16;

/// How connections of a port begin.
#[derive(Clone)]
pub struct HandshakeConfig {
    /// Makes them secure. `None`: without TLS.
    pub tls: Option<Source>,
    /// They speak HTTP/2, and begin with its preface.
    pub http2: bool,
    /// How long a handshake may take, and as long again until a credential must be accepted.
    pub limit: Duration,
}

/// A port that accepts connections.
pub struct Listener {
    /// The bound port.
    tcp: TcpListener,
    /// Its places, which those have too that have not begun.
    places: Arc<Places>,
    /// How they begin.
    beginning: HandshakeConfig,
    /// Connections that have not begun.
    begun: JoinSet<Option<AcceptedConnection>>,
    /// Runs while nothing is accepted.
    pause: Option<Pin<Box<Sleep>>>,
    /// Accepted since others had their turn.
    in_a_row: u32,
}

/// A connection.
pub struct AcceptedConnection {
    /// Its bytes.
    pub stream: Stream,
    /// The name of the other end.
    pub principal: Principal,
    /// The address of that.
    pub client: SocketAddr,
    /// Holds its place, and tells when it ends.
    pub lifetime: Lifetime,
}

impl Listener {
    /// Accepts from a bound port.
    pub fn new(tcp: TcpListener, places: Arc<Places>, beginning: HandshakeConfig) -> Self {
        Self { tcp, places, beginning, begun: JoinSet::new(), pause: None, in_a_row: 0 }
    }

    /// The next connection.
    pub fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<AcceptedConnection> {
        loop {
            while let Poll::Ready(Some(ended)) = self.begun.poll_join_next(context) {
                if let Ok(Some(accepted)) = ended {
                    return Poll::Ready(accepted);
                }
            }
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(context));
                self.pause = None;
            }
            if self.in_a_row >= ACCEPTED_IN_A_ROW {
                self.in_a_row = 0;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            let Poll::Ready(connected) = self.tcp.poll_accept(context) else {
                self.in_a_row = 0;
                return Poll::Pending;
            };
            self.in_a_row += 1;
            let (stream, client) = match connected {
                Ok(accepted) => accepted,
                Err(error) => {
                    let port = self.places.port();
                    tracing::warn!(%error, "cannot accept a connection at the {port} port; retrying");
                    self.pause = Some(Box::pin(sleep(ACCEPT_RETRY_DELAY)));
                    continue;
                }
            };
            // Without a place it is closed here.
            let Some((place, displaced)) = self.places.enter(client.ip()) else { continue };
            let lifetime = Lifetime::new(Arc::new(place), displaced);
            // Send small responses at once. Without this option the connection still works.
            let _ = stream.set_nodelay(true);
            if self.beginning.tls.is_none() && !self.beginning.http2 {
                let accepted = accepted(Stream::plain(stream), client, lifetime, &self.beginning);
                return Poll::Ready(accepted);
            }
            self.begun.spawn(begin(stream, client, self.beginning.clone(), lifetime));
        }
    }
}

/// Begins a connection, unless it makes room before. `None`: it is closed.
async fn begin(
    stream: TcpStream,
    client: SocketAddr,
    beginning: HandshakeConfig,
    mut lifetime: Lifetime,
) -> Option<AcceptedConnection> {
    let place = lifetime.place().clone();
    let secured = async {
        // A client that says nothing costs no handshake.
        stream.peek(&mut [0]).await.ok().filter(|bytes| *bytes > 0)?;
        match &beginning.tls {
            None => Some(Stream::plain(stream)),
            Some(source) => {
                place.reach(Stage::Handshake);
                secure(stream, client, source, place.port()).await
            }
        }
    };
    let limited = timeout(beginning.limit, secured);
    let stream = tokio::select! {
        biased;
        _ = poll_fn(|context| lifetime.poll_end(context)) => {
            if beginning.tls.is_some() && place.has_reached(Stage::Handshake) {
                failure::count(place.port(), failure::DISPLACED);
            }
            return None;
        }
        stream = limited => stream,
    };
    let Ok(stream) = stream else {
        late(&beginning, client, place.port());
        return None;
    };
    place.reach(Stage::Begun);
    let mut accepted = accepted(stream?, client, lifetime, &beginning);
    if !beginning.http2 {
        return Some(accepted);
    }
    let begun = tokio::select! {
        biased;
        _ = poll_fn(|context| accepted.lifetime.poll_end(context)) => false,
        begun = preface::read(&mut accepted.stream, place.port()) => begun,
    };
    begun.then_some(accepted)
}

/// A connection that is secured, if it is to be. From now on it must show a credential.
fn accepted(
    stream: Stream,
    client: SocketAddr,
    mut lifetime: Lifetime,
    beginning: &HandshakeConfig,
) -> AcceptedConnection {
    lifetime.begin(beginning.limit);
    let mut principal = Principal::Unknown;
    if let Some(chain) = stream.certificates() {
        principal = Principal::of(chain);
        if let Some(source) = &beginning.tls {
            let chain = chain.iter().map(|certificate| certificate.clone().into_owned()).collect();
            lifetime.show(Box::pin(source.clone().until_refused(chain)));
        }
    }
    AcceptedConnection { stream, principal, client, lifetime }
}

/// Secures a connection. `None`: it failed.
async fn secure(
    stream: TcpStream,
    client: SocketAddr,
    source: &Source,
    port: &'static str,
) -> Option<Stream> {
    match TlsAcceptor::from(source.config()).accept(stream).await {
        Ok(stream) => Some(Stream::tls(stream)),
        Err(error) => {
            let reason = failure::reason(&error);
            failure::count(port, reason);
            tracing::debug!(%client, reason, %error, "a TLS handshake failed at the {port} port");
            None
        }
    }
}

/// Nothing has come in time, or no handshake was done.
fn late(beginning: &HandshakeConfig, client: SocketAddr, port: &'static str) {
    let limit = beginning.limit;
    match beginning.tls {
        Some(_) => failure::count(port, failure::TIMEOUT),
        None => crate::connections::count_closed(port, "handshake"),
    }
    tracing::debug!(%client, "a connection at the {port} port has not begun within {limit:?}");
}

#[cfg(test)]
mod tests;
