//! The forms of output that all verbs share.

use serde_json::{Value, json};

use super::{Server, forebay, run_with};

/// The answer of a call without a request, as JSON over HTTP has it.
async fn over_http(server: &Server, method: &str) -> Value {
    let (status, body) =
        server.node.fetch(&format!("{method}?connect=v1&encoding=json&message=%7B%7D")).await;
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

#[tokio::test]
async fn json_is_what_json_over_http_has() {
    let server = Server::start().await;
    for (noun, method) in [("node", "ListNodes"), ("shard", "ListShards")] {
        let printed = server.run(&[noun, "list", "-o", "json"]).await.json();
        let answered = over_http(&server, &format!("/forebay.v1.AdminService/{method}")).await;
        assert_eq!(printed, answered);
    }
    server.run(&["enqueue", "--topic", "mail", "x"]).await.done();
    let printed = server.run(&["topics", "-o", "json"]).await.json();
    let path = "/forebay.v1.QueueService/GetActiveTopics?connect=v1&encoding=json\
                &message=%7B%22namespace%22%3A%22default%22%7D";
    let (_, answered) = server.node.fetch(path).await;
    assert_eq!(printed, serde_json::from_str::<Value>(&answered).unwrap());
}

#[tokio::test]
async fn a_list_has_each_form() {
    let server = Server::start().await;
    let shards = async |form| server.run(&["shard", "list", "-o", form]).await.done();
    assert_eq!(shards("name").await, "1\n2\n");
    let lines = shards("jsonl").await;
    let ids: Vec<_> =
        lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone()).collect();
    assert_eq!(ids, [json!(1), json!(2)]);
    let (table, wide) = (shards("table").await, shards("wide").await);
    assert!(table.starts_with("SHARD  STATE ") && !table.contains("EPOCH"), "{table}");
    assert!(wide.contains("EPOCH"), "{wide}");

    for (form, expected) in
        [("json", r#""results""#), ("jsonl", r#""itemId":"#), ("name", "-"), ("wide", "stored")]
    {
        let stored = server.run(&["enqueue", "--topic", "mail", "-o", form, "x"]).await.done();
        assert!(stored.contains(expected), "{form}: {stored}");
    }
}

#[tokio::test]
async fn times_have_forms() {
    let server = Server::start().await;
    for (form, shown) in [("relative", "in 59m "), ("iso", "Z  -"), ("unix", ".")] {
        server.run(&["enqueue", "--topic", "t", "x"]).await.done();
        let taken = ["dequeue", "--topic", "t", "--lease", "1h", "-o", "wide", "--time", form];
        let row = server.run(&taken).await.done().lines().nth(1).unwrap().to_owned();
        assert!(row.contains(shown), "{form}: {row}");
    }
}

#[tokio::test]
async fn colours_are_for_those_who_want_them() {
    let server = Server::start().await;
    let list = async |color: &str, no_color: &str| {
        let mut command = forebay(&["node", "list", "--color", color]);
        command.env("FOREBAY_ADDR", &server.node.grpc).env("NO_COLOR", no_color);
        run_with(command, Vec::new()).await.done()
    };
    assert!(!list("auto", "").await.contains('\x1b'), "a pipe is no terminal");
    assert!(list("always", "1").await.contains("\x1b[32mlive\x1b[0m"));
    assert!(!list("never", "").await.contains('\x1b'));
}

#[tokio::test]
async fn payloads_have_forms_and_reach_no_terminal_as_they_are() {
    let server = Server::start().await;
    for (form, shown) in [
        ("text", "a\\u{1b}[2J\\u{202e}"),
        ("hex", "611b5b324ae280ae"),
        ("base64", "YRtbMkrigK4="),
        ("none", ""),
    ] {
        server.run_with(&["enqueue", "--topic", "t"], "a\x1b[2J\u{202e}").await.done();
        let taken = server.run(&["dequeue", "--topic", "t", "--ack", "--payload", form]).await.done();
        assert!(taken.lines().nth(1).unwrap().ends_with(shown), "{taken}");
        assert_eq!(taken.contains("PAYLOAD"), form != "none", "{taken}");
        assert!(!taken.contains('\x1b') && !taken.contains('\u{202e}'), "{taken}");
    }
    let refused = server.run(&["enqueue", "--topic", "a\x1b[2J", "x"]).await.failed(1);
    assert!(!refused.contains('\x1b'), "{refused}");
}

#[tokio::test]
async fn quiet_says_only_results_and_errors() {
    let server = Server::start().await;
    let empty = server.run(&["dequeue", "--topic", "t", "-q"]).await;
    assert_eq!((empty.status, empty.stdout.as_str(), empty.stderr.as_str()), (0, "", ""));
    let nobody = server.run(&["shard", "list", "-q", "--addr", "localhost"]).await.failed(2);
    assert!(nobody.contains("has no port"), "{nobody}");
}

#[tokio::test]
async fn what_is_not_allowed_has_its_own_status() {
    let server = Server::start().await;
    server.run(&["enqueue", "--topic", "t", "x"]).await.done();
    let taken = server.run(&["dequeue", "--topic", "t", "-o", "json"]).await.json();
    let receipt = taken["items"][0]["receipt"].as_str().unwrap();
    let foreign = server.run(&["ack", "--namespace", "other", receipt]).await.failed(4);
    assert!(foreign.contains("WRONG_NAMESPACE"), "{foreign}");
}
