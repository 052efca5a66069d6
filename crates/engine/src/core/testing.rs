//! A node's memory for unit tests.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use forebay_store::{
    DedupeHit, DueRow, ErrorClass, ItemLocation, NamespaceTally, ReadAhead, Reader, ReadyRow, ShardSnapshot,
    StoreError, Sweep, TopicTally,
};
use forebay_types::{Body, Clock, Key, Monotonic, Seq, ShardId, SystemClock, Timestamp, Topic, TopicId};
use rand::{SeedableRng, rngs::StdRng};
use tokio::sync::{
    mpsc::{UnboundedReceiver, unbounded_channel},
    watch,
};

use super::{
    Core,
    health::Health,
    polls::Poll,
    slot::{ReadableShard, Slot},
};
use crate::{
    api::{Demand, DequeueCall, Duty, Intake, Reach, Settings, ShardCounts, ShardState},
    clock::NodeTime,
    index::{ServerIndex, ShardIndex},
    io::{
        launch::{Launcher, TaskHandle},
        reads::Reads,
        take_over_room::TakeOverRoom,
    },
    messages::{event::ShardEvents, pulse::LoopPulse, reply::Reply, shard::ShardOrder},
    shard::tests,
};

/// A shard that can't be read.
struct Unreadable;

fn unreadable<T>() -> Result<T, StoreError> {
    Err(StoreError::new(ErrorClass::Disconnected, "a test does not read"))
}

#[async_trait]
impl Reader for Unreadable {
    async fn load(&self, _: ReadAhead) -> Result<ShardSnapshot, StoreError> {
        unreadable()
    }

    async fn tallies(&self, _: TopicId, _: usize) -> Result<Vec<(TopicId, TopicTally)>, StoreError> {
        unreadable()
    }

    async fn namespace_tallies(&self, _: &str, _: usize) -> Result<Vec<NamespaceTally>, StoreError> {
        unreadable()
    }

    async fn ready(&self, _: TopicId, _: Key, _: usize, _: usize) -> Result<Vec<ReadyRow>, StoreError> {
        unreadable()
    }

    async fn bodies(&self, _: &[Seq]) -> Result<Vec<(Seq, Body)>, StoreError> {
        unreadable()
    }

    async fn due(&self, _: Sweep, _: Timestamp, _: Timestamp, _: usize) -> Result<Vec<DueRow>, StoreError> {
        unreadable()
    }

    async fn next_due(&self, _: Sweep, _: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        unreadable()
    }

    async fn dedupe(&self, _: &[u64], _: &[[u8; 16]]) -> Result<Vec<DedupeHit>, StoreError> {
        unreadable()
    }

    async fn locate(&self, _: &[Seq]) -> Result<Vec<ItemLocation>, StoreError> {
        unreadable()
    }
}

/// A clock at which each look takes a millisecond.
#[derive(Default)]
pub(crate) struct SlowClock(AtomicU64);

impl Clock for SlowClock {
    fn wall(&self) -> Timestamp {
        Timestamp::from_micros(0)
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::from_start(Duration::from_millis(self.0.fetch_add(1, Ordering::Relaxed)))
    }
}

impl Core {
    /// With one shard, which the node does not own.
    pub fn for_test() -> Self {
        Self::for_test_with(Arc::new(SystemClock::default()))
    }

    /// The same with this clock.
    pub fn for_test_with(clock: Arc<dyn Clock>) -> Self {
        let time = NodeTime::new(clock.clone());
        let health = Health::new(ShardId(1), "db1:3306".into(), time.monotonic());
        let launcher = Launcher {
            address: "here:1".into(),
            peers: Arc::new(()),
            clock,
            tasks: Arc::new(()),
            pulse: LoopPulse::default(),
            shard_lease: Duration::from_secs(1),
            duty: Duty::Own,
            events: unbounded_channel().0,
            take_overs: TakeOverRoom::default(),
        };
        let (rng, served) = (StdRng::seed_from_u64(1), watch::channel(ShardCounts::default()).0);
        let mut core =
            Self::new(Settings::default(), time, rng, launcher, Reach::Own, Arc::default(), served);
        let task = TaskHandle { orders: unbounded_channel().0, duty: watch::channel(Duty::Own).0 };
        core.slots.add(Slot::new(ShardId(1), ServerIndex(0), health, task, Intake::Open));
        core.loads.add_shard();
        core.homes.begin(vec![ShardId(1)], Vec::new());
        core
    }

    /// With one shard, which the node owns in epoch 3, and the inbox of its task.
    pub fn for_test_with_shard() -> (Self, UnboundedReceiver<ShardOrder>) {
        let mut core = Self::for_test();
        let (tasks, orders) = unbounded_channel();
        let events = ShardEvents { shard: ShardIndex(0), term: 0, events: core.events.clone() };
        let reads = Reads::new(Arc::new(Unreadable), events, Arc::new(()));
        let at = core.time.monotonic();
        let mut shard = tests::shard();
        shard.renewed(at);
        let slot = &mut core.slots[ShardIndex(0)];
        slot.holding = Some(Box::new(ReadableShard { shard, reads }));
        (slot.state, slot.tasks) = (ShardState::Owned, tasks);
        (core, orders)
    }

    /// A poll of one topic, whose caller is gone. So it is forgotten as soon as it is looked at.
    pub fn add_poll(&mut self, id: u64, topic: Topic, deadline: Monotonic) {
        let call = DequeueCall {
            namespace: "ns".into(),
            demands: vec![Demand { topic, max_items: 1 }],
            wait: Duration::from_secs(60),
            max_bytes: 1,
            ..DequeueCall::default()
        };
        self.polls.insert(id, Poll::new(call, Reply::channel().0, deadline));
    }
}
