//! `forebay consumer`, `forebay history`, and what topics have seen.

use std::{io::Write as _, process::Stdio, time::Duration};

use forebay_proto::v1::{
    DequeueRequest, TopicDemand, queue_service_client::QueueServiceClient, topic_demand::Selector,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{CliOutput, Server, forebay, process::terminal};

/// The history must have the last figures within this time.
const HISTORY_TIMEOUT: Duration = Duration::from_secs(30);

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
    assert!(counted.starts_with("3 of 5 items would be released"), "{counted}");
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
}

/// Leases one item of each topic.
async fn lease(server: &Server, consumer: &str, topics: &[&str]) {
    for topic in topics {
        let take = ["dequeue", "--topic", topic, "--max", "1", "--consumer", consumer, "-o", "json"];
        let taken = server.run(&take).await.json();
        assert_eq!(taken["items"].as_array().unwrap().len(), 1, "{consumer} of {topic}");
    }
}

/// The consumers that have leases, by name.
async fn leasing(server: &Server) -> Vec<(String, String)> {
    let found = server.run(&["consumer", "list", "-o", "json"]).await.json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let all = found["consumers"].as_array().unwrap().iter();
    let all = all.map(|it| (text(&it["name"]), text(&it["leasedCount"])));
    all.filter(|(_, leased)| leased != "0").collect()
}

#[tokio::test]
async fn a_reset_is_for_the_consumer_of_exactly_that_name() {
    let server = Server::start().await;
    server.run(&["enqueue", "--topic", "mail", "--count", "9", "x"]).await.done();
    let mut left = vec!["w\"1", "w*", "w1", "w\\1", "ww"];
    for consumer in &left {
        lease(&server, consumer, &["mail"]).await;
    }
    for consumer in ["w\\1", "w*", "w\"1"] {
        let done = server.run(&["consumer", "reset", consumer, "--yes", "-o", "json"]).await.json();
        assert_eq!(done["figures"]["changed"], "1", "{consumer}: {done}");
        left.retain(|it| *it != consumer);
        let names: Vec<_> = leasing(&server).await.into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, left, "after {consumer}");
    }
}

#[tokio::test]
async fn a_reset_is_for_all_topics_of_the_consumer_after_one_question() {
    let server = Server::start().await;
    for topic in ["jobs", "mail", "sms"] {
        server.run(&["enqueue", "--topic", topic, "--count", "4", "x"]).await.done();
    }
    lease(&server, "w1", &["jobs", "mail", "mail"]).await;
    lease(&server, "w2", &["mail", "sms"]).await;
    let counted = server.run(&["consumer", "reset", "w1", "--dry-run"]).await.done();
    for line in ["1 of 1 items of jobs would be released", "2 of 3 items of mail would be released"] {
        assert!(counted.contains(line), "{counted}");
    }
    let (mut controller, terminal) = terminal();
    let mut command = forebay(&["consumer", "reset", "w1", "-o", "name"]);
    command.env("FOREBAY_ADDR", &server.node.grpc);
    command.stdin(terminal).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    controller.write_all(b"y\n").unwrap();
    let ran = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap()).await.unwrap();
    let ran = CliOutput::from(ran);
    assert_eq!(ran.stderr.matches("Go on?").count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("3 of 4 items of jobs, mail will be released."), "{}", ran.stderr);
    assert_eq!(ran.done().lines().count(), 2, "an operation for each topic");
    assert_eq!(leasing(&server).await, [("w2".to_owned(), "2".to_owned())]);

    lease(&server, "w1", &["jobs", "mail"]).await;
    let some = ["consumer", "reset", "w1", "--topic", "mail", "--yes"];
    server.run(&some).await.done();
    assert_eq!(leasing(&server).await, [("w1", "1"), ("w2", "2")].map(|(a, b)| (a.to_owned(), b.to_owned())));
}

