//! Accepts connections, with TLS or without. Handshakes run side by side, so that a slow one holds up nobody.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
    time::{Instant, Sleep, sleep, sleep_until, timeout},
};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig};

use super::{failure, principal::Principal, stream::Stream};
use crate::connections::{ConnectionCap, OpenConnection};

/// Pause after a connection could not be accepted: most often the process is out of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Handshakes under way at a port. Each takes up to some ten KiB.
const HANDSHAKES_MAX: usize = 256;
/// A handshake that has been under way for so long makes room for another one, if there are that many. A
/// client needs a fraction of it.
const DISPLACE_AFTER: Duration = Duration::from_secs(1);

/// The settings of handshakes that begin now.
pub type ConfigSource = Arc<dyn Fn() -> Arc<ServerConfig> + Send + Sync>;

/// A port that accepts connections.
pub struct Listener {
    /// The bound port.
    tcp: TcpListener,
    /// Bounds the connections, with those that have not finished the handshake.
    cap: Arc<ConnectionCap>,
    /// Makes connections secure. `None`: without TLS.
    tls: Option<ConfigSource>,
    /// How long a handshake may take.
    limit: Duration,
    /// Handshakes under way.
    handshakes: JoinSet<Option<Accepted>>,
    /// The same, oldest first, with those that have just ended.
    begun: VecDeque<(Instant, AbortHandle)>,
    /// Runs while nothing is accepted.
    pause: Option<Pin<Box<Sleep>>>,
}

/// A connection.
pub struct Accepted {
    /// Its bytes.
    pub stream: Stream,
    /// Who is at the other end.
    pub principal: Principal,
    /// Where that is.
    pub client: SocketAddr,
    /// Counts it.
    pub open: OpenConnection,
}

impl Listener {
    /// Accepts from a bound port, up to `cap` connections. A handshake may take `limit`.
    pub fn new(
        tcp: TcpListener,
        cap: Arc<ConnectionCap>,
        tls: Option<ConfigSource>,
        limit: Duration,
    ) -> Self {
        let (handshakes, begun) = (JoinSet::new(), VecDeque::new());
        Self { tcp, cap, tls, limit, handshakes, begun, pause: None }
    }

    /// The next connection.
    pub fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<Accepted> {
        loop {
            while let Poll::Ready(Some(ended)) = self.handshakes.poll_join_next(context) {
                if let Ok(Some(accepted)) = ended {
                    return Poll::Ready(accepted);
                }
            }
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(context));
                self.pause = None;
            }
            if !self.has_room() {
                continue;
            }
            let (stream, client) = match ready!(self.tcp.poll_accept(context)) {
                Ok(accepted) => accepted,
                Err(error) => {
                    let port = self.cap.port();
                    tracing::warn!(%error, "cannot accept a connection at the {port} port; retrying");
                    self.pause = Some(Box::pin(sleep(ACCEPT_RETRY_DELAY)));
                    continue;
                }
            };
            // Over the cap it is closed here.
            let Some(open) = self.cap.open() else { continue };
            // Send small responses at once. Without this option the connection still works.
            let _ = stream.set_nodelay(true);
            match &self.tls {
                None => {
                    let (stream, principal) = (Stream::Plain(stream), Principal::Unknown);
                    return Poll::Ready(Accepted { stream, principal, client, open });
                }
                Some(tls) => {
                    let connected = (stream, client);
                    let handshake = handshake(connected, tls(), self.limit, self.cap.port(), open);
                    let handle = self.handshakes.spawn(handshake);
                    self.begun.push_back((Instant::now(), handle));
                }
            }
        }
    }

    /// Whether one more handshake may begin. If not, the oldest one has made room, or a pause is set until it
    /// may.
    fn has_room(&mut self) -> bool {
        if self.begun.len() < HANDSHAKES_MAX {
            return true;
        }
        self.begun.retain(|(_, handshake)| !handshake.is_finished());
        match self.begun.front() {
            Some((began, oldest)) if self.begun.len() >= HANDSHAKES_MAX => {
                let until = *began + DISPLACE_AFTER;
                if until <= Instant::now() {
                    oldest.abort();
                    self.begun.pop_front();
                    failure::count(self.cap.port(), failure::DISPLACED);
                    return true;
                }
                self.pause = Some(Box::pin(sleep_until(until)));
                false
            }
            _ => true,
        }
    }
}

