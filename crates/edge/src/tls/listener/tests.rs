//! How connections begin.

use std::{future::poll_fn, path::Path};

use forebay_testkit::certificates::Authority;
use futures_util::FutureExt as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::mpsc,
    time::Instant,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{HandshakeKind, pki_types::ServerName},
};

use super::*;
use crate::{
    connections::{HANDSHAKES_MAX, PlaceRules},
    tls::{
        ClientAuth, Live, ServerTlsFiles,
        live::{CertificateSource as _, Look},
        preface::PREFACE,
        server::ServerTls,
        testing::{NOW, client, connect, server_files},
    },
};

/// A port, and what it accepts.
struct Port {
    address: SocketAddr,
    places: Arc<Places>,
    files: ServerTlsFiles,
    live: Arc<Live<ServerTls>>,
    accepted: mpsc::UnboundedReceiver<AcceptedConnection>,
}

async fn port(folder: &Path, authority: &Authority, auth: ClientAuth, limit: Duration) -> Port {
    let mut files = server_files(folder, &authority.issue(&["localhost"]));
    files.client_ca = Some(authority.write(folder, "ca"));
    files.client_auth = auth;
    let live = ServerTls::load(&files, NOW).unwrap();
    let source = Source::new(live.clone(), |tls| (tls.grpc.clone(), tls.clients.clone()));
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let rules = PlaceRules { per_address: Some(500), ..PlaceRules::default() };
    let (address, places) = (tcp.local_addr().unwrap(), Places::new("grpc", 1_000, &rules));
    let beginning = HandshakeConfig { tls: Some(source), http2: false, limit };
    let mut listener = Listener::new(tcp, places.clone(), beginning);
    let (sender, accepted) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while sender.send(poll_fn(|context| listener.poll_accept(context)).await).is_ok() {}
    });
    Port { address, places, files, live, accepted }
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
async fn silent_clients_hold_no_handshake_and_stalled_ones_make_room_at_once() {
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new("authority"));
    let mut port = port(folder.path(), &authority, ClientAuth::Off, Duration::from_secs(600)).await;
    let mut stalled = silent(port.address, HANDSHAKES_MAX + 20).await;
    for stream in &mut stalled {
        // A record that never comes to its end.
        stream.write_all(b"\x16\x03\x01\x02\x00").await.unwrap();
    }
    closed(&mut stalled[0]).await;
    let _silent = silent(port.address, 20).await;
    let connected = connect(port.address, &authority, None);
    timeout(Duration::from_secs(30), connected).await.expect("there is room").unwrap();
    let _open = port.accepted.recv().await.unwrap();
    assert!(port.places.in_use() <= HANDSHAKES_MAX + 20 + 1, "{}", port.places.in_use());
}

#[tokio::test]
async fn a_connection_ends_when_its_authority_is_taken_away() {
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new("authority"));
    let mut port = port(folder.path(), &authority, ClientAuth::Required, Duration::from_secs(600)).await;
    let shown = authority.issue(&["a.example"]);
    let _client = connect(port.address, &authority, Some(&shown)).await.unwrap();
    let mut open = port.accepted.recv().await.unwrap();
    open.lifetime.place().reach(Stage::Accepted);
    // Another certificate of the port itself changes nothing for clients.
    authority.issue(&["localhost"]).write(folder.path(), "server");
    assert_eq!(port.live.look(NOW), Look::Renewed);
    let end =
        |open: &mut AcceptedConnection| poll_fn(|context| open.lifetime.poll_end(context)).now_or_never();
    assert_eq!(end(&mut open), None);

    let other = Authority::new("another");
    std::fs::write(port.files.client_ca.as_ref().unwrap(), authority.pem() + &other.pem()).unwrap();
    assert_eq!(port.live.look(NOW), Look::Renewed);
    assert_eq!(end(&mut open), None, "it is still among them");
    std::fs::write(port.files.client_ca.as_ref().unwrap(), other.pem()).unwrap();
    assert_eq!(port.live.look(NOW), Look::Renewed);
    let ended = timeout(Duration::from_secs(20), poll_fn(|context| open.lifetime.poll_end(context))).await;
    assert_eq!(ended.unwrap(), "certificate");
}

#[tokio::test]
async fn a_connection_ends_soon_after_its_certificate() {
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new("authority"));
    let mut port = port(folder.path(), &authority, ClientAuth::Required, Duration::from_secs(600)).await;
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let shown = authority.issue_valid(&["a.example"], 1_000, now + 2);
    let _client = connect(port.address, &authority, Some(&shown)).await.unwrap();
    let mut open = port.accepted.recv().await.unwrap();
    open.lifetime.place().reach(Stage::Accepted);
    let ended = timeout(Duration::from_secs(20), poll_fn(|context| open.lifetime.poll_end(context))).await;
    assert_eq!(ended.unwrap(), "certificate");
    assert!(std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() >= now + 2);
}

#[tokio::test]
async fn a_connection_that_does_not_begin_is_closed_and_so_is_one_too_many() {
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let rules = PlaceRules { per_address: Some(2), ..PlaceRules::default() };
    let (address, places) = (tcp.local_addr().unwrap(), Places::new("peer", 2, &rules));
    let beginning = HandshakeConfig { tls: None, http2: true, limit: Duration::from_secs(2) };
    let mut listener = Listener::new(tcp, places.clone(), beginning);
    let (sender, mut accepted) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while sender.send(poll_fn(|context| listener.poll_accept(context)).await).is_ok() {}
    });
    let mut clients = silent(address, 1).await;
    closed(&mut clients[0]).await;
    let mut known = Vec::new();
    for mut client in silent(address, 2).await {
        client.write_all(PREFACE).await.unwrap();
        let mut open = timeout(Duration::from_secs(20), accepted.recv()).await.unwrap().unwrap();
        open.stream.read_exact(&mut [0; PREFACE.len()]).await.unwrap();
        open.lifetime.place().reach(Stage::Accepted);
        known.push((client, open));
    }
    let mut third = silent(address, 1).await;
    closed(&mut third[0]).await;
    assert_eq!((places.in_use(), places.guests()), (2, 0));
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
            // The ticket that continues a session comes before the first byte.
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
    let named = || Some("spiffe://prod/worker".to_owned());
    let nobody = || Some(String::new());
    for (auth, none, good, bad) in [
        (ClientAuth::Off, nobody(), nobody(), nobody()),
        (ClientAuth::Optional, nobody(), named(), None),
        (ClientAuth::Required, None, named(), None),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut port = port(folder.path(), &ours, auth, Duration::from_secs(600)).await;
        for (certificate, expected) in [(None, none), (Some(&shown), good), (Some(&foreign), bad)] {
            let connected = connect(port.address, &ours, certificate).await;
            // A client that is refused may learn it only when it reads.
            let learns = async {
                if let Ok(mut stream) = connected {
                    drop(stream.read(&mut [0]).await);
                }
                None
            };
            let principal = tokio::select! {
                accepted = port.accepted.recv() => accepted.map(|accepted| match accepted.principal {
                    Principal::Certificate { name, .. } => name.to_string(),
                    Principal::Unknown => String::new(),
                }),
                refused = learns => refused,
            };
            assert_eq!(principal, expected, "{auth:?}");
        }
    }
}
