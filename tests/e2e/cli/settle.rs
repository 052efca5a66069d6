//! `forebay ack`, `nack` and `extend`

use serde_json::Value;

use super::{Server, bytes};

/// Leases the next item of a topic.
async fn take(server: &Server) -> Value {
    let taken = server.run(&["dequeue", "--topic", "t", "--lease", "10m", "--output", "json"]).await.json();
    taken["items"][0].clone()
}

fn receipt(item: &Value) -> String {
    item["receipt"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_release_counts_no_failure_and_may_replace_the_metadata() {
    let server = Server::start().await;
    server.run(&["enqueue", "--topic", "t", "--max-attempts", "1", "x"]).await.done();
    let first = take(&server).await;
    let released = ["nack", &receipt(&first), "--release", "--metadata", "page 7"];
    server.run(&released).await.done();
    // One failed delivery would have been the last one.
    let second = take(&server).await;
    assert_eq!((second["attempt"].as_u64(), bytes(&second["metadata"])), (Some(2), b"page 7".to_vec()));
    let failed = ["nack", &receipt(&second), "--reason", "bad"];
    server.run(&failed).await.done();
    assert_eq!(take(&server).await, Value::Null);
    let both = server.run(&["nack", "r", "--release", "--dead-letter"]).await.failed(2);
    assert!(both.contains("--dead-letter"), "{both}");
}

#[tokio::test]
async fn a_lease_can_be_extended() {
    let server = Server::start().await;
    server.run(&["enqueue", "--topic", "t", "x"]).await.done();
    let item = take(&server).await;
    let arguments = ["extend", &receipt(&item), "--lease", "2h", "--output", "json"];
    let extended = server.run(&arguments).await.json();
    let end = extended["results"][0]["leaseExpiresAt"].as_str().unwrap();
    assert!(end > item["leaseExpiresAt"].as_str().unwrap(), "{extended}");
    assert_eq!(extended["results"][0]["receipt"], item["receipt"]);
    let table = server.run(&["extend", &receipt(&item), "--time", "iso"]).await.done();
    assert!(table.starts_with("RECEIPT") && table.contains(" 20"), "{table}");
    server.run(&["ack", &receipt(&item)]).await.done();
    let lost = server.run(&["extend", &receipt(&item)]).await.failed(1);
    assert!(lost.contains("LEASE_LOST"), "{lost}");
}

#[tokio::test]
async fn some_of_several_receipts_may_be_done() {
    let server = Server::start().await;
    server.run(&["enqueue", "--topic", "t", "x"]).await.done();
    let item = take(&server).await;
    let partly = server.run(&["ack", "no-receipt", &receipt(&item)]).await;
    assert!(partly.stdout.contains("done"), "{}", partly.stdout);
    assert!(partly.failed(5).contains("INVALID_RECEIPT"));
}
