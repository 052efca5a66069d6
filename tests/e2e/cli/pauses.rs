//! `forebay topic pause`, `forebay topic resume`, `forebay namespace`

use serde_json::json;

use super::Server;

#[tokio::test]
async fn a_topic_is_paused_shown_and_resumed() {
    let server = Server::start().await;
    let pause = ["topic", "pause", "mail", "--side", "dequeue", "--for", "2h", "--note", "a move"];
    let table = server.run(&pause).await.done();
    assert!(table.contains("dequeue") && table.contains("a move"), "{table}");
    server.run(&["enqueue", "--topic", "mail", "x"]).await.done();
    server.run(&["dequeue", "--topic", "mail", "--wait", "200ms"]).await.failed(3);
    let shown = server.run(&["topic", "get", "mail"]).await.done();
    assert!(shown.contains("paused") && shown.contains("a move"), "{shown}");
    let both = server.run(&["topic", "pause", "mail", "-o", "json"]).await.json();
    assert_eq!(both["pauses"].as_array().unwrap().len(), 2);
    let stderr = server.run(&["enqueue", "--topic", "mail", "x"]).await.failed(1);
    assert!(stderr.contains("TOPIC_PAUSED"), "{stderr}");
    let left = server.run(&["topic", "resume", "mail", "-o", "json"]).await.json();
    assert_eq!(left["pauses"], json!([]));
    server.run(&["dequeue", "--topic", "mail", "--wait", "5s"]).await.done();
}

#[tokio::test]
async fn a_namespace_is_paused_and_an_empty_topic_is_refused() {
    let server = Server::start().await;
    let paused = server.run(&["namespace", "pause", "--side", "enqueue", "-o", "json"]).await.json();
    assert_eq!(paused["pauses"][0]["ofNamespace"], json!(true));
    server.run(&["enqueue", "--topic", "mail", "x"]).await.failed(1);
    for verb in ["pause", "resume"] {
        let stderr = server.run(&["topic", verb, ""]).await.failed(2);
        assert!(stderr.contains("forebay namespace"), "{stderr}");
    }
    server.run(&["namespace", "resume"]).await.done();
    server.run(&["enqueue", "--topic", "mail", "x"]).await.done();
}
