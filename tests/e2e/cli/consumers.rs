//! `forebay consumer`, `forebay history`, and what topics have seen.

use serde_json::json;

use super::Server;

/// A server with items, of which two consumers have leased some.
async fn filled() -> Server {
    let server = Server::start().await;
    server.run(&["enqueue", "--topic", "mail", "--count", "9", "x"]).await.done();
    for (consumer, max) in [("w1", "3"), ("w2", "2")] {
        let take = ["dequeue", "--topic", "mail", "--max", max, "--consumer", consumer];
        server.run(&take).await.done();
    }
    server
}

#[tokio::test]
async fn consumers_are_listed_and_lose_their_leases_without_a_failure() {
    let server = filled().await;
    let table = server.run(&["consumer", "list"]).await.done();
    assert!(table.starts_with("CONSUMER") && table.contains("w1") && table.contains("w2"), "{table}");
    let found = server.run(&["consumer", "list", "-o", "json"]).await.json();
    let first = &found["consumers"][0];
    assert_eq!((&first["name"], &first["leasedCount"]), (&json!("w1"), &json!("3")));
    assert_eq!((&first["topics"], &found["consumersCut"]), (&json!(["mail"]), &json!(false)));

    let counted = server.run(&["consumer", "reset", "w1", "--dry-run"]).await.done();
    assert!(counted.starts_with("3 items would be released"), "{counted}");
    let done = server.run(&["consumer", "reset", "w1", "--yes", "-o", "json"]).await.json();
    assert_eq!((&done["figures"]["changed"], &done["filter"]), (&json!("3"), &json!("consumer = \"w1\"")));
    let found = server.run(&["consumer", "list", "-o", "json"]).await.json();
    let leased: Vec<_> = found["consumers"].as_array().unwrap().iter().map(|it| &it["leasedCount"]).collect();
    assert_eq!(leased, [&json!("0"), &json!("2")]);
    let topic = server.run(&["topic", "get", "mail", "-o", "json"]).await.json();
    assert_eq!(
        (&topic["topic"]["readyCount"], &topic["topic"]["counts"]["failed"]),
        (&json!("7"), &json!("0"))
    );

    assert!(
        server
            .run(&["consumer", "reset", "w1", "--yes"])
            .await
            .failed(3)
            .contains("no consumer w1 has leases")
    );
    let quoted = server.run(&["consumer", "reset", "a\"b", "--topic", "mail", "--yes"]).await.failed(2);
    assert!(quoted.contains("quote"), "{quoted}");
}

#[tokio::test]
async fn leased_items_are_listed_by_their_consumer() {
    let server = filled().await;
    let of_one = [
        "item",
        "list",
        "--topic",
        "mail",
        "--state",
        "leased",
        "--filter",
        "consumer = \"w2\"",
        "-o",
        "json",
    ];
    let found = server.run(&of_one).await.json();
    assert_eq!(found["items"].as_array().unwrap().len(), 2, "{found}");
    let of_ready = ["item", "list", "--topic", "mail", "--filter", "consumer = \"w2\""];
    let refused = server.run(&of_ready).await.failed(1);
    assert!(refused.contains("age, priority, attempt"), "{refused}");
}

#[tokio::test]
async fn a_topic_tells_what_has_become_of_its_items() {
    let server = filled().await;
    let taken = server.run(&["dequeue", "--topic", "mail", "--ack"]).await.done();
    assert!(!taken.is_empty());
    let table = server.run(&["topic", "get", "mail"]).await.done();
    let row = |name: &str| -> Vec<&str> {
        let line = table.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().collect()
    };
    assert_eq!((row("enqueued")[1], row("delivered")[1], row("acked")[1]), ("9", "6", "1"), "{table}");
    assert!(row("enqueued").contains(&"since"), "{table}");
    let topic = server.run(&["topic", "get", "mail", "-o", "json"]).await.json();
    assert_eq!(topic["topic"]["rates"]["window"], json!("10s"));
    assert!(topic["topic"]["rates"]["enqueued"].as_f64().unwrap() > 0.0, "{topic}");
    let namespace = server.run(&["namespace", "get", "-o", "json"]).await.json();
    assert_eq!(namespace["namespace"]["counts"], topic["topic"]["counts"]);
}

#[tokio::test]
async fn history_has_a_line_for_each_series_and_refuses_what_is_not_kept() {
    let server = filled().await;
    let mut table = String::new();
    for _ in 0..100 {
        table = server.run(&["history", "--range", "5m"]).await.done();
        if table.lines().count() > 12 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    let ready = table.lines().find(|line| line.starts_with("ready")).expect(&table);
    assert_eq!(ready.split_whitespace().nth(1), Some("4"), "{table}");
    assert!(table.contains("by 1s"), "{table}");
    let some = ["history", "--range", "5m", "--series", "acked,ready", "-o", "json"];
    let found = server.run(&some).await.json();
    let series: Vec<_> = found["lines"].as_array().unwrap().iter().map(|line| &line["series"]).collect();
    assert_eq!(series, [&json!("HISTORY_SERIES_ACKED"), &json!("HISTORY_SERIES_READY")]);
    assert!(server.run(&["history", "--step", "7s"]).await.failed(1).contains("step"));
    assert!(server.run(&["history", "--range", "2d"]).await.failed(1).contains("range"));
    assert!(server.run(&["history", "--topic", "mail", "--step", "1s"]).await.failed(1).contains("step"));
}
