//! Connections of which a client makes no use.

use std::time::Duration;

use bytes::Bytes;
use forebay_proto::v1::{EnqueueRequest, queue_service_client::QueueServiceClient};
use futures_util::future::join_all;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, timeout},
};
use tonic::Code;

use super::{
    Wire, asked,
    http2::{self, framed},
    item,
};

impl Wire {
    /// How many items of a topic are ready now.
    async fn take_now(&self, topic: &str) -> usize {
        self.client().dequeue(asked(topic, 10)).await.unwrap().into_inner().items.len()
    }
}

/// Connections that send nothing.
async fn silent(address: &str, number: usize) -> Vec<TcpStream> {
    join_all((0..number).map(async |_| TcpStream::connect(address).await.unwrap())).await
}

/// Waits until the server has closed all of them.
async fn closed(streams: Vec<TcpStream>) {
    join_all(streams.into_iter().map(async |mut stream| {
        // First come the server's settings. An error means the same as the end: the connection is over.
        let _ = stream.read_to_end(&mut Vec::new()).await;
    }))
    .await;
}

#[tokio::test]
async fn silent_connections_leave_descriptors_for_everything_else() {
    let wire = Wire::with_descriptors("handshake_timeout_ms = 5000\n", 256).await;
    // This client is connected before the others.
    wire.stored(vec![item("t")]).await;
    let began = Instant::now();
    let quiet = silent(&wire.node.grpc, 400).await;
    let quiet_http = silent(&wire.node.http, 400).await;
    // An address has a part of each port, and makes room for itself.

    // The bounds are reached, and the databases, this client and the runtime go on.
    for _ in 0..20 {
        wire.stored(vec![item("t"); 10]).await;
        assert_eq!(wire.take("t", 10).await.len(), 10);
    }
    assert!(began.elapsed() < Duration::from_secs(5), "within the time-out: {:?}", began.elapsed());

    // Silent connections are closed after the time-out. Then everybody can connect again.
    timeout(Duration::from_secs(20), closed(quiet)).await.expect("closed");
    timeout(Duration::from_secs(20), closed(quiet_http)).await.expect("closed");
    assert_eq!(wire.node.get("/readyz").await, 200);
    let mut other = QueueServiceClient::new(wire.node.channel());
    assert_eq!(other.dequeue(asked("t", 1)).await.unwrap().into_inner().items.len(), 1);
    for (port, reason, least) in [
        ("grpc", "address", 300.0),
        ("http", "address", 300.0),
        ("grpc", "handshake", 10.0),
        ("http", "handshake", 5.0),
    ] {
        let name = format!("forebay_connections_closed_total{{port=\"{port}\",reason=\"{reason}\"}}");
        assert!(wire.metric(&name).await >= least, "{name}");
    }
    let log = std::fs::read_to_string(wire.folder.path().join("log")).unwrap();
    assert_eq!(log.matches("without a credential made room").count(), 2, "once a port:\n{log}");
}

#[tokio::test]
async fn operators_reach_a_node_whose_grpc_port_is_full() {
    let wire = Wire::with("grpc_connections = 10\nhandshake_timeout_ms = 60000\n").await;
    let quiet = silent(&wire.node.grpc, 50).await;
    wire.wait_for_metric("forebay_connections{port=\"grpc\"}", |open| open == 8.0).await;
    assert_eq!(wire.node.get("/readyz").await, 200);
    assert_eq!(wire.node.get("/").await, 200);
    drop(quiet);
    wire.wait_for_metric("forebay_connections{port=\"grpc\"}", |open| open == 0.0).await;
    wire.stored(vec![item("t")]).await;
}

#[tokio::test]
async fn a_flood_of_silent_connections_keeps_nobody_out() {
    let wire = Wire::with("grpc_connections = 40\nhttp_connections = 40\n").await;
    for round in 0..3 {
        let _grpc = silent(&wire.node.grpc, 100).await;
        let _http = silent(&wire.node.http, 100).await;
        // New connections of the same address.
        assert_eq!(wire.node.get("/healthz").await, 200, "{round}");
        assert_eq!(wire.node.get("/").await, 200, "{round}");
        let mut other = QueueServiceClient::new(wire.node.channel());
        other.dequeue(asked("t", 1)).await.unwrap();
    }
}

