//! A node that is to take a shard over says that it is ready once it has read of it what can be read before.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use forebay_engine::{Duty, Engine, Intake, ListedShard, Reach, Settings, Setup};
use forebay_membership::is_ready_for;
use forebay_store::{
    Claim, MigrateError, Observation, ProbeOutcome, ReadAhead, Settings as ServerSettings, Shard,
    ShardConnections, ShardIdentity, StoreError,
};
use forebay_testkit::{
    FakeShards,
    fake::{FakeShard, Process},
};
use forebay_types::{ClusterId, ShardId};
use tokio::sync::Notify;

const SHARD: ShardId = ShardId(1);

/// A shard that is read ahead once it may be.
struct GatedShard {
    inner: FakeShard,
    /// A read has begun.
    begun: Arc<Notify>,
    /// It may go on.
    go_on: Arc<Notify>,
}

#[async_trait]
impl Shard for GatedShard {
    fn server(&self) -> String {
        self.inner.server()
    }

    async fn identity(&self) -> Result<Option<ShardIdentity>, StoreError> {
        self.inner.identity().await
    }

    async fn migrate(&self, cluster: ClusterId) -> Result<Vec<u32>, MigrateError> {
        self.inner.migrate(cluster).await
    }

    async fn check(&self) -> Result<ServerSettings, StoreError> {
        self.inner.check().await
    }

    async fn observe(&self) -> Result<Observation, StoreError> {
        self.inner.observe().await
    }

    async fn probe(&self) -> Result<ProbeOutcome, StoreError> {
        self.inner.probe().await
    }

    async fn read_ahead(&self) -> Result<ReadAhead, StoreError> {
        self.begun.notify_one();
        self.go_on.notified().await;
        self.inner.read_ahead().await
    }

    async fn take_over(
        &self,
        claim: &Claim,
        seen: &Observation,
    ) -> Result<Option<ShardConnections>, StoreError> {
        self.inner.take_over(claim, seen).await
    }
}

fn engine(shards: &FakeShards, number: usize, duty: Duty, shard: Arc<dyn Shard>) -> Engine {
    Engine::start_with(Setup {
        settings: Settings::default(),
        address: format!("node{number}:1"),
        shards: vec![ListedShard { id: SHARD, shard, intake: Intake::Open }],
        duty,
        reach: Reach::Own,
        clock: Arc::new(shards.clock(Duration::ZERO)),
        peers: Arc::new(()),
        tasks: Arc::new(()),
        seed: 7,
    })
}

async fn becomes_ready(engine: &Engine) {
    while !is_ready_for(engine, SHARD).await {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_is_ready_for_a_shard_once_it_has_read_it_ahead() {
    let shards = FakeShards::new(1).await;
    let of = |number| FakeShard::new(shards.dbs[0].clone(), Process::new(number));
    let owner = engine(&shards, 1, Duty::Own, Arc::new(of(1)));
    owner.ready().await;
    let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let held = GatedShard { inner: of(2), begun: begun.clone(), go_on: go_on.clone() };
    let next = engine(&shards, 2, Duty::Leave { successor: "node1:1".to_owned() }, Arc::new(held));
    next.set_duties([(SHARD, Duty::Own)].into());
    begun.notified().await;
    // It looks at the shard many times meanwhile.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(!is_ready_for(&next, SHARD).await);
    go_on.notify_one();
    becomes_ready(&next).await;
    owner.set_duties([(SHARD, Duty::Leave { successor: "node2:1".to_owned() })].into());
    next.served().wait_for(|served| served.owned == 1).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_owner_does_not_wait_for_a_read_for_ever() {
    let shards = FakeShards::new(1).await;
    let of = |number| FakeShard::new(shards.dbs[0].clone(), Process::new(number));
    let owner = engine(&shards, 1, Duty::Own, Arc::new(of(1)));
    owner.ready().await;
    let held = GatedShard { inner: of(2), begun: Arc::default(), go_on: Arc::default() };
    let next = engine(&shards, 2, Duty::Leave { successor: "node1:1".to_owned() }, Arc::new(held));
    next.set_duties([(SHARD, Duty::Own)].into());
    tokio::time::timeout(Duration::from_secs(5), becomes_ready(&next)).await.expect("after 3 s");
    owner.set_duties([(SHARD, Duty::Leave { successor: "node2:1".to_owned() })].into());
    next.served().wait_for(|served| served.owned == 1).await.unwrap();
}
