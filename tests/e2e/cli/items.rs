//! `forebay item`

use serde_json::{Value, json};

use super::Server;

fn ids(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["itemId"].as_str().unwrap()).collect()
}

/// Enqueues an item. Returns its id.
async fn put(server: &Server, more: &[&str], payload: &str) -> String {
    let args = [&["enqueue", "--topic", "t", "--output", "json"], more, &[payload]].concat();
    let stored = server.run(&args).await.json();
    stored["results"][0]["itemId"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn items_are_listed_in_each_state_and_stay_where_they_are() {
    let server = Server::start().await;
    let late = put(&server, &["--priority", "5"], "late").await;
    let first = put(&server, &[], "first").await;
    let second = put(&server, &["--header", "lang=de"], "second").await;
    let due = put(&server, &["--delay", "1h"], "due").await;
    for _ in 0..2 {
        let ready = server.run(&["item", "list", "--topic", "t", "--output", "json"]).await.json();
        assert_eq!(ids(&ready), [&first, &second, &late]);
        assert_eq!((&ready["items"][0]["payload"], &ready["items"][0]["attempt"]), (&json!(""), &json!(0)));
    }
    let scheduled = ["item", "list", "--topic", "t", "--state", "scheduled", "--output", "json"];
    assert_eq!(ids(&server.run(&scheduled).await.json()), [&due]);

    // One is leased, one dies.
    let take = ["dequeue", "--topic", "t", "--lease", "1h", "--consumer", "worker-7", "--output", "json"];
    let taken = server.run(&take).await.json();
    assert_eq!(taken["items"][0]["itemId"], json!(first));
    let other = server.run(&take).await.json();
    let receipt = other["items"][0]["receipt"].as_str().unwrap();
    server.run(&["nack", receipt, "--dead-letter", "--reason", "no such user"]).await.done();
    let ready = server.run(&["item", "list", "--topic", "t", "--output", "json"]).await.json();
    assert_eq!(ids(&ready), [&late]);
    let leased = server.run(&["item", "list", "--topic", "t", "--state", "leased"]).await.done();
    assert!(leased.contains(&first) && leased.contains("worker-7"), "{leased}");
    let dead = ["item", "list", "--topic", "t", "--state", "dead", "--payload", "text", "--output", "json"];
    let dead = server.run(&dead).await.json();
    assert_eq!(ids(&dead), [&second]);
    let death = &dead["items"][0]["death"];
    assert_eq!((&death["cause"], &death["reason"]), (&json!("dead-lettered"), &json!("no such user")));
    assert_eq!(dead["items"][0]["headers"], json!({ "lang": "de" }));

    // A failed delivery is remembered, the latest first.
    let other = server.run(&take).await.json();
    assert_eq!(other["items"][0]["itemId"], json!(late));
    let receipt = other["items"][0]["receipt"].as_str().unwrap();
    server.run(&["nack", receipt, "--reason", "try later"]).await.done();
    let shown = server.run(&["item", "get", &late, "--output", "json"]).await.json();
    let failures = &shown["item"]["lastFailures"];
    assert_eq!((&failures[0]["cause"], &failures[0]["reason"]), (&json!("nacked"), &json!("try later")));
    assert_eq!((&failures[0]["consumer"], failures.as_array().unwrap().len()), (&json!("worker-7"), 1));
    let table = server.run(&["item", "get", &late]).await.done();
    assert!(table.contains("failed 1") && table.contains("by worker-7: try later"), "{table}");
    let shown = server.run(&["item", "get", &second, "--output", "json"]).await.json();
    assert_eq!(shown["item"]["lastFailures"][0]["cause"], json!("dead-lettered"));

    // One item is shown wherever it is.
    for (id, state) in [
        (&late, "ITEM_STATE_READY"),
        (&first, "ITEM_STATE_LEASED"),
        (&due, "ITEM_STATE_SCHEDULED"),
        (&second, "ITEM_STATE_DEAD"),
    ] {
        let shown = server.run(&["item", "get", id, "--output", "json"]).await.json();
        assert_eq!((&shown["item"]["state"], &shown["item"]["itemId"]), (&json!(state), &json!(id)));
    }
    let table = server.run(&["item", "get", &late, "--payload", "hex"]).await.done();
    assert!(table.contains("6c617465"), "{table}");
    let receipt = taken["items"][0]["receipt"].as_str().unwrap();
    server.run(&["ack", receipt]).await.done();
    for gone in [first.as_str(), "77-1"] {
        let stderr = server.run(&["item", "get", gone]).await.failed(3);
        assert!(stderr.contains("ITEM_NOT_FOUND"), "{stderr}");
    }
    // To another tenant it was never there.
    let stderr = server.run(&["item", "get", &late, "--namespace", "other"]).await.failed(3);
    assert!(stderr.contains("ITEM_NOT_FOUND"), "{stderr}");
    let stderr = server.run(&["item", "get", "late"]).await.failed(1);
    assert!(stderr.contains("item_id"), "{stderr}");
}

#[tokio::test]
async fn many_items_come_in_pages_and_long_payloads_are_cut() {
    let server = Server::start().await;
    let put = ["enqueue", "--topic", "t", "--count", "2500", "--priority"];
    for priority in ["3", "1"] {
        server.run(&[&put[..], &[priority, "x"]].concat()).await.done();
    }
    let list = ["item", "list", "--topic", "t", "--limit", "9000", "--output", "json"];
    let all = server.run(&list).await.json();
    let items = all["items"].as_array().unwrap();
    let priorities: Vec<i64> = items.iter().map(|item| item["priority"].as_i64().unwrap()).collect();
    assert_eq!(priorities, [vec![1; 2_500], vec![3; 2_500]].concat());
    let mut unique = ids(&all);
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), 5_000);

    let long = "z".repeat(5_000);
    server.run(&["enqueue", "--topic", "long", &long]).await.done();
    let shown = ["item", "list", "--topic", "long", "--payload", "text"];
    let table = server.run(&shown).await.done();
    assert!(table.contains("zzz… (1024 of 5000 B)"), "{table}");
    let whole = server.run(&[&shown[..], &["--max-payload-bytes", "5000"]].concat()).await.done();
    assert!(whole.contains(&long), "{whole}");
}