/// Nodes remember some hundred consumers of a namespace. Each topic with leases is looked into then.
#[tokio::test]
async fn a_reset_finds_the_leases_of_a_consumer_that_is_forgotten() {
    let server = filled().await;
    server.run(&["enqueue", "--topic", "sms", "--count", "2", "x"]).await.done();
    lease(&server, "w1", &["sms"]).await;
    let mut queue = QueueServiceClient::new(server.node.channel());
    for number in 0..700 {
        let poll = DequeueRequest {
            namespace: "default".into(),
            demands: vec![TopicDemand { selector: Some(Selector::Topic("none".into())), max_items: 1 }],
            consumer: format!("{number:0200}"),
            ..Default::default()
        };
        queue.dequeue(poll).await.unwrap();
    }
    let found = server.run(&["consumer", "list", "-o", "json"]).await.json();
    assert_eq!(found["consumersCut"], true);
    let counted = server.run(&["consumer", "reset", "w1", "--dry-run"]).await.done();
    for line in ["3 of 5 items of mail would be released", "1 of 1 items of sms would be released"] {
        assert!(counted.contains(line), "{counted}");
    }
    server.run(&["consumer", "reset", "w1", "--yes"]).await.done();
    for (topic, leased) in [("mail", "2"), ("sms", "0")] {
        let found = server.run(&["topic", "get", topic, "-o", "json"]).await.json();
        assert_eq!(found["topic"]["leasedCount"], leased, "{topic}");
    }
    let none = server.run(&["consumer", "reset", "w1", "--yes"]).await.failed(3);
    assert!(none.contains("no consumer w1 has leases"), "{none}");
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
    // How long items waited and one was handled, as the table and the JSON have it.
    assert!(row("wait p99").contains(&"half") && row("handling").contains(&"half"), "{table}");
    assert!(row("last delivery")[2] != "-" && row("last ack")[2] != "-", "{table}");
    let seconds = |field: &str| -> f64 {
        let text = topic["topic"][field].as_str().unwrap_or_else(|| panic!("{field} in {topic}"));
        text.trim_end_matches('s').parse().unwrap()
    };
    assert!(seconds("waitP50") <= seconds("waitP99") && seconds("waitP99") < 60.0, "{topic}");
    assert!(seconds("handlingP50") <= seconds("handlingP99") && seconds("handlingP99") < 60.0, "{topic}");
    let wide = server.run(&["topic", "list", "-o", "wide"]).await.done();
    assert!(wide.contains("WAIT P99") && wide.contains("HANDLING P99"), "{wide}");
    let namespace = server.run(&["namespace", "get", "-o", "json"]).await.json();
    assert_eq!(namespace["namespace"]["counts"], topic["topic"]["counts"]);
}

#[tokio::test]
async fn history_has_a_line_for_each_series_and_refuses_what_is_not_kept() {
    let server = filled().await;
    // The first samples may have been taken before the last delivery.
    let begun = Instant::now();
    let table = loop {
        let table = server.run(&["history", "--range", "5m"]).await.done();
        let ready = table.lines().find(|line| line.starts_with("ready"));
        if ready.is_some_and(|line| line.split_whitespace().nth(1) == Some("4")) {
            break table;
        }
        assert!(begun.elapsed() < HISTORY_TIMEOUT, "{table}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    assert_eq!(table.lines().count(), 18, "{table}");
    assert!(table.contains("by 1s"), "{table}");
    let some = ["history", "--range", "5m", "--series", "acked,ready", "-o", "json"];
    let found = server.run(&some).await.json();
    let series: Vec<_> = found["lines"].as_array().unwrap().iter().map(|line| &line["series"]).collect();
    assert_eq!(series, [&json!("HISTORY_SERIES_ACKED"), &json!("HISTORY_SERIES_READY")]);
    assert!(server.run(&["history", "--step", "7s"]).await.failed(1).contains("step"));
    assert!(server.run(&["history", "--range", "2d"]).await.failed(1).contains("range"));
    assert!(server.run(&["history", "--topic", "mail", "--step", "1s"]).await.failed(1).contains("step"));
}