/// Secures a connection. `None`: it failed, and the connection is closed.
async fn handshake(
    (stream, client): (TcpStream, SocketAddr),
    config: Arc<ServerConfig>,
    limit: Duration,
    port: &'static str,
    open: OpenConnection,
) -> Option<Accepted> {
    let (reason, error) = match timeout(limit, TlsAcceptor::from(config).accept(stream)).await {
        Ok(Ok(stream)) => {
            let principal = Principal::of(stream.get_ref().1.peer_certificates());
            return Some(Accepted { stream: Stream::Tls(Box::new(stream)), principal, client, open });
        }
        Ok(Err(error)) => (failure::reason(&error), error.to_string()),
        Err(_) => (failure::TIMEOUT, format!("not done within {limit:?}")),
    };
    failure::count(port, reason);
    tracing::debug!(%client, reason, error, "a TLS handshake failed at the {port} port");
    None
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, path::Path};

    use forebay_testkit::certificates::Authority;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        sync::mpsc,
    };
    use tokio_rustls::{
        TlsConnector,
        rustls::{HandshakeKind, pki_types::ServerName},
    };

    use super::*;
    use crate::tls::{
        ClientAuth,
        server::ServerTls,
        testing::{NOW, client, connect, server_files},
    };

    /// A port, and what it accepts.
    struct Port {
        address: SocketAddr,
        cap: Arc<ConnectionCap>,
        accepted: mpsc::UnboundedReceiver<Accepted>,
    }

    async fn port(folder: &Path, authority: &Authority, auth: ClientAuth, limit: Duration) -> Port {
        let mut files = server_files(folder, &authority.issue(&["localhost"]));
        files.client_ca = Some(authority.write(folder, "ca"));
        files.client_auth = auth;
        let live = ServerTls::load(&files, NOW).unwrap();
        let source: ConfigSource = Arc::new(move || live.current().grpc.clone());
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, cap) = (tcp.local_addr().unwrap(), ConnectionCap::new("grpc", 1_000));
        let mut listener = Listener::new(tcp, cap.clone(), Some(source), limit);
        let (sender, accepted) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while sender.send(poll_fn(|context| listener.poll_accept(context)).await).is_ok() {}
        });
        Port { address, cap, accepted }
    }

    async fn silent(address: SocketAddr, number: usize) -> Vec<TcpStream> {
        let mut streams = Vec::new();
        for _ in 0..number {
            streams.push(TcpStream::connect(address).await.unwrap());
        }
        streams
    }

    /// Waits until the other side has closed the connection.
    async fn closed(stream: &mut TcpStream) {
        // An alert may come first. An error means the same as the end.
        let mut sent = Vec::new();
        let _ = timeout(Duration::from_secs(20), stream.read_to_end(&mut sent)).await.expect("closed");
    }

    #[tokio::test]
    async fn a_silent_client_holds_nobody_up_and_is_cut_off() {
        let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new("authority"));
        let mut port = port(folder.path(), &authority, ClientAuth::Off, Duration::from_secs(1)).await;
        let began = Instant::now();
        let mut silent = silent(port.address, 10).await;
        connect(port.address, &authority, None).await.unwrap();
        drop(port.accepted.recv().await.unwrap());
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
        closed(&mut silent[0]).await;
        assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn the_oldest_of_too_many_silent_clients_make_room() {
        let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new("authority"));
        let mut port = port(folder.path(), &authority, ClientAuth::Off, Duration::from_secs(600)).await;
        let mut silent = silent(port.address, HANDSHAKES_MAX + 20).await;
        let connected = connect(port.address, &authority, None);
        timeout(Duration::from_secs(30), connected).await.expect("there is room").unwrap();
        let _open = port.accepted.recv().await.unwrap();
        closed(&mut silent[0]).await;
        assert!(port.cap.in_use() <= HANDSHAKES_MAX + 1, "{}", port.cap.in_use());
    }

    #[tokio::test]
    async fn a_client_shows_its_certificate_on_each_connection() {
        let authority = Authority::new("authority");
        for (auth, later) in
            [(ClientAuth::Off, HandshakeKind::Resumed), (ClientAuth::Required, HandshakeKind::Full)]
        {
            let folder = tempfile::tempdir().unwrap();
            let mut port = port(folder.path(), &authority, auth, Duration::from_secs(600)).await;
            let client = TlsConnector::from(client(&authority, Some(&authority.issue(&["a"]))));
            let mut kinds = Vec::new();
            for _ in 0..2 {
                let stream = TcpStream::connect(port.address).await.unwrap();
                let name = ServerName::try_from("localhost").unwrap();
                let mut stream = client.connect(name, stream).await.unwrap();
                let mut accepted = port.accepted.recv().await.unwrap();
                // What continues a session comes before the first byte.
                accepted.stream.write_all(b"x").await.unwrap();
                accepted.stream.flush().await.unwrap();
                stream.read_exact(&mut [0]).await.unwrap();
                kinds.push(stream.get_ref().1.handshake_kind().unwrap());
            }
            assert_eq!(kinds, [HandshakeKind::Full, later], "{auth:?}");
        }
    }

    #[tokio::test]
    async fn plain_text_is_not_answered() {
        let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new("authority"));
        let port = port(folder.path(), &authority, ClientAuth::Off, Duration::from_secs(600)).await;
        for text in ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET / HTTP/1.1\r\n\r\n"] {
            let mut stream = TcpStream::connect(port.address).await.unwrap();
            stream.write_all(text.as_bytes()).await.unwrap();
            closed(&mut stream).await;
        }
    }

    #[tokio::test]
    async fn clients_show_certificates_as_configured() {
        let (ours, other) = (Authority::new("ours"), Authority::new("another"));
        let shown = ours.issue(&["a.example", "spiffe://prod/worker"]);
        let foreign = other.issue(&["spiffe://prod/worker"]);
        let named = || Some(Principal::Certificate { name: "spiffe://prod/worker".into() });
        for (auth, none, good, bad) in [
            (ClientAuth::Off, Some(Principal::Unknown), Some(Principal::Unknown), Some(Principal::Unknown)),
            (ClientAuth::Optional, Some(Principal::Unknown), named(), None),
            (ClientAuth::Required, None, named(), None),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let mut port = port(folder.path(), &ours, auth, Duration::from_secs(600)).await;
            for (certificate, expected) in [(None, none), (Some(&shown), good), (Some(&foreign), bad)] {
                let connected = connect(port.address, &ours, certificate).await;
                // Who is refused may learn it only when it reads.
                let learns = async {
                    if let Ok(mut stream) = connected {
                        drop(stream.read(&mut [0]).await);
                    }
                    None
                };
                let principal = tokio::select! {
                    accepted = port.accepted.recv() => accepted.map(|accepted| accepted.principal),
                    refused = learns => refused,
                };
                assert_eq!(principal, expected, "{auth:?}");
            }
        }
    }
}
