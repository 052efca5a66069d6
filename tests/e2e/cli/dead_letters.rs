//! `forebay dead-letter`

use serde_json::json;

use super::Server;

#[tokio::test]
async fn dead_letters_are_listed_shown_and_grouped_by_reason() {
    let server = Server::start().await;
    let reasons = [("mail", "user 17 is gone"), ("mail", "user 4 is gone"), ("sms", "no such number")];
    for (topic, reason) in reasons {
        server.run(&["enqueue", "--topic", topic, "hello"]).await.done();
        let taken = server.run(&["dequeue", "--topic", topic, "--output", "json"]).await.json();
        let receipt = taken["items"][0]["receipt"].as_str().unwrap();
        server.run(&["nack", receipt, "--dead-letter", "--reason", reason]).await.done();
    }
    let all = server.run(&["dead-letter", "groups", "--output", "json"]).await.json();
    let groups = all["groups"].as_array().unwrap();
    assert_eq!((groups.len(), &groups[0]["count"]), (2, &json!("2")), "{all}");
    assert_eq!((&groups[0]["topics"], &all["total"]), (&json!(["mail"]), &json!("3")), "{all}");
    let common = groups[0]["reason"].as_str().unwrap();
    assert!(common.starts_with("user ") && common.ends_with(" is gone"), "{all}");
    let one = ["dead-letter", "groups", "sms", "--output", "json"];
    let one = server.run(&one).await.json();
    assert_eq!(one["groups"][0]["reason"], json!("no such number"), "{one}");

    let list = server.run(&["dead-letter", "list", "sms", "--output", "json"]).await.json();
    let id = list["items"][0]["itemId"].as_str().unwrap();
    assert_eq!(one["groups"][0]["sampleItemIds"], json!([id]));
    let shown = server.run(&["dead-letter", "get", id]).await.done();
    assert!(shown.contains("no such number"), "{shown}");
}