#[tokio::test]
async fn items_are_cancelled_by_their_ids() {
    let server = Server::start().await;
    let [first, second] = [put(&server, &[], "1").await, put(&server, &["--delay", "1h"], "2").await];
    let stderr = server.run(&["item", "cancel", &first]).await.failed(2);
    assert!(stderr.contains("add --yes, or --dry-run"), "{stderr}");
    let table = server.run(&["item", "cancel", &first, &second, "--dry-run"]).await.done();
    assert!(table.contains("was ready") && table.contains("was scheduled"), "{table}");
    let done =
        server.run(&["item", "cancel", &second, "--yes", "--reason", "sent twice", "-o", "json"]).await;
    let done = done.json();
    let result = &done["results"][0];
    assert_eq!((&result["itemId"], &result["state"]), (&json!(second), &json!("ITEM_STATE_SCHEDULED")));
    // One of two is not there any more.
    let stderr = server.run(&["item", "cancel", &first, &second, "--yes"]).await.failed(5);
    assert!(stderr.contains("ITEM_NOT_FOUND"), "{stderr}");
    server.run(&["item", "cancel", &first, "--yes"]).await.failed(3);
    assert!(server.run(&["item", "list", "--topic", "t", "-o", "name"]).await.done().is_empty());
}

#[tokio::test]
async fn lists_take_a_filter() {
    let server = Server::start().await;
    let [first, second] = [put(&server, &["--priority", "3"], "1").await, put(&server, &[], "2").await];
    let list = ["item", "list", "--topic", "t", "-o", "name", "--filter"];
    let urgent = server.run(&[&list[..], &["priority < 3"]].concat()).await.done();
    assert_eq!(urgent.trim(), second);
    let stderr = server.run(&[&list[..], &["colour = 3"]].concat()).await.failed(1);
    assert!(stderr.contains("at character 1"), "{stderr}");
    let receipt = server.run(&["dequeue", "--topic", "t", "--max", "1", "-o", "json"]).await.json();
    let receipt = receipt["items"][0]["receipt"].as_str().unwrap().to_owned();
    server.run(&["nack", &receipt, "--dead-letter", "--reason", "timeout 17"]).await.done();
    let dead = ["dead-letter", "list", "t", "-o", "name", "--filter"];
    assert_eq!(server.run(&[&dead[..], &["reason = \"timeout*\""]].concat()).await.done().trim(), second);
    assert!(server.run(&[&dead[..], &["reason = \"full*\""]].concat()).await.done().is_empty());
    assert_eq!(server.run(&[&list[..], &["age < 1h"]].concat()).await.done().trim(), first);
}

#[tokio::test]
async fn an_item_is_updated() {
    let server = Server::start().await;
    let [first, second] = [put(&server, &[], "1").await, put(&server, &["--delay", "1h"], "2").await];
    let stderr = server.run(&["item", "update", &second]).await.failed(2);
    assert!(stderr.contains("--priority"), "{stderr}");
    let update = ["item", "update", &second, "--delay", "0s", "--priority", "-5", "--metadata", "now"];
    let dry = server.run(&[&update[..], &["--dry-run"]].concat()).await.done();
    assert!(dry.contains("ready"), "{dry}");
    let done = server.run(&[&update[..], &["--reason", "they wait", "-o", "json"]].concat()).await.json();
    assert_eq!(done["state"], "ITEM_STATE_READY");
    let listed = server.run(&["item", "list", "--topic", "t", "-o", "name"]).await.done();
    assert_eq!(listed.lines().collect::<Vec<_>>(), [&*second, &*first]);
    server.run(&["dequeue", "--topic", "t"]).await.done();
    let stderr = server.run(&update).await.failed(1);
    assert!(stderr.contains("ITEM_LEASED"), "{stderr}");
    let forever = ["item", "update", &first, "--deliver-after", "2030-01-31T12:00:00Z", "--ttl", "1h"];
    assert!(server.run(&forever).await.failed(1).contains("deliver_after"));
    server.run(&["item", "update", "1-999999", "--priority", "1"]).await.failed(3);
}

#[tokio::test]
async fn topics_and_items_are_explained() {
    let server = Server::start().await;
    let first = put(&server, &[], "1").await;
    let second = put(&server, &["--priority", "5"], "2").await;
    let table = server.run(&["topic", "explain", "t"]).await.done();
    assert!(table.contains("NO_CONSUMER") && table.contains("no dequeue call waits"), "{table}");
    let explained = server.run(&["item", "explain", &second, "-o", "json"]).await.json();
    let blockers = explained["blockers"].as_array().unwrap();
    let codes: Vec<&str> = blockers.iter().map(|it| it["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["BLOCKER_CODE_NO_CONSUMER", "BLOCKER_CODE_BEHIND"]);
    assert_eq!(blockers[1]["count"], "1");
    server.run(&["item", "cancel", &first, "--yes"]).await.done();
    let gone = server.run(&["item", "explain", &first, "-o", "name"]).await.done();
    assert_eq!(gone.trim(), "GONE");
}
