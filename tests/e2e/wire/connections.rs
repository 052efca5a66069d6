//! Connections of which a client makes no use.

use std::time::Duration;

use forebay_proto::v1::queue_service_client::QueueServiceClient;
use futures_util::future::join_all;
use tokio::{
    io::AsyncReadExt as _,
    net::TcpStream,
    time::{Instant, timeout},
};

use super::{Wire, asked, http2, item};

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
    let refused = "forebay_connections_refused_total{port=\"grpc\"}";

    // The caps are reached, and the databases, this client and the runtime go on.
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
    assert!(wire.metric(refused).await >= 200.0);
    for port in ["grpc", "http"] {
        let name = format!("forebay_connections_closed_total{{port=\"{port}\",reason=\"handshake\"}}");
        assert!(wire.metric(&name).await >= 10.0, "{port}");
    }
    let log = std::fs::read_to_string(wire.folder.path().join("log")).unwrap();
    assert_eq!(log.matches("too many connections").count(), 2, "once a port:\n{log}");
}

#[tokio::test]
async fn operators_reach_a_node_whose_grpc_port_is_full() {
    let wire = Wire::with("grpc_connections = 10\nhandshake_timeout_ms = 60000\n").await;
    let quiet = silent(&wire.node.grpc, 50).await;
    wire.wait_for_metric("forebay_connections{port=\"grpc\"}", |open| open == 10.0).await;
    assert_eq!(wire.node.get("/readyz").await, 200);
    assert_eq!(wire.node.get("/").await, 200);
    drop(quiet);
    wire.wait_for_metric("forebay_connections{port=\"grpc\"}", |open| open == 0.0).await;
    wire.stored(vec![item("t")]).await;
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
