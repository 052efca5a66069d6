//! Strangers, who show no credential, take little and keep nobody out.

use std::time::Duration;

use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tonic::Code;
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

use super::{GuardedNode, Outcome, file, record, token};
use crate::wire::{http1::Request, http2};

const LIMITS: &str = "grpc_connections = 40\nhandshake_timeout_ms = 4000\n";

#[tokio::test]
async fn a_connection_without_a_credential_has_seconds_and_four_streams_of_health() {
    let admin = token(1);
    let guarded = GuardedNode::start_with(&file(&[record(&admin, &["*:all"])]), LIMITS).await;
    let watch = async || {
        let mut health = HealthClient::new(guarded.node.channel());
        let mut streams = Vec::new();
        for _ in 0..4 {
            streams.push(health.watch(HealthCheckRequest::default()).await.unwrap().into_inner());
        }
        (health, streams)
    };
    let (mut health, mut streams) = watch().await;
    let fifth = health.watch(HealthCheckRequest::default()).await.unwrap_err();
    assert_eq!(fifth.code(), Code::ResourceExhausted, "{fifth:?}");
    assert!(fifth.message().contains("where no credential was accepted yet"), "{fifth:?}");

    // More of them than the port has places keep nobody out.
    let mut others = Vec::new();
    for _ in 0..50 {
        others.push(watch().await);
    }
    let shown = format!("Bearer {}", admin.reveal());
    let path = "/forebay.v1.QueueService/GetActiveTopics";
    let channel = guarded.node.channel();
    assert_eq!(guarded.grpc(channel.clone(), path, "a", &[&shown]).await, Outcome::Passed);

    // Their time ends, that of whoever has shown a credential does not.
    let ends = async {
        while let Ok(Some(_)) = streams[0].message().await {}
        for (_, streams) in &mut others {
            while let Ok(Some(_)) = streams[0].message().await {}
        }
    };
    timeout(Duration::from_secs(20), ends).await.expect("all are closed");
    let mut health = HealthClient::new(channel.clone());
    let mut kept = Vec::new();
    for _ in 0..20 {
        kept.push(health.watch(HealthCheckRequest::default()).await.unwrap());
    }
    assert_eq!(guarded.grpc(channel, path, "a", &[&shown]).await, Outcome::Passed);
}

#[tokio::test]
async fn a_refused_credential_is_none() {
    let guarded = GuardedNode::start_with(&file(&[]), "handshake_timeout_ms = 2000\n").await;
    let mut connection = http2::Connection::open(&guarded.node.grpc, 1 << 16).await;
    let shown = [("content-type", "application/grpc"), ("authorization", "Bearer nonsense")];
    let answer = connection.ask("POST", "QueueService/Ack", &shown, bytes::Bytes::new()).await;
    assert_eq!(http2::refusal(answer.headers()).unwrap().code(), Code::Unauthenticated);
    timeout(Duration::from_secs(20), connection.closed()).await.expect("closed");
    let mut stream = TcpStream::connect(&guarded.node.http).await.unwrap();
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer);
    timeout(Duration::from_secs(20), read).await.expect("closed").unwrap();
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
}

#[tokio::test]
async fn an_audit_record_has_the_address_that_a_trusted_proxy_names() {
    let admin = token(1);
    let proxies = "[http]\ntrusted_proxies = [\"127.0.0.1\"]\n";
    let guarded = GuardedNode::start_with(&file(&[record(&admin, &["*:all"])]), proxies).await;
    let message = json!({"namespace": "a", "topic": "t", "sides": ["SIDE_ENQUEUE"]});
    let request = Request::call("/forebay.v1.AdminService/PauseTopic", &message)
        .with("Authorization", &format!("Bearer {}", admin.reveal()))
        .with("X-Forwarded-For", "192.0.2.9");
    request.send(&guarded.node.http).await;
    let log = std::fs::read_to_string(guarded.folder.path().join("log")).unwrap();
    let line = log.lines().find(|text| text.contains("PauseTopic")).unwrap_or_else(|| panic!("{log}"));
    assert!(line.contains("192.0.2.9") && !line.contains("127.0.0.1"), "{line}");
}
