//! `forebay topics`

use forebay_testkit::servers::free_port;
use serde_json::{Value, json};

use super::Server;

/// Topics in each state.
async fn filled() -> Server {
    let server = Server::start().await;
    for (topic, delay) in [("ready", "0s"), ("leased", "0s"), ("dead", "0s"), ("scheduled", "1h")] {
        server.run(&["enqueue", "--topic", topic, "--delay", delay, "x"]).await.done();
    }
    server.run(&["enqueue", "--topic", "foreign", "--namespace", "other", "x"]).await.done();
    server.run(&["dequeue", "--topic", "leased", "--lease", "1h"]).await.done();
    let taken = server.run(&["dequeue", "--topic", "dead", "--output", "json"]).await.json();
    let receipt = taken["items"][0]["receipt"].as_str().unwrap();
    server.run(&["nack", receipt, "--dead-letter"]).await.done();
    server
}

fn names(topics: &Value) -> Vec<&str> {
    topics["topics"].as_array().unwrap().iter().map(|topic| topic["topic"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn all_topics_are_listed_on_demand() {
    let server = filled().await;
    let active = server.run(&["topics", "--output", "json"]).await.json();
    assert_eq!(names(&active), ["ready"]);

    let http = server.node.http.as_str();
    // The status page may show what was a moment ago.
    let all = server.run(&["topics", "--all", "--http", http, "--output", "json"]).await.json();
    assert_eq!(names(&all), ["dead", "leased", "ready", "scheduled"]);
    assert_eq!(all["incomplete"], false);
    let dead = json!({
        "topic": "dead", "ready_count": 0, "leased_count": 0, "scheduled_count": 0, "dead_count": 1,
    });
    assert_eq!(all["topics"][0], dead);
    let some = ["topics", "--all", "--http", http, "--prefix", "l", "--limit", "1"];
    let table = server.run(&some).await.done();
    assert!(table.lines().count() == 2 && table.contains("leased"), "{table}");
}

#[tokio::test]
async fn a_wrong_http_address_is_named() {
    let server = Server::start().await;
    let nobody = format!("127.0.0.1:{}", free_port().unwrap());
    let stderr = server.run(&["topics", "--all", "--http", &nobody]).await.failed(6);
    assert!(stderr.contains(&nobody) && stderr.contains("--http"), "{stderr}");
    let stderr = server.run(&["topics", "--all", "--http", &server.node.grpc]).await.failed(6);
    assert!(stderr.contains("is it the gRPC port?"), "{stderr}");
}
