//! `forebay topics` and `forebay topic`

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
async fn topics_in_any_state_are_listed() {
    let server = filled().await;
    let active = server.run(&["topics", "--output", "json"]).await.json();
    assert_eq!(names(&active), ["ready"]);

    let mut all = server.run(&["topic", "list", "--output", "json"]).await.json();
    assert_eq!(names(&all), ["dead", "leased", "ready", "scheduled"]);
    assert_eq!(all["incompleteShards"], json!([]));
    let dead = json!({
        "namespace": "default", "topic": "dead", "readyCount": "0", "leasedCount": "0", "scheduledCount": "0",
        "deadCount": "1", "waitingCalls": "0", "pauses": [],
        "settingsVersion": "0", "recentReady": [],
    });
    // Rates and the time of the first item differ from run to run.
    let first = all["topics"][0].as_object_mut().unwrap();
    let (counts, rates) = (first.remove("counts").unwrap(), first.remove("rates").unwrap());
    assert_eq!((&counts["deadLettered"], &rates["window"]), (&json!("1"), &json!("10s")));
    // It was delivered once, to become a dead letter.
    let took = ["waitP50", "waitP99", "lastDeliveryAt"].map(|field| first.remove(field).is_some());
    assert_eq!(took, [true; 3]);
    assert_eq!(all["topics"][0], dead);
    assert!(all["topics"][2]["oldestReadyAt"].is_string() && all["topics"][3]["nextDueAt"].is_string());
    let table = server.run(&["topic", "list", "--filter", "topic = \"l*\"", "--limit", "1"]).await.done();
    assert!(table.lines().count() == 2 && table.contains("leased"), "{table}");
    let dead = server.run(&["topic", "list", "--filter", "dead > 0", "--output", "json"]).await.json();
    assert_eq!(names(&dead), ["dead"]);
    let most = server.run(&["topic", "list", "--order", "-ready", "--limit", "1", "--output", "json"]).await;
    assert_eq!(names(&most.json()), ["ready"]);
    let everyone = server.run(&["topic", "list", "--all-namespaces"]).await.done();
    assert!(everyone.contains("other/foreign") && everyone.contains("default/ready"), "{everyone}");
    let stderr = server.run(&["topic", "list", "--filter", "dead > many"]).await.failed(1);
    assert!(stderr.contains("at character 8: expected a whole number"), "{stderr}");
}

#[tokio::test]
async fn a_topic_is_shown_with_its_priorities() {
    let server = filled().await;
    for priority in ["7", "-2", "7"] {
        server.run(&["enqueue", "--topic", "ready", "--priority", priority, "x"]).await.done();
    }
    let shown = server.run(&["topic", "get", "ready", "--output", "json"]).await.json();
    assert_eq!((&shown["topic"]["readyCount"], &shown["prioritiesCut"]), (&json!("4"), &json!(false)));
    let counts = shown["priorities"].as_array().unwrap();
    let counts: Vec<_> = counts.iter().map(|count| (&count["priority"], &count["readyCount"])).collect();
    assert_eq!(counts, [(&json!(-2), &json!("1")), (&json!(0), &json!("1")), (&json!(7), &json!("2"))]);
    // A leased item is none that is ready.
    let leased = server.run(&["topic", "get", "leased", "--output", "json"]).await.json();
    assert_eq!((&leased["topic"]["leasedCount"], &leased["priorities"]), (&json!("1"), &json!([])));
    let table = server.run(&["topic", "get", "ready"]).await.done();
    assert!(table.contains("priority 7") && table.contains("ready since"), "{table}");
    let lines = server.run(&["topic", "watch", "ready", "--count", "2", "--interval", "100ms"]).await.done();
    assert!(lines.lines().count() == 3 && lines.starts_with("TIME"), "{lines}");
    let lines = server.run(&["topic", "watch", "ready", "--count", "1", "-o", "jsonl"]).await.done();
    let line: Value = serde_json::from_str(lines.trim_end()).unwrap();
    assert_eq!(line["readyCount"], json!("4"));
    server.run(&["topic", "watch", "nothing"]).await.failed(3);
    let stderr = server.run(&["topic", "get", "nothing"]).await.failed(3);
    assert!(stderr.contains("there is no topic nothing"), "{stderr}");
    // Another tenant's topic is none of this one.
    server.run(&["topic", "get", "foreign"]).await.failed(3);
}

#[tokio::test]
async fn a_wrong_http_address_is_named() {
    let server = Server::start().await;
    let nobody = format!("127.0.0.1:{}", free_port().unwrap());
    let stderr = server.run(&["health", "--http", &nobody]).await.failed(6);
    assert!(stderr.contains(&nobody) && stderr.contains("--http"), "{stderr}");
    let stderr = server.run(&["health", "--http", &server.node.grpc]).await.failed(6);
    assert!(stderr.contains("is it the gRPC port?"), "{stderr}");
}