#[tokio::test]
async fn probes_have_places_of_their_own() {
    let wire = Wire::with("http_connections = 24\n").await;
    let mut open = Vec::new();
    for _ in 0..24 {
        let mut stream = TcpStream::connect(&wire.node.http).await.unwrap();
        stream.write_all(b"GET /status.json HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        assert!(stream.read(&mut [0; 64]).await.unwrap() > 0, "a page was served: it keeps its place");
        open.push(stream);
    }
    for _ in 0..30 {
        assert_eq!(wire.node.get("/healthz").await, 200);
        assert_eq!(wire.node.get("/readyz").await, 200);
    }
    assert_eq!(wire.node.get("/status.json").await, 429);
    open.pop();
    let began = Instant::now();
    while wire.node.get("/status.json").await != 200 {
        assert!(began.elapsed() < Duration::from_secs(5), "its place is free again");
    }
}

#[tokio::test]
async fn a_client_of_http_1_is_told_that_this_is_the_grpc_port() {
    let wire = Wire::start().await;
    let mut stream = TcpStream::connect(&wire.node.grpc).await.unwrap();
    stream.write_all(b"POST /forebay.v1.QueueService/Enqueue HTTP/1.1\r\nHost: x\r\n\r\n{}").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 505 ") && answer.contains("This is the gRPC port"), "{answer}");
}

#[tokio::test]
async fn a_web_page_can_make_no_call_at_the_grpc_port() {
    let wire = Wire::start().await;
    let request = framed(&EnqueueRequest {
        namespace: super::NAMESPACE.to_owned(),
        items: vec![item("csrf")],
        ..EnqueueRequest::default()
    });
    for (method, headers, status) in http2::HEADS {
        let mut connection = http2::Connection::open(&wire.node.grpc, 1 << 16).await;
        let answer = connection.ask(method, "QueueService/Enqueue", headers, request.clone()).await;
        assert_eq!(answer.status().as_u16(), status, "{method} {headers:?}");
        let stored = wire.take_now("csrf").await;
        assert_eq!(stored, usize::from(status == 200), "{method} {headers:?}");
    }
}

#[tokio::test]
async fn what_is_malformed_in_a_call_is_refused() {
    let wire = Wire::start().await;
    let one = framed(&asked("t", 1));
    let refused = async |header: Option<(&str, &str)>, body: Bytes| {
        let mut connection = http2::Connection::open(&wire.node.grpc, 1 << 16).await;
        let headers = [Some(("content-type", "application/grpc")), header].into_iter().flatten();
        let headers: Vec<_> = headers.collect();
        let answer = connection.ask("POST", "QueueService/Dequeue", &headers, body).await;
        http2::refusal(answer.headers()).map(|status| (status.code(), status.message().to_owned()))
    };
    assert_eq!(refused(None, one.clone()).await, None);
    for timeout in ["-1m", "xyz", "123456789S"] {
        let (code, message) = refused(Some(("grpc-timeout", timeout)), one.clone()).await.unwrap();
        assert!(code == Code::InvalidArgument && message.contains("grpc-timeout"), "{code:?} {message}");
    }
    let (code, message) = refused(Some(("x-data-bin", "*")), one.clone()).await.unwrap();
    assert!(code == Code::InvalidArgument && message.contains("x-data-bin"), "{code:?} {message}");
    let (code, message) = refused(None, [&one[..], &one].concat().into()).await.unwrap();
    assert!(code == Code::InvalidArgument && message.contains("more than one message"), "{code:?} {message}");
}

#[tokio::test]
async fn a_client_that_does_not_read_is_disconnected() {
    let wire = Wire::with("unread_timeout_ms = 1000\n").await;
    wire.stored(vec![item("t")]).await;
    let mut deaf = http2::Connection::open(&wire.node.grpc, 0).await;
    let answer = deaf.call("Dequeue", &asked("t", 1)).await;
    assert!(http2::refusal(answer.headers()).is_none());
    timeout(Duration::from_secs(20), deaf.closed()).await.expect("closed");
    let name = "forebay_connections_closed_total{port=\"grpc\",reason=\"unread\"}";
    assert_eq!(wire.metric(name).await, 1.0);
    wire.wait_for_metric("forebay_memory_bytes{budget=\"unsent\"}", |bytes| bytes == 0.0).await;
}
