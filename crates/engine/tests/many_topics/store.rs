//! A store that has as many topics as a test wants, and keeps nothing.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use forebay_engine::*;
use forebay_store::{
    Batch, Claim, CommitError, DedupeHit, DueRow, Fence, Heartbeat, HighWaterMarks, ItemLocation,
    MigrateError, NamespaceTally, Observation, Outcome, ProbeOutcome, ReadAhead, Reader, ReadyRow, Renewal,
    Settings as ServerSettings, Shard, ShardConnections, ShardIdentity, ShardSnapshot, StoreError, Sweep,
    TopicCounts, TopicRow, TopicTally, Writer,
};
use forebay_types::{
    Body, ClusterId, DeliveryPolicy, Incarnation, ItemAttributes, Key, Namespace, Refusal, Seq, ShardId,
    SystemClock, Timestamp, TopicId, TopicName,
};

/// Tenants that share the topics.
pub const TENANTS: u64 = 10;

/// A shard with so many topics.
#[derive(Debug, Clone, Default)]
pub struct ManyTopics {
    /// Its number.
    pub id: u32,
    /// How many.
    pub topics: u64,
    /// How many ready items each of them has: one or none.
    pub ready: i64,
    /// Nothing is heard of its heartbeat, as if the shard could not be reached any more.
    pub cut_off: bool,
    /// The next renewal of the claim finds another owner, who is gone at once.
    pub lost: Arc<AtomicBool>,
}

/// Everything that a node is told of a shard after the take-over: nothing.
struct Connection(ManyTopics);

#[async_trait]
impl Shard for ManyTopics {
    fn server(&self) -> String {
        format!("memory {}", self.id)
    }

    async fn identity(&self) -> Result<Option<ShardIdentity>, StoreError> {
        Ok(None)
    }

    async fn migrate(&self, _: ClusterId) -> Result<Vec<u32>, MigrateError> {
        Ok(Vec::new())
    }

    async fn check(&self) -> Result<ServerSettings, StoreError> {
        Ok(ServerSettings { batch_bytes: 4 << 20, ..ServerSettings::default() })
    }

    async fn observe(&self) -> Result<Observation, StoreError> {
        Ok(Observation { epoch: 1, orphaned: true, ..Observation::default() })
    }

    async fn probe(&self) -> Result<ProbeOutcome, StoreError> {
        Ok(ProbeOutcome::Embedded)
    }

    async fn read_ahead(&self) -> Result<ReadAhead, StoreError> {
        Ok(ReadAhead::default())
    }

    async fn take_over(&self, _: &Claim, _: &Observation) -> Result<Option<ShardConnections>, StoreError> {
        let topic = TopicId(u32::try_from(self.topics).unwrap());
        let marks = HighWaterMarks { seq: Seq(self.topics), topic, rank: 0, time: Timestamp::MIN };
        Ok(Some(ShardConnections {
            fence: Fence { epoch: 2, incarnation: Incarnation([1; 16]), batch: 0, marks },
            behind: None,
            writer: Box::new(Connection(self.clone())),
            heartbeat: Box::new(Connection(self.clone())),
            reader: Arc::new(Connection(self.clone())),
        }))
    }
}

#[async_trait]
impl Writer for Connection {
    async fn commit(&mut self, _: &Batch) -> Result<(), CommitError> {
        Ok(())
    }

    async fn resolve(&mut self, _: u64) -> Result<Outcome, StoreError> {
        Ok(Outcome::Committed)
    }

    async fn release(&mut self, _: &str) -> Result<(), StoreError> {
        Ok(())
    }
}

#[async_trait]
impl Heartbeat for Connection {
    async fn renew(&mut self) -> Result<Renewal, StoreError> {
        if self.0.cut_off {
            std::future::pending::<()>().await;
        }
        if self.0.lost.swap(false, Ordering::Relaxed) {
            return Ok(Renewal::Lost);
        }
        Ok(Renewal::Renewed { server_time: None })
    }

    async fn create_generation(&mut self, _: u64) -> Result<(), StoreError> {
        Ok(())
    }

    async fn drop_generation(&mut self, _: u64) -> Result<(), StoreError> {
        Ok(())
    }
}

