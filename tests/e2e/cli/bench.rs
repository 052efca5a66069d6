//! `forebay bench`

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Server, run};

#[tokio::test]
async fn a_load_is_measured_checked_and_purged() {
    let server = Server::start().await;
    server.run(&["enqueue", "--topic", "mail", "x"]).await.done();
    let flags = ["bench", "--duration", "500ms", "--producers", "2", "--consumers", "2", "--batch", "5"];
    let ran = server.run(&[&flags[..], &["-o", "json"]].concat()).await;
    assert!(ran.stderr.contains("storing items in topic forebay-bench/"), "{}", ran.stderr);
    let measured = ran.json();
    let count = |name: &str| measured[name].as_u64().unwrap();
    assert!(count("stored") >= 10 && count("stored") == count("acked"), "{measured}");
    assert_eq!(["lost", "deliveredAfterAck", "errors"].map(count), [0; 3], "{measured}");
    assert!(measured["itemsPerSecond"].as_f64().unwrap() > 0.0, "{measured}");
    for latency in ["enqueueMillis", "endToEndMillis"] {
        let at = |name: &str| measured[latency][name].as_f64().unwrap();
        assert!(0.0 < at("p50") && at("p50") <= at("p99") && at("p99") <= at("max"), "{measured}");
    }
    // Nothing else was touched, and nothing is left.
    let left = server.run(&["topic", "list", "-o", "json"]).await.json();
    let topics = left["topics"].as_array().unwrap();
    let with_items: Vec<&Value> = topics.iter().filter(|it| it["readyCount"] != "0").collect();
    assert_eq!((with_items.len(), &with_items[0]["topic"]), (1, &json!("mail")), "{left}");
    let purges = server.run(&["operation", "list", "-o", "json"]).await.json();
    assert_eq!(
        (&purges["operations"][0]["topic"], &purges["operations"][0]["state"]),
        (&measured["topic"], &json!("OPERATION_STATE_SUCCEEDED"),)
    );

    let table = server.run(&[&flags[..], &["-q"]].concat()).await;
    assert_eq!(table.stderr, "");
    assert!(table.done().contains("delivered after ack  0"));
    run(&["bench", "--addr", "127.0.0.1:1"]).await.failed(6);
    assert!(run(&["bench", "--size", "4"]).await.failed(2).contains("--size"));
}

/// Each node is asked for items, the one whose address was given and the other.
#[tokio::test]
async fn the_items_of_all_nodes_are_taken_though_one_address_was_given() {
    let server = Server::start_with(&["--nodes", "2"]).await;
    let both_own_a_shard = async || {
        let list = server.run(&["node", "list", "-o", "json"]).await.json();
        list["nodes"].as_array().is_some_and(|nodes| nodes.iter().filter(|it| it["shards"] == 1).count() == 2)
    };
    let begun = Instant::now();
    while !both_own_a_shard().await {
        assert!(begun.elapsed() < Duration::from_secs(30), "a node owns no shard");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let flags = ["bench", "--duration", "500ms", "--producers", "2", "--consumers", "1", "-o", "json"];
    let measured = server.run(&flags).await.json();
    assert!(measured["stored"].as_u64().unwrap() > 0, "{measured}");
    assert_eq!((&measured["stored"], &measured["lost"]), (&measured["acked"], &json!(0)), "{measured}");
}
