//! Active topics of a node with very many of them.

use std::time::Duration;

use forebay_engine::{ActiveTopics, Settings};
use forebay_types::Reason;

use crate::store::{ManyTopics, active, ask, start};

#[tokio::test]
async fn a_page_with_a_prefix_is_found_among_very_many_topics() {
    let shards = vec![ManyTopics { id: 1, topics: 50_000, ready: 1, ..ManyTopics::default() }];
    let engine = start(Settings::default(), shards).await;
    let page = active(&engine, 3, "orders-1-0000049", 10).await;
    let names: Vec<&str> = page.topics.iter().map(|topic| &*topic.position.topic).collect();
    assert_eq!(
        (names[0], names[9], page.next.is_some()),
        ("orders-1-0000049003", "orders-1-0000049093", true)
    );
    assert_eq!(active(&engine, 3, "orders-1-0000049", 1_000).await.topics.len(), 100);
    assert_eq!(active(&engine, 3, "nothing", 1_000).await, ActiveTopics::default());
}

#[tokio::test]
async fn who_may_have_lost_a_shard_does_not_say_what_is_active_there() {
    let shards = vec![ManyTopics { id: 1, topics: 10, ready: 1, cut_off: true, ..ManyTopics::default() }];
    let engine = start(Settings::default(), shards).await;
    assert_eq!(
        active(&engine, 0, "", 1).await.topics.len(),
        1,
        "the take-over itself is trusted for a while"
    );
    let refusal = loop {
        match ask(&engine, 0, "", 1).await {
            Ok(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            Err(refusal) => break refusal,
        }
    };
    assert_eq!(refusal.reason, Reason::ShardUnavailable);
    let lately = "shard 1 has not confirmed lately that this node owns it";
    assert!([lately, "no shard of this node answers"].contains(&&*refusal.message), "{}", refusal.message);
}