#[async_trait]
impl Reader for Connection {
    async fn load(&self, _: ReadAhead) -> Result<ShardSnapshot, StoreError> {
        let tenants: Vec<Namespace> = (0..TENANTS).map(|tenant| format!("tenant-{tenant}").into()).collect();
        let shard = self.0.id;
        let row = |id: u64| TopicRow {
            id: TopicId(u32::try_from(id).unwrap()),
            name: TopicName::new(
                tenants[(id % TENANTS) as usize].clone(),
                format!("orders-{shard}-{id:010}"),
            ),
            counts: TopicCounts { ready: self.0.ready, ..TopicCounts::default() },
        };
        let topics = (1..=self.0.topics).map(row).collect();
        Ok(ShardSnapshot { topics, ..ShardSnapshot::default() })
    }

    async fn tallies(&self, _: TopicId, _: usize) -> Result<Vec<(TopicId, TopicTally)>, StoreError> {
        Ok(Vec::new())
    }

    async fn namespace_tallies(&self, _: &str, _: usize) -> Result<Vec<NamespaceTally>, StoreError> {
        Ok(Vec::new())
    }

    async fn ready(
        &self,
        topic: TopicId,
        _: Key,
        _: usize,
        bodies: usize,
    ) -> Result<Vec<ReadyRow>, StoreError> {
        let seq = Seq(topic.0.into());
        let body = Body { payload: vec![7; 32].into(), ..Body::default() };
        let attributes = ItemAttributes {
            enqueued_at: Timestamp::from_micros(1),
            expires_at: None,
            lease_ms: 30_000,
            max_attempts: 16,
            policy: DeliveryPolicy::AtLeastOnce,
            deliveries: 0,
            failures: 0,
            redrives: 0,
            updated_by: 0,
            waits: forebay_types::Waits::Unsaid,
        };
        let key = Key { priority: 0, rank: i64::from(topic.0), seq };
        let body = (bodies >= 32).then_some(body);
        Ok(vec![ReadyRow { key, attributes, bytes: 32, body, unreadable: false }])
    }

    async fn bodies(&self, seqs: &[Seq]) -> Result<Vec<(Seq, Body)>, StoreError> {
        Ok(seqs.iter().map(|seq| (*seq, Body::default())).collect())
    }

    async fn due(&self, _: Sweep, _: Timestamp, _: Timestamp, _: usize) -> Result<Vec<DueRow>, StoreError> {
        Ok(Vec::new())
    }

    async fn next_due(&self, _: Sweep, _: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        Ok(None)
    }

    async fn dedupe(&self, _: &[u64], _: &[[u8; 16]]) -> Result<Vec<DedupeHit>, StoreError> {
        Ok(Vec::new())
    }

    async fn locate(&self, seqs: &[Seq]) -> Result<Vec<ItemLocation>, StoreError> {
        Ok(vec![ItemLocation::Gone; seqs.len()])
    }
}

/// Starts a node over shards with so many topics each.
pub async fn start(settings: Settings, shards: Vec<ManyTopics>) -> Engine {
    let shards = shards.into_iter().map(|shard| (ShardId(shard.id), Arc::new(shard) as Arc<dyn Shard>));
    let clock = Arc::new(SystemClock::default());
    let engine = Engine::start(settings, "here:1".into(), shards.collect(), clock, Arc::new(()), 7);
    engine.ready().await;
    engine
}

/// Waits until the node's directory has this many topics.
pub async fn listed(engine: &Engine, topics: u64) {
    while engine.status().await.unwrap().topic_count as u64 != topics {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// The first topics of a tenant that begin so.
pub async fn ask(engine: &Engine, tenant: u64, prefix: &str, limit: usize) -> Result<ActiveTopics, Refusal> {
    let namespace = format!("tenant-{tenant}").into();
    engine
        .active_topics(ActiveTopicsCall {
            namespace,
            limit,
            after: None,
            prefix: prefix.to_owned(),
            named: Vec::new(),
        })
        .await
}

/// The same. Repeats the call until the node knows the answer.
pub async fn active(engine: &Engine, tenant: u64, prefix: &str, limit: usize) -> ActiveTopics {
    loop {
        match ask(engine, tenant, prefix, limit).await {
            Ok(page) => return page,
            Err(refusal) => assert_eq!(refusal.reason.as_str(), "SHARD_UNAVAILABLE", "{refusal:?}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
