//! Bounds of a call over HTTP: its bytes, unpacked too, and those of its answer.

use std::{io::Write as _, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use flate2::{Compression, write::GzEncoder};
use forebay_proto::v1::{DequeueRequest, EnqueueItem};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::Instant,
};

use super::{
    NAMESPACE, Wire, asked,
    http1::{Answer, Request},
    item,
    json::one,
};

#[tokio::test]
async fn a_request_that_is_too_large_is_told_so() {
    let wire = Wire::start().await;
    // The whole of it is sent before the answer is read.
    let large = format!("{{\"x\": \"{}\"}}", "x".repeat(7 << 20));
    let unread = Request::post("Enqueue", "text/plain", large.clone());
    wire.http(unread).await.failure(415, "invalid_argument");
    let document =
        wire.http(Request::post("Enqueue", "application/json", large)).await.failure(400, "invalid_argument");
    assert_eq!(document["details"][0]["debug"]["reason"], "TOO_LARGE");
    assert_eq!(wire.status().await["request_bytes"], 0);
}

#[tokio::test]
async fn a_gzip_bomb_is_stopped_while_it_is_unpacked() {
    let wire = Wire::start().await;
    let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
    for _ in 0..512 {
        bomb.write_all(&[b' '; 1 << 20]).unwrap();
    }
    let bomb = bomb.finish().unwrap();
    assert!(bomb.len() < 4 << 20, "512 MiB in {} bytes", bomb.len());
    let before = wire.node.peak_bytes();
    let request = Request::post("Enqueue", "application/json", bomb).with("Content-Encoding", "gzip");
    let document = wire.http(request).await.failure(400, "invalid_argument");
    assert_eq!(document["details"][0]["debug"]["reason"], "TOO_LARGE", "{document}");
    let grown = wire.node.peak_bytes().saturating_sub(before);
    assert!(grown < 48 << 20, "{} MiB more", grown >> 20);
    assert_eq!(wire.status().await["request_bytes"], 0);
}

/// Budgets of which one request takes half.
const SMALL: &str = "body_timeout_ms = 20000\n[limits]\nrequest_bytes = 1048576\n\
                     [memory]\nrequest_bytes = 2097152\nadmit_tenant_bytes = 1048576\n";

#[tokio::test]
async fn requests_of_all_connections_share_the_node_with_grpc() {
    let wire = Wire::with(SMALL).await;
    let payload = BASE64_STANDARD.encode(vec![1; 190 << 10]);
    let items = vec![json!({"topic": "t", "payload": payload}); 4];
    let request = Request::call("Enqueue", &json!({"namespace": NAMESPACE, "items": items}));
    let whole = request.encoded(&wire.node.http);
    // Two requests that never end hold most of the node's bytes.
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(&wire.node.http).await.unwrap();
        stream.write_all(&whole[..whole.len() - 1]).await.unwrap();
        held.push(stream);
    }
    wire.wait_for("bytes", |status| status["request_bytes"].as_u64() > Some(1_900_000)).await;
    let document = wire.http(request).await.failure(429, "resource_exhausted");
    let message = document["message"].as_str().unwrap();
    assert!(message.contains("memory.request_bytes"), "{message}");
    // Callers that take little are served, whichever way they come.
    wire.json("Enqueue", one("small")).await.message();
    wire.stored(vec![item("t")]).await;
    drop(held);
    wire.wait_for("bytes", |status| status["request_bytes"] == 0).await;
}

#[tokio::test]
async fn a_request_that_stops_arriving_is_ended() {
    let wire = Wire::with("body_timeout_ms = 1000\n").await;
    let whole = Request::call("Enqueue", &one("p")).encoded(&wire.node.http);
    let began = Instant::now();
    let mut stream = TcpStream::connect(&wire.node.http).await.unwrap();
    stream.write_all(&whole[..whole.len() - 1]).await.unwrap();
    let document = Answer::read(stream).await.failure(504, "deadline_exceeded");
    assert!(document["message"].as_str().unwrap().contains("node.body_timeout_ms"), "{document}");
    assert!(began.elapsed() >= Duration::from_secs(1));
    let began = Instant::now();
    let timed = Request::call("Enqueue", &one("p")).with("Connect-Timeout-Ms", "200");
    let whole = timed.encoded(&wire.node.http);
    let mut stream = TcpStream::connect(&wire.node.http).await.unwrap();
    stream.write_all(&whole[..whole.len() - 1]).await.unwrap();
    let document = Answer::read(stream).await.failure(504, "deadline_exceeded");
    assert!(document["message"].as_str().unwrap().contains("the deadline passed"), "{document}");
    assert!(began.elapsed() >= Duration::from_millis(200));
}

