//! `forebay enqueue`

use serde_json::{Value, json};

use super::{Server, bytes};

/// The one item of a topic, as JSON.
async fn take(server: &Server, topic: &str) -> Value {
    let taken = server.run(&["dequeue", "--topic", topic, "--ack", "--output", "json"]).await.json();
    taken["items"][0].clone()
}

#[tokio::test]
async fn every_field_of_an_item_arrives() {
    let server = Server::start().await;
    let stored = server.run(&[
        "enqueue",
        "--topic=mail",
        "--priority=-3",
        "--max-attempts=2",
        "--header=kind=letter",
        "--header=from=a=b",
        "--metadata=page 1",
        "--ttl=1h",
        "--lease=2m",
        "--shard=2",
        "--output=json",
        "hello",
    ]);
    let stored = stored.await.json();
    assert!(stored["results"][0]["itemId"].as_str().unwrap().starts_with("2-"), "{stored}");
    let item = take(&server, "mail").await;
    assert_eq!((&item["priority"], bytes(&item["payload"])), (&json!(-3), b"hello".to_vec()));
    assert_eq!(bytes(&item["metadata"]), b"page 1");
    assert_eq!(item["headers"], json!({ "kind": "letter", "from": "a=b" }));
    assert!(item["expiresAt"].is_string() && item["leaseExpiresAt"].is_string(), "{item}");

    server.run(&["enqueue", "--topic", "once", "--at-most-once", "x"]).await.done();
    assert_eq!(take(&server, "once").await["receipt"], "");
}

#[tokio::test]
async fn an_item_may_wait_for_a_point_in_time() {
    let server = Server::start().await;
    let past = ["enqueue", "--topic", "t", "--deliver-after", "2020-01-01T00:00:00Z", "past"];
    server.run(&past).await.done();
    let future =
        ["enqueue", "--topic", "later", "--deliver-after", "2020-01-01T00:00:00Z", "--ttl", "0s", "x"];
    assert!(server.run(&future).await.failed(1).contains("ttl"));
    assert_eq!(bytes(&take(&server, "t").await["payload"]), b"past");
    let wrong = server.run(&["enqueue", "--topic", "t", "--deliver-after", "tomorrow", "x"]).await.failed(2);
    assert!(wrong.contains("--deliver-after"), "{wrong}");
    let both = ["enqueue", "--topic", "t", "--deliver-after", "2020-01-01T00:00:00Z", "--delay", "1s", "x"];
    assert!(server.run(&both).await.failed(2).contains("--delay"));
}

#[tokio::test]
async fn a_request_id_makes_a_run_safe_to_repeat() {
    let server = Server::start().await;
    let arguments = ["enqueue", "--topic", "t", "--lines", "--request-id", "import-7", "--output", "json"];
    let lines = "line\n".repeat(2_500);
    let first = server.run_with(&arguments, lines.clone()).await.json();
    assert_eq!(first["results"].as_array().unwrap().len(), 2_500);
    let again = server.run_with(&arguments, lines).await.json();
    let ids = |run: &Value| {
        let results = run["results"].as_array().unwrap().iter();
        results.map(|result| result["itemId"].to_string()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&first), ids(&again));
    let topics = server.run(&["topics", "--output", "json"]).await.json();
    assert_eq!(topics["topics"][0]["readyCount"], "2500");
}

#[tokio::test]
async fn each_line_is_an_item() {
    let server = Server::start().await;
    let stored = server.run_with(&["enqueue", "--topic", "t", "--lines"], "one\n\n\u{e4}\nfour").await.done();
    assert_eq!(stored.lines().count(), 5, "{stored}");
    assert!(stored.starts_with("LINE") && stored.lines().nth(4).unwrap().starts_with("4 "), "{stored}");
    let taken = server.run(&["dequeue", "--topic", "t", "--max", "10", "--ack", "--output", "raw"]).await;
    assert_eq!(taken.done(), "one\n\n\u{e4}\nfour\n");
    let none = server.run(&["enqueue", "--topic", "t", "--lines", "--output", "json"]).await.json();
    assert_eq!(none, json!({ "results": [] }));
}

#[tokio::test]
async fn a_wrong_line_is_named_by_its_number() {
    let server = Server::start().await;
    let long = "x".repeat(300 << 10);
    let text = format!("one\n{long}\nthree\n{long}\n");
    let ran = server.run_with(&["enqueue", "--topic", "t", "--lines"], text).await;
    let (stdout, stderr) = (ran.stdout.clone(), ran.failed(5));
    assert!(stderr.starts_with("forebay: line 2: TOO_LARGE"), "{stderr}");
    assert!(stderr.contains("2 items in all were refused"), "{stderr}");
    assert!(stdout.lines().nth(3).is_some_and(|line| line.starts_with("3 ")), "{stdout}");
    let topics = server.run(&["topics", "--output", "json"]).await.json();
    assert_eq!(topics["topics"][0]["readyCount"], "2");

    let text = format!("one\n{}\nthree\n", "x".repeat(4 << 20));
    let stderr = server.run_with(&["enqueue", "--topic", "t", "--lines"], text).await.failed(5);
    assert!(stderr.starts_with("forebay: line 2: it has more than"), "{stderr}");
    let wrong = server.run_with(&["enqueue", "--topic", "no blanks", "--lines"], "a\nb\n").await.failed(1);
    assert!(wrong.contains("line 1: INVALID_FIELD") && wrong.contains("topic"), "{wrong}");
}
