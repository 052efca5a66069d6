//! Shards with very many topics are taken over and lost: they are served at once, and complete in the end.

use std::{sync::atomic::Ordering, time::Duration};

use forebay_engine::{Demand, DequeueCall, Engine, Settings};
use forebay_types::Reason;

use crate::store::{ManyTopics, TENANTS, active, listed, start};

const TOPICS: u64 = 20_000;

/// As little as possible in each turn.
fn slow() -> Settings {
    Settings { topics_per_turn: 1, ..Settings::default() }
}

/// Dequeues the one item of a topic of the first shard, once that is owned.
async fn deliver(engine: &Engine, topic: u64) -> usize {
    let call = DequeueCall {
        namespace: format!("tenant-{}", topic % TENANTS).into(),
        demands: vec![Demand { topic: format!("orders-1-{topic:010}").into(), max_items: 1 }],
        wait: Duration::from_secs(20),
        consumer: "test".into(),
        max_bytes: 1 << 20,
        ..DequeueCall::default()
    };
    loop {
        match engine.dequeue(call.clone()).await {
            Ok(items) => return items.len(),
            Err(refusal) => assert_eq!(refusal.reason, Reason::ShardUnavailable, "{refusal:?}"),
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn a_topic_is_served_before_all_of_them_are_listed() {
    let shard = ManyTopics { id: 1, topics: TOPICS, ready: 1, ..ManyTopics::default() };
    let engine = start(slow(), vec![shard]).await;
    for topic in [1, TOPICS / 2, TOPICS] {
        assert_eq!(deliver(&engine, topic).await, 1);
    }
    let listed_yet = engine.status().await.unwrap().topic_count as u64;
    assert!((3..TOPICS).contains(&listed_yet), "{listed_yet} are listed");
    // A call for all topics waits until all are listed.
    let page = active(&engine, 5, "", TOPICS as usize).await;
    assert_eq!((page.topics.len() as u64, page.next.is_some()), (TOPICS / TENANTS, false));
    listed(&engine, TOPICS).await;
}

#[tokio::test]
async fn a_shard_that_is_lost_and_back_at_once_has_all_of_its_topics() {
    let shard = ManyTopics { id: 1, topics: TOPICS, ready: 1, ..ManyTopics::default() };
    let engine = start(slow(), vec![shard.clone()]).await;
    listed(&engine, TOPICS).await;
    shard.lost.store(true, Ordering::Relaxed);
    // The topics leave while they come back.
    while engine.status().await.unwrap().topic_count as u64 == TOPICS {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(deliver(&engine, TOPICS).await, 1);
    listed(&engine, TOPICS).await;
    let page = active(&engine, 5, "", TOPICS as usize).await;
    assert_eq!((page.topics.len() as u64, page.next.is_some()), (TOPICS / TENANTS, false));
    assert_eq!(deliver(&engine, TOPICS - 1).await, 1);
}
