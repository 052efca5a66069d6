//! Engines over fake shards, for tests that look at one thing and need no whole run of the simulation.

use std::{sync::Arc, time::Duration};

use forebay_engine::{Demand, DequeueCall, Engine, NewItem, Settings};
use forebay_store::Shard;
use forebay_types::{Body, Clock, ClusterId, DeliveryPolicy, Schedule, ShardId, Timestamp};

use crate::{
    fake::{Db, Dice, FakeShard, Journal, Process},
    sim::SimClock,
};

/// The namespace of what these calls ask for.
pub const NAMESPACE: &str = "ns";

/// Fake shards, which outlive the engines over them. They are healthy, and take no time.
pub struct FakeShards {
    /// Has the true time.
    journal: Arc<Journal>,
    /// The shards' databases, in the order of their numbers.
    pub dbs: Vec<Db>,
}

impl FakeShards {
    /// When their time begins.
    pub const START: Timestamp = Timestamp::from_micros(1_790_000_000_000_000);

    /// Makes empty shards, each on a server of its own.
    pub async fn new(count: u32) -> Self {
        let journal = Arc::new(Journal::new(Self::START, false));
        let mut dbs = Vec::new();
        for id in (1..=count).map(ShardId) {
            let db = Db::new(id, journal.clone(), Dice::new(1));
            FakeShard::new(db.clone(), Process::new(0))
                .migrate(ClusterId::default())
                .await
                .expect("a healthy fake shard");
            dbs.push(db);
        }
        Self { journal, dbs }
    }

    /// The clocks of a machine whose wall clock is `ahead` of the true time.
    pub fn clock(&self, ahead: Duration) -> SimClock {
        SimClock::new(self.journal.clone(), ahead.as_micros() as i64)
    }

    /// Starts an engine with clocks that are right, and waits until it owns the shards.
    pub async fn start(&self, settings: Settings) -> Engine {
        self.start_with(settings, Arc::new(self.clock(Duration::ZERO))).await
    }

    /// The same with other clocks.
    pub async fn start_with(&self, settings: Settings, clock: Arc<dyn Clock>) -> Engine {
        let engine = self.start_as(&Process::new(1), "here:1", settings, clock);
        engine.ready().await;
        engine
    }

    /// Starts an engine as this process, which answers at `address`. It may have to wait for its shards.
    pub fn start_as(
        &self,
        process: &Process,
        address: &str,
        settings: Settings,
        clock: Arc<dyn Clock>,
    ) -> Engine {
        let shards = self.dbs.iter().map(|db| {
            let shard: Arc<dyn Shard> = Arc::new(FakeShard::new(db.clone(), process.clone()));
            (db.id, shard)
        });
        Engine::start(settings, address.into(), shards.collect(), clock, Arc::new(()), 7)
    }
}

/// An item without a body that is ready at once.
pub fn item(topic: &str) -> NewItem {
    NewItem {
        topic: topic.into(),
        priority: 0,
        body: Body::default(),
        schedule: Schedule::Now,
        lease: Duration::from_secs(30),
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

/// A dequeue from these topics that does not wait.
pub fn dequeue(topics: &[&str], max_items: usize) -> DequeueCall {
    let demand = |topic: &&str| Demand { topic: (*topic).into(), max_items };
    DequeueCall {
        namespace: NAMESPACE.into(),
        demands: topics.iter().map(demand).collect(),
        max_bytes: 3 << 20,
        ..DequeueCall::default()
    }
}
