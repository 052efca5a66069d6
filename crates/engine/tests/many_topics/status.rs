//! A status costs the same however many topics there are.

use std::time::Duration;

use forebay_engine::Settings;
use tokio::time::Instant;

use crate::store::{ManyTopics, listed, start};

/// A debug build looks at a topic in about a microsecond: all of them would take far longer.
const STATUS_MAX: Duration = Duration::from_millis(50);

#[tokio::test]
async fn a_status_does_not_look_at_every_topic() {
    let shards =
        (1..=2).map(|id| ManyTopics { id, topics: 150_000, ready: 0, ..ManyTopics::default() }).collect();
    let engine = start(Settings::default(), shards).await;
    listed(&engine, 300_000).await;
    let first = engine.status().await.unwrap();
    assert_eq!((first.topic_count, first.topics.len()), (300_000, 1_000));
    assert!(first.topics.is_sorted_by_key(|topic| (topic.namespace.clone(), topic.topic.clone())));
    let began = Instant::now();
    for _ in 0..20 {
        assert_eq!(engine.status().await.unwrap().topics, first.topics);
    }
    let each = began.elapsed() / 20;
    assert!(each < STATUS_MAX, "a status takes {each:?}");
}
