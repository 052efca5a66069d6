//! A node over SQLite shards in a folder of their own, and the calls that most tests make.

use std::{sync::Arc, time::Duration};

use forebay_engine::*;
use forebay_store::{Shard, SqliteShard};
use forebay_types::{Body, ClusterId, DeliveryPolicy, Limits, Schedule, ShardId, SystemClock};

/// A node.
pub struct Queue {
    /// Its engine.
    pub engine: Engine,
    /// Where its shards are.
    pub folder: tempfile::TempDir,
    /// How many it has.
    shards: u32,
}

impl Queue {
    /// A node over new shards.
    pub async fn start(shards: u32) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), shards, Settings::default()).await
    }

    /// A node over the shards of a folder.
    pub async fn start_in(folder: tempfile::TempDir, shards: u32, settings: Settings) -> Self {
        let mut list: Vec<(ShardId, Arc<dyn Shard>)> = Vec::new();
        for id in 1..=shards {
            let shard = SqliteShard::new(ShardId(id), folder.path().join(format!("{id}.db")));
            shard.migrate(ClusterId::default()).await.unwrap();
            list.push((ShardId(id), Arc::new(shard)));
        }
        let clock = Arc::new(SystemClock::default());
        let engine = Engine::start(settings, "here:1".into(), list, clock, Arc::new(()), 7);
        engine.ready().await;
        Self { engine, folder, shards }
    }

    /// Stops the node, and starts another one over its shards.
    pub async fn restart(self) -> Self {
        self.engine.stop().await;
        Self::start_in(self.folder, self.shards, Settings::default()).await
    }

    /// Enqueues items, all of which are stored.
    pub async fn put(&self, items: Vec<NewItem>) -> Vec<EnqueueOutcome> {
        let call = EnqueueCall { namespace: "ns".into(), items, ..EnqueueCall::default() };
        self.engine.enqueue(call).await.unwrap().into_iter().map(|result| result.unwrap()).collect()
    }

    /// Dequeues up to `max` items, and waits up to `wait` milliseconds for the first.
    pub async fn get(&self, max: usize, wait: u64) -> Vec<DeliveredItem> {
        let call = DequeueCall {
            namespace: "ns".into(),
            demands: vec![Demand { topic: "t".into(), max_items: max }],
            wait: Duration::from_millis(wait),
            consumer: "test".into(),
            max_bytes: 3 << 20,
            ..DequeueCall::default()
        };
        self.engine.dequeue(call).await.unwrap()
    }

    /// Acks deliveries.
    pub async fn ack(&self, items: &[DeliveredItem]) -> Vec<SettlementResult> {
        let receipts = items.iter().map(|item| item.receipt.unwrap()).collect();
        self.engine.ack("ns".into(), receipts, None).await.unwrap()
    }
}

/// A new item of topic `t`.
pub fn item(priority: i32, payload: &str) -> NewItem {
    let limits = Limits::default();
    NewItem {
        topic: "t".into(),
        priority,
        body: Body { payload: payload.to_owned().into(), ..Body::default() },
        schedule: Schedule::Now,
        lease: limits.lease_default,
        lease_is_default: false,
        ttl: None,
        policy: DeliveryPolicy::AtLeastOnce,
        max_attempts: 16,
        attempts_are_default: false,
        dedupe_key: None,
        shard: None,
        rank: None,
    }
}

/// The payloads of items.
pub fn payloads(items: &[DeliveredItem]) -> Vec<&str> {
    items.iter().map(|item| std::str::from_utf8(&item.body.payload).unwrap()).collect()
}
