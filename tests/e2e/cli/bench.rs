//! `forebay bench`

use serde_json::{Value, json};

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
