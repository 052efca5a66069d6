//! Weights: topics of a prefix take turns by theirs, and namespaces are served by theirs.

use std::{cell::Cell, rc::Rc, time::Duration};

use forebay_engine::{DeliveredItem, DequeueCall, Engine, EnqueueCall, NewItem, Settings};
use forebay_testkit::{FakeShards, NAMESPACE, dequeue, fake::Faults, item};
use forebay_types::{PolicyChanges, SettingsRow, TopicName, TopicSettings};
use tokio::{
    task::LocalSet,
    time::{Instant, sleep},
};

/// Sets the weight of a topic or a pattern; with an empty one, of the namespace.
fn set(engine: &Engine, namespace: &str, topic: &str, version: u64, weight: Option<u32>) {
    let settings = TopicSettings { weight, ..TopicSettings::default() };
    let settings = vec![SettingsRow { name: TopicName::new(namespace, topic), version, settings }];
    engine.set_policies(PolicyChanges { settings, ..PolicyChanges::default() });
}

async fn enqueue(engine: &Engine, namespace: &str, items: Vec<NewItem>) -> usize {
    let call = EnqueueCall { namespace: namespace.into(), items, ..EnqueueCall::default() };
    engine.enqueue(call).await.map_or(0, |results| results.iter().filter(|result| result.is_ok()).count())
}

async fn take(engine: &Engine, prefix: &str, max_items: usize) -> Vec<DeliveredItem> {
    let call = DequeueCall { wait: Duration::from_secs(5), ..dequeue(&[prefix], max_items) };
    let items = engine.dequeue(call).await.expect("is answered");
    let receipts = items.iter().filter_map(|item| item.receipt).collect();
    engine.ack(NAMESPACE.into(), receipts, None).await.expect("is taken");
    items
}

#[tokio::test(start_paused = true)]
async fn topics_of_a_prefix_take_turns_by_weight() {
    let shards = FakeShards::new(2).await;
    let engine = shards.start(Settings::default()).await;
    set(&engine, NAMESPACE, "t/a", 1, Some(3));
    // The weight of the namespace is for other namespaces.
    set(&engine, NAMESPACE, "", 2, Some(50));
    for topic in ["t/a", "t/b"] {
        assert_eq!(enqueue(&engine, NAMESPACE, vec![item(topic); 200]).await, 200);
    }
    let of_a = async || {
        let items = take(&engine, "t/*", 40).await;
        (items.iter().filter(|item| &*item.topic == "t/a").count(), items.len())
    };
    assert_eq!(of_a().await, (30, 40));
    set(&engine, NAMESPACE, "t/a", 3, None);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(of_a().await, (20, 40));
    // A pattern's weight counts at once for topics that are in the order, but for those that have one of
    // their own.
    set(&engine, NAMESPACE, "t/*", 4, Some(3));
    set(&engine, NAMESPACE, "t/b", 5, Some(1));
    sleep(Duration::from_millis(1)).await;
    assert_eq!(of_a().await, (30, 40));
    set(&engine, NAMESPACE, "t/*", 6, None);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(of_a().await, (20, 40));
}

/// A topic with nine tenths of all items keeps no other waiting for longer than a round.
#[tokio::test(start_paused = true)]
async fn each_of_many_topics_has_its_turn() {
    const TOPICS: usize = 1_000;
    let shards = FakeShards::new(2).await;
    let engine = shards.start(Settings::default()).await;
    for _ in 0..9 {
        assert_eq!(enqueue(&engine, NAMESPACE, vec![item("t/many"); TOPICS]).await, TOPICS);
    }
    let small = (0..TOPICS).map(|number| item(&format!("t/{number}"))).collect();
    assert_eq!(enqueue(&engine, NAMESPACE, small).await, TOPICS);
    let mut order = Vec::new();
    while order.len() < 10 * TOPICS {
        let items = take(&engine, "t/*", 100).await;
        assert!(!items.is_empty(), "{} items came", order.len());
        order.extend(items.into_iter().map(|item| item.topic));
    }
    let last = order.iter().rposition(|topic| &**topic != "t/many").expect("has small ones");
    // The first poll begins while the order is filled: until then the topic with most items has more turns.
    assert!(last < TOPICS + TOPICS / 5, "the last one came as number {last}");
}

/// Produces for ten seconds of the runtime's time, with more calls under way than a batch takes.
async fn produced(engine: &Engine, namespaces: &[&'static str]) -> Vec<usize> {
    let end = Instant::now() + Duration::from_secs(10);
    let (local, mut counts) = (LocalSet::new(), Vec::new());
    for namespace in namespaces.iter().copied() {
        let count = Rc::new(Cell::new(0));
        for _ in 0..60 {
            let (engine, count) = (engine.clone(), count.clone());
            local.spawn_local(async move {
                while Instant::now() < end {
                    let stored = enqueue(&engine, namespace, vec![item("t"); 20]).await;
                    count.set(count.get() + stored);
                }
            });
        }
        counts.push(count);
    }
    local.await;
    counts.iter().map(|count| count.get()).collect()
}

#[tokio::test(start_paused = true)]
async fn namespaces_are_served_by_weight() {
    let shards = FakeShards::new(1).await;
    let settings = Settings { index_bytes: 1 << 20, batch_rows: 200, ..Settings::default() };
    let engine = shards.start(settings).await;
    shards.dbs[0].lock().tables.strict = false;
    shards.dbs[0].lock().faults = Faults { commit_ms: (20, 20), row_us: 20, ..Faults::instant() };
    let even = produced(&engine, &["a", "b"]).await;
    set(&engine, "b", "", 1, Some(3));
    let weighted = produced(&engine, &["a", "b"]).await;
    let ratio = |counts: &[usize]| counts[1] as f64 / counts[0] as f64;
    println!("{even:?}, with weight 3 for the second {weighted:?}");
    assert!((0.9..1.1).contains(&ratio(&even)) && (2.6..3.4).contains(&ratio(&weighted)));
}
