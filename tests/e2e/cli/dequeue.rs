//! `forebay dequeue`

use serde_json::json;

use super::{Server, bytes, run_with};

#[tokio::test]
async fn several_topics_are_served_in_their_order() {
    let server = Server::start().await;
    for (topic, payload) in [("b", "1"), ("a", "2"), ("b", "3")] {
        server.run(&["enqueue", "--topic", topic, payload]).await.done();
    }
    let arguments = ["dequeue", "--topic", "b", "--topic", "a", "--max", "5", "--lease", "1h"];
    let table = server.run(&arguments).await.done();
    let rows: Vec<_> = table.lines().collect();
    assert!(rows[0].contains("TOPIC") && rows.len() == 4, "{table}");
    for (row, payload) in rows[1..].iter().zip(["1", "3", "2"]) {
        assert!(row.ends_with(payload), "{table}");
    }
    let twice = server.run(&["dequeue", "--topic", "a", "--topic", "a"]).await.failed(1);
    assert!(twice.contains("demands[1]"), "{twice}");
}

#[tokio::test]
async fn the_payload_has_one_key_whatever_it_holds() {
    let server = Server::start().await;
    for payload in [&b"text"[..], b"\xff\0\n"] {
        server.run_with(&["enqueue", "--topic", "t"], payload).await.done();
        let taken = server.run(&["dequeue", "--topic", "t", "--ack", "--output", "json"]).await.json();
        let item = taken["items"][0].as_object().unwrap();
        assert_eq!(bytes(&item["payload"]), payload);
        assert_eq!(item["metadata"], json!(""));
        assert!(item.keys().all(|key| !key.contains("base64")), "{item:?}");
    }
}

#[tokio::test]
async fn raw_output_is_the_payload() {
    let server = Server::start().await;
    server.run_with(&["enqueue", "--topic", "t", "--count", "3"], "a\nb").await.done();
    let one = server.run(&["dequeue", "--topic", "t", "--output", "raw"]).await;
    assert!(one.stderr.starts_with("receipt "), "{}", one.stderr);
    assert_eq!(one.done(), "a\nb");
    let two = server.run(&["dequeue", "--topic", "t", "--output", "raw", "--max", "2", "--ack"]).await;
    assert_eq!(two.stderr, "");
    assert_eq!(two.done(), "a\nb\na\nb\n");
}

#[tokio::test]
async fn an_answer_has_so_many_bytes() {
    let server = Server::start().await;
    server.run_with(&["enqueue", "--topic", "t", "--count", "3"], vec![b'x'; 1_000]).await.done();
    let take = async |bytes| {
        let arguments = ["dequeue", "--topic", "t", "--max", "3", "--max-bytes", bytes, "--output", "json"];
        let taken = server.run(&arguments).await.json();
        taken["items"].as_array().unwrap().len()
    };
    assert_eq!((take("1").await, take("2500").await), (1, 2), "the first item comes in any case");
    let long = ["dequeue", "--topic", "t", "--consumer", &"c".repeat(2_000)];
    // The name is for people, and is cut.
    server.run(&long).await.done();
}

#[tokio::test]
async fn a_wait_in_vain_has_its_own_status() {
    let server = Server::start().await;
    let none = server.run(&["dequeue", "--topic", "t"]).await;
    assert!(none.stderr.contains("no item is ready"), "{}", none.stderr);
    assert_eq!(none.done(), "");
    let waited = server.run(&["dequeue", "--topic", "t", "--wait", "1ms"]).await.failed(3);
    assert_eq!(waited, "forebay: no item came in time\n");
}

#[tokio::test]
async fn the_address_and_namespace_come_from_the_environment_too() {
    let server = Server::start().await;
    server.run(&["enqueue", "--topic", "t", "--namespace", "other", "x"]).await.done();
    let mut command = super::forebay(&["dequeue", "--topic", "t", "--output", "raw", "--ack"]);
    command.env("FOREBAY_ADDR", &server.node.grpc).env("FOREBAY_NAMESPACE", "other");
    assert_eq!(run_with(command, Vec::new()).await.done(), "x");
}
