//! Figures by which KEDA's trigger `metrics-api` scales consumers, read as KEDA reads them.

use std::time::Duration;

use forebay_proto::v1::{
    EnqueueItem, PauseTopicRequest, Side, admin_service_client::AdminServiceClient, enqueue_item::Schedule,
};
use serde_json::Value;

use super::{NAMESPACE, Wire, item, seconds};

/// The value of a trigger with `format: json` and this `valueLocation`. KEDA takes a number, or a quantity as
/// text. It does not take an answer without one: then it leaves the replicas as they are.
async fn value(wire: &Wire, value_location: &str) -> Result<f64, String> {
    let path = format!(
        "/forebay.v1.AdminService/GetTopic?connect=v1&encoding=json\
         &message=%7B%22namespace%22%3A%22{NAMESPACE}%22%2C%22topic%22%3A%22t%22%7D"
    );
    let (status, body) = wire.node.fetch(&path).await;
    if status != 200 {
        return Err(format!("{status}: {body}"));
    }
    let answer: Value = serde_json::from_str(&body).unwrap();
    match &answer[value_location] {
        Value::Number(number) => Ok(number.as_f64().unwrap()),
        // Digits alone are a quantity.
        Value::String(quantity) => quantity.parse().map_err(|_| format!("no quantity: {quantity}")),
        other => Err(format!("{value_location} is {other}")),
    }
}

async fn backlog(wire: &Wire) -> f64 {
    value(wire, "backlog").await.unwrap()
}

#[tokio::test]
async fn a_backlog_is_what_is_ready_or_leased() {
    let wire = Wire::start().await;
    assert!(value(&wire, "backlog").await.unwrap_err().starts_with("404"), "a topic that is not there");
    let later = EnqueueItem { schedule: Some(Schedule::Delay(seconds(600))), ..item("t") };
    wire.stored(vec![item("t"), item("t"), item("t"), item("t.more"), later]).await;
    assert_eq!(backlog(&wire).await, 3.0);
    tokio::time::sleep(Duration::from_millis(20)).await;
    let age = value(&wire, "oldestAgeSeconds").await.unwrap();
    assert!((0.02..60.0).contains(&age), "{age}");
    let taken = wire.take("t", 2).await;
    assert!(!taken.is_empty());
    assert_eq!(backlog(&wire).await, 3.0, "items that a consumer works on count");
    for delivery in &taken {
        assert_eq!(wire.ack(&delivery.receipt).await, None);
    }
    assert_eq!(backlog(&wire).await, 3.0 - taken.len() as f64);
    while backlog(&wire).await > 0.0 {
        assert_eq!(wire.ack(&wire.take_one("t").await.receipt).await, None);
    }
    assert_eq!(value(&wire, "oldestAgeSeconds").await, Ok(0.0), "nothing is ready");
}

#[tokio::test]
async fn a_topic_that_is_paused_asks_for_nobody() {
    let wire = Wire::start().await;
    wire.stored(vec![item("t"), item("t")]).await;
    wire.take_one("t").await;
    for (side, expected) in [(Side::Enqueue, 2.0), (Side::Dequeue, 0.0)] {
        let (namespace, topic) = (NAMESPACE.to_owned(), "t".to_owned());
        let pause = PauseTopicRequest { namespace, topic, sides: vec![side.into()], ..Default::default() };
        AdminServiceClient::new(wire.node.channel()).pause_topic(pause).await.unwrap();
        assert_eq!(backlog(&wire).await, expected, "{side:?}");
    }
    assert_eq!(value(&wire, "oldestAgeSeconds").await, Ok(0.0));
}

/// Part of a backlog would end consumers while a shard is away.
#[tokio::test]
async fn with_a_shard_away_there_is_no_figure() {
    let away = "\n[[shard]]\nid = 3\nurl = \"mysql://nobody@127.0.0.1:1/none\"\n";
    let wire = Wire::with_unmigrated(away).await;
    assert!(value(&wire, "backlog").await.unwrap_err().starts_with("503"));
    wire.stored(vec![EnqueueItem { shard: Some(1), ..item("t") }]).await;
    for location in ["backlog", "oldestAgeSeconds"] {
        assert_eq!(value(&wire, location).await, Err(format!("{location} is null")));
    }
}
