//! Verbs over many items: `forebay topic purge`, `forebay dead-letter redrive`, `forebay operation`

use serde_json::json;

use super::Server;

/// A server with so many items of a topic.
async fn filled(items: &str) -> Server {
    let server = Server::start().await;
    server.run(&["enqueue", "--topic", "mail", "--count", items, "x"]).await.done();
    server
}

#[tokio::test]
async fn a_purge_asks_first_and_says_what_it_did() {
    let server = filled("30").await;
    let stderr = server.run(&["topic", "purge", "mail"]).await.failed(2);
    assert!(stderr.contains("add --yes, or --dry-run"), "{stderr}");
    let counted = server.run(&["topic", "purge", "mail", "--dry-run"]).await.done();
    assert!(counted.starts_with("30 items would be removed\nsome of them: "), "{counted}");
    let counted = server.run(&["topic", "purge", "mail", "--dry-run", "-o", "json"]).await.json();
    assert_eq!(
        (&counted["exact"], &counted["operation"]["figures"]["matched"]),
        (&json!(true), &json!("30"))
    );
    let few = ["topic", "purge", "mail", "--expect-at-most", "3", "--yes"];
    assert!(server.run(&few).await.failed(1).contains("EXPECTATION_FAILED"));

    let some = ["topic", "purge", "mail", "--limit", "10", "--reason", "too old", "--yes", "-o", "json"];
    let done = server.run(&some).await.json();
    assert_eq!(
        (&done["state"], &done["kind"]),
        (&json!("OPERATION_STATE_SUCCEEDED"), &json!("OPERATION_KIND_PURGE"))
    );
    assert_eq!((&done["figures"]["changed"], &done["reason"]), (&json!("10"), &json!("too old")));
    let table = server.run(&["topic", "purge", "mail", "--yes"]).await.done();
    assert!(table.contains("changed") && table.contains("20") && table.contains("succeeded"), "{table}");
    assert!(server.run(&["topics"]).await.done().lines().count() <= 1);
}

#[tokio::test]
async fn dead_letters_are_redriven_and_deleted() {
    let server = filled("2").await;
    let taken = server.run(&["dequeue", "--topic", "mail", "--max", "2", "-o", "json"]).await.json();
    for item in taken["items"].as_array().unwrap() {
        let receipt = item["receipt"].as_str().unwrap();
        server.run(&["nack", receipt, "--dead-letter", "--reason", "timeout"]).await.done();
    }
    let redrive =
        ["dead-letter", "redrive", "mail", "--filter", "reason = \"time*\"", "--limit", "1", "--yes"];
    server.run(&redrive).await.done();
    server.run(&["dead-letter", "delete", "mail", "--yes"]).await.done();
    let shown = server.run(&["topic", "get", "mail", "-o", "json"]).await.json();
    assert_eq!((&shown["topic"]["readyCount"], &shown["topic"]["deadCount"]), (&json!("1"), &json!("0")));
}

#[tokio::test]
async fn operations_are_listed_slowed_down_and_cancelled() {
    let server = filled("500").await;
    let purge = ["topic", "purge", "mail", "--rate", "1", "--yes", "--detach", "-o", "name"];
    let id = server.run(&purge).await.done();
    let id = id.trim();
    let listed = server.run(&["operation", "list", "-o", "json"]).await.json();
    assert_eq!((&listed["operations"][0]["id"], &listed["incompleteShards"]), (&json!(id), &json!([])));
    let slow = server.run(&["operation", "rate", id, "2", "-o", "json"]).await.json();
    assert_eq!(slow["ratePerSecond"], 2);
    assert!(server.run(&["operation", "get", id]).await.done().contains("under way"));
    server.run(&["operation", "cancel", id]).await.done();
    let ended = server.run(&["operation", "watch", id, "-o", "json"]).await.json();
    assert_eq!(ended["state"], "OPERATION_STATE_CANCELLED");
    assert!(server.run(&["operation", "cancel", id]).await.failed(1).contains("OPERATION_ENDED"));
    server.run(&["operation", "get", &"0".repeat(32)]).await.failed(3);
}
