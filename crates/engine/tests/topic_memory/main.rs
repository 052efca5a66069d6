//! The memory of a topic, measured as what the process has allocated and touched. So this test has a process
//! of its own.

#[path = "../many_topics/store.rs"]
mod store;

use std::time::Duration;

use forebay_engine::Settings;

use self::store::{ManyTopics, TENANTS, active, listed, start};

/// A topic may cost so much, whatever holds it: with one item, its name, and its place in every list.
const TOPIC_BYTES: u64 = 1_024;
/// Bytes that the ready index counts for an item without a body.
const ITEM_BYTES: u64 = 320;
/// Shards of the node.
const SHARDS: u32 = 4;

/// Bytes that this process has allocated and touched. Pages of the program, which come into memory as they
/// are first run, are no topic's.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1_024
}

/// `FOREBAY_TOPICS` sets another number, to look at a million.
#[tokio::test]
async fn a_topic_costs_at_most_a_kibibyte() {
    let count = std::env::var("FOREBAY_TOPICS").map_or(100_000, |count| count.parse::<u64>().unwrap());
    let before = resident();
    let topics = count / u64::from(SHARDS);
    let shards =
        (1..=SHARDS).map(|id| ManyTopics { id, topics, ready: 1, ..ManyTopics::default() }).collect();
    // The items' own memory is in `index_bytes`. One item a topic is part of the topic here.
    let settings = Settings { index_bytes: 1 << 30, ..Settings::default() };
    let engine = start(settings, shards).await;
    let mut status = engine.status().await.unwrap();
    while status.shards.iter().map(|shard| shard.index_bytes as u64).sum::<u64>() < count * ITEM_BYTES {
        tokio::time::sleep(Duration::from_millis(20)).await;
        status = engine.status().await.unwrap();
    }
    listed(&engine, count).await;
    for tenant in 0..TENANTS {
        assert_eq!(active(&engine, tenant, "", 1_000).await.topics.len(), 1_000);
    }
    let each = (resident() - before) / count;
    println!("{each} bytes a topic, {} MiB in all", resident() >> 20);
    assert!(each <= TOPIC_BYTES, "a topic costs {each} bytes");
}
