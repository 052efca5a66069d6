//! Certificates that are renewed while a node runs.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use forebay_client::{Client, ClientConfig, NewItem};
use tokio::task::JoinSet;

use super::{TlsNode, enqueue};

const EXPIRY: &str = "forebay_certificate_expiry_timestamp_seconds{listener=\"grpc\"}";
const FAILED: &str = "forebay_certificate_renewal_failed{listener=\"grpc\"}";
/// 2100-01-01. Each certificate here ends at another time.
const END: u64 = 4_102_444_800;

/// Enqueues until it is told to stop, over one connection and over a new one each time. No call may fail.
async fn load(config: ClientConfig, stop: Arc<AtomicBool>, calls: Arc<AtomicUsize>) {
    let client = Client::connect(config.clone()).unwrap();
    while !stop.load(Ordering::Relaxed) {
        enqueue(config.clone()).await.unwrap();
        client.enqueue(vec![NewItem::new("t", "x")]).await.unwrap().remove(0).unwrap();
        calls.fetch_add(2, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_renewed_under_load_and_no_call_fails() {
    let secured = TlsNode::start().await;
    let (stop, calls) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut tasks = JoinSet::new();
    for _ in 0..4 {
        tasks.spawn(load(secured.config(), stop.clone(), calls.clone()));
    }
    for round in 1..=5 {
        let issued = secured.authority.issue_valid(&["127.0.0.1"], 1_000, END + round);
        issued.write(secured.folder.path(), "node");
        secured.node.hang_up();
        secured.metric_becomes(EXPIRY, |ends| ends == (END + round) as f64).await;
        let before = calls.load(Ordering::Relaxed);
        while calls.load(Ordering::Relaxed) < before + 16 && !tasks.is_empty() {
            tokio::task::yield_now().await;
        }
    }
    stop.store(true, Ordering::Relaxed);
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    assert_eq!(secured.metric(FAILED).await, 0.0);
    assert_eq!(secured.log().matches("is renewed").count(), 5, "{}", secured.log());
}

#[tokio::test]
async fn what_can_not_be_used_is_kept_out_and_said_once() {
    let secured = TlsNode::start().await;
    let before = secured.metric(EXPIRY).await;
    let other = secured.authority.issue(&["127.0.0.1"]);
    fs::write(secured.path("node.key"), &other.key).unwrap();
    secured.node.hang_up();
    secured.metric_becomes(FAILED, |failed| failed == 1.0).await;
    enqueue(secured.config()).await.unwrap();
    let (_, status) = secured.node.fetch("/status.json").await;
    assert!(status.contains("degraded: tls.key_file: "), "{status}");

    // A second look says nothing more. It has come to its end when the next good pair is in use.
    secured.node.hang_up();
    let ending = secured.authority.issue_valid(&["127.0.0.1"], 1_000, END);
    ending.write(secured.folder.path(), "node");
    secured.node.hang_up();
    secured.metric_becomes(EXPIRY, |ends| ends == END as f64 && ends != before).await;
    assert_eq!(secured.metric(FAILED).await, 0.0);
    enqueue(secured.config()).await.unwrap();
    assert_eq!(secured.log().matches("is not renewed").count(), 1, "{}", secured.log());
}