#[tokio::test]
async fn an_answer_counts_until_it_is_read() {
    let wire =
        Wire::with("[memory]\nunsent_bytes = 33554432\nunsent_bytes_per_connection = 16777216\n").await;
    for topic in ["t", "u"] {
        for _ in 0..7 {
            wire.stored(vec![EnqueueItem { payload: vec![1; 256 << 10].into(), ..item(topic) }; 8]).await;
        }
    }
    let dequeue = json!({
        "namespace": NAMESPACE, "demands": [{"topic": "t", "maxItems": 56}], "maxBytes": 15 << 20,
    });
    // 14 MiB of items are 19 MiB of JSON, of which the sockets take a part.
    let mut deaf = TcpStream::connect(&wire.node.http).await.unwrap();
    deaf.write_all(&Request::call("Dequeue", &dequeue).encoded(&wire.node.http)).await.unwrap();
    wire.wait_for_metric("forebay_memory_bytes{budget=\"unsent\"}", |bytes| (19e6..21e6).contains(&bytes))
        .await;
    let request = DequeueRequest { max_bytes: 15 << 20, ..asked("u", 56) };
    let status = wire.client().dequeue(request).await.map(|_| "items").unwrap_err();
    assert!(status.message().contains("memory.unsent_bytes"), "gRPC has the same budget: {status:?}");
    // Callers that ask for little are served.
    wire.json("Enqueue", one("small")).await.message();

    let items = Answer::read(deaf).await.message()["items"].clone();
    assert_eq!(items.as_array().unwrap().len(), 56);
    wire.wait_for_metric("forebay_memory_bytes{budget=\"unsent\"}", |bytes| bytes == 0.0).await;
    let left = wire.take_one("u").await;
    assert_eq!(left.payload.len(), 256 << 10, "what was leased for a refused answer is ready again");
}

#[tokio::test]
async fn calls_leave_connections_for_operators() {
    let wire = Wire::with("http_connections = 24\nconnections_per_address = 24\n").await;
    let poll = json!({"namespace": NAMESPACE, "demands": [{"topic": "t", "maxItems": 1}], "wait": "20s"});
    let mut open = Vec::new();
    for _ in 0..12 {
        let mut stream = TcpStream::connect(&wire.node.http).await.unwrap();
        stream.write_all(&Request::call("Dequeue", &poll).encoded(&wire.node.http)).await.unwrap();
        open.push(stream);
    }
    wire.wait_for_polls(12).await;
    for _ in 0..9 {
        // Connections that show nothing do not count.
        let mut stream = TcpStream::connect(&wire.node.http).await.unwrap();
        stream.write_all(b"GET /status.json HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        assert!(stream.read(&mut [0; 64]).await.unwrap() > 0);
        open.push(stream);
    }
    let refused = wire.json("Enqueue", one("p")).await;
    let document = refused.failure(429, "resource_exhausted");
    assert!(document["message"].as_str().unwrap().contains("node.http_connections"), "{document}");
    assert_eq!(refused.header("connection"), "close");
    assert_eq!(wire.node.get("/readyz").await, 200);
    open.truncate(18);
    // With the one that asks.
    wire.wait_for_metric("forebay_connections{port=\"http\"}", |open| open <= 19.0).await;
    wire.json("Enqueue", one("p")).await.message();
}

#[tokio::test]
async fn a_long_poll_ends_with_its_connection() {
    let wire = Wire::start().await;
    let poll = json!({"namespace": NAMESPACE, "demands": [{"topic": "t", "maxItems": 1}], "wait": "20s"});
    let mut stream = TcpStream::connect(&wire.node.http).await.unwrap();
    stream.write_all(&Request::call("Dequeue", &poll).encoded(&wire.node.http)).await.unwrap();
    wire.wait_for_polls(1).await;
    drop(stream);
    wire.wait_for_polls(0).await;
    wire.stored(vec![item("t")]).await;
    assert_eq!(wire.take_one("t").await.attempt, 1);
}
