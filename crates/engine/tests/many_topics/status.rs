//! A status costs the same however many topics there are.

use std::time::Duration;

use forebay_engine::{Engine, Settings};
use tokio::time::Instant;

use crate::store::{ManyTopics, listed, start};

/// How often a status is timed.
const ROUNDS: usize = 20;
/// The same status takes so many times as long, at most, where there are 30 times as many topics.
const RATIO_MAX: u32 = 5;

/// An engine with this many topics in each of two shards.
async fn with_topics(each: u64) -> Engine {
    let shard = |id| ManyTopics { id, topics: each, ready: 0, ..ManyTopics::default() };
    let engine = start(Settings::default(), (1..=2).map(shard).collect()).await;
    listed(&engine, 2 * each).await;
    engine
}

/// A status, and how long it took.
async fn timed(engine: &Engine, topics: usize) -> Duration {
    let began = Instant::now();
    let status = engine.status().await.unwrap();
    let took = began.elapsed();
    assert_eq!(status.topic_count, topics);
    took
}

#[tokio::test]
async fn a_status_does_not_look_at_every_topic() {
    // Each status looks at 1,000 topics. The last of a round at the few looks at 500, and none at nothing.
    let (few, many) = (with_topics(5_250).await, with_topics(150_000).await);
    // In turns, and the shortest of each: a machine that does much else slows both down.
    let (mut of_few, mut of_many) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        of_few = of_few.min(timed(&few, 10_500).await);
        of_many = of_many.min(timed(&many, 300_000).await);
    }
    println!("{of_few:?} with 10,500 topics, {of_many:?} with 300,000");
    assert!(of_many < of_few * RATIO_MAX, "{of_many:?} with 300,000 topics, {of_few:?} with 10,500");
}
