//! One measurement: a node is filled, and every kind of event happens to it.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use anyhow::Context as _;
use forebay_engine::{ActiveTopicsCall, Engine, Settings, Status};
use forebay_store::Shard;
use forebay_types::{ShardId, TopicName};

use super::{
    clock::CpuClock,
    load::{PROBE, WAITED_FOR, enqueue, park, park_prefixes, queue, take, tenant},
    store::NullShard,
    turns::Turns,
};

/// Single enqueues of one measurement.
const ENQUEUES: u32 = 20_000;
/// How long a commit of a slow shard takes: no longer than what the engine takes for an outage.
const SLOW_COMMIT: Duration = Duration::from_millis(900);

/// Load of a node.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// Shards, each on a server of its own.
    pub shards: u32,
    /// Topics over all shards, with a ready item each.
    pub topics: u32,
    /// Polls that wait.
    pub polls: usize,
    /// The single enqueues are handed to these polls.
    pub handed_off: bool,
    /// Enqueues that wait for a commit of the last shard, which is slow.
    pub queued: usize,
    /// All shards are slow, and the queued enqueues name none. Then no single enqueue is measured.
    pub all_slow: bool,
    /// Open leases over all shards.
    pub leases: u64,
    /// Prefixes that are polled beside the single enqueues, and as many that cover topics, at most
    /// [`PREFIXES_MAX`].
    pub prefixes: usize,
}

/// Prefixes that cover topics of a shard.
const PREFIXES_MAX: usize = 10;

impl Default for Setup {
    fn default() -> Self {
        Self {
            shards: 4,
            topics: 10,
            polls: 0,
            handed_off: false,
            queued: 0,
            all_slow: false,
            leases: 0,
            prefixes: 0,
        }
    }
}

/// Measurements at a point.
#[derive(Debug, Clone, Copy)]
pub struct PointMeasurements {
    /// Time in turns for each enqueue; zero where none was measured.
    pub per_enqueue: Duration,
    /// The longest turn of each step, see [`STEPS`].
    pub longest: [Duration; STEPS.len()],
}

/// The steps of a measurement: shards are taken over and what they hold is put in place; polls and enqueues
/// come; single items are enqueued; active topics are listed; the last shard is lost and taken over again;
/// the engine stops.
pub const STEPS: [&str; 6] = ["start", "fill", "enqueue", "list", "lose", "stop"];

impl PointMeasurements {
    /// The better of two measurements of one setup: what is the engine's own is in both.
    pub fn min(self, other: Self) -> Self {
        let longest = std::array::from_fn(|step| self.longest[step].min(other.longest[step]));
        Self { per_enqueue: self.per_enqueue.min(other.per_enqueue), longest }
    }

    /// The longest turn of all steps.
    pub fn longest(&self) -> Duration {
        self.longest.into_iter().max().unwrap_or_default()
    }
}

/// Measures at one point.
pub async fn measure(setup: Setup) -> anyhow::Result<PointMeasurements> {
    let shards: Vec<Arc<NullShard>> =
        (1..=setup.shards).map(|number| Arc::new(shard(setup, number))).collect();
    let named = shards.iter().map(|shard| (shard.id, shard.clone() as Arc<dyn Shard>)).collect();
    let clock = Arc::new(CpuClock);
    let engine = Engine::start(Settings::default(), "bench:1".to_owned(), named, clock, Arc::new(()), 1);
    let mut turns = Turns::of(engine);
    turns.rest(|status| status.topic_count >= setup.topics as usize).await.context("start")?;
    let start = turns.step();

    let polls = turns.during(|engine| async move { park(&engine, setup.polls).await }).await?;
    let prefixes = turns.during(|engine| async move { park_prefixes(&engine, setup.prefixes).await }).await?;
    let last = (!setup.all_slow).then_some(ShardId(setup.shards));
    let queued = turns.during(|engine| async move { queue(&engine, setup.queued, last).await }).await?;
    let fill = turns.step();

    let count = if setup.all_slow { 0 } else { ENQUEUES };
    let (namespace, topic) = if setup.handed_off { (tenant(0), WAITED_FOR) } else { (PROBE.into(), PROBE) };
    let name = TopicName::new(namespace, topic);
    let before = turns.look().await?.turns.busy();
    for _ in 0..count {
        enqueue(&turns.engine, name.clone(), None).await?;
    }
    let per_enqueue = (turns.look().await?.turns.busy() - before).checked_div(count).unwrap_or_default();
    let enqueued = turns.step();

    list(&mut turns, setup.prefixes).await?;
    let listed = turns.step();
    lose(&mut turns, &shards).await.context("lose")?;
    let lost = turns.step();
    let stopping = turns.engine.clone();
    let stopping = tokio::spawn(async move { stopping.stop().await });
    while turns.look().await.is_ok() {}
    stopping.await?;
    for waiting in polls.into_iter().chain(prefixes).chain(queued) {
        waiting.await?;
    }
    Ok(PointMeasurements { per_enqueue, longest: [start, fill, enqueued, listed, lost, turns.step()] })
}

/// One of the shards.
fn shard(setup: Setup, number: u32) -> NullShard {
    let share = |whole: u32| whole / setup.shards + u32::from(number <= whole % setup.shards);
    let slow = setup.queued > 0 && (setup.all_slow || number == setup.shards);
    NullShard {
        id: ShardId(number),
        topics: share(setup.topics),
        leases: setup.leases / u64::from(setup.shards),
        commit: if slow { SLOW_COMMIT } else { Duration::ZERO },
        lost: Arc::default(),
        taken_over: Arc::default(),
    }
}

/// Lists active topics, and takes items of topics that begin alike. The first pages may have to wait until
/// every head is known.
async fn list(turns: &mut Turns, prefixes: usize) -> anyhow::Result<()> {
    for _ in 0..5 {
        let call = ActiveTopicsCall {
            namespace: NullShard::NAMESPACE.into(),
            prefix: String::new(),
            after: None,
            limit: 1_000,
            named: Vec::new(),
        };
        let page = |engine: Engine| async move { Ok(engine.active_topics(call).await) };
        let _ = turns.during(page).await?;
    }
    for bytes in 0..prefixes.min(PREFIXES_MAX) {
        let prefix = &"topic-001-"[..bytes];
        turns.during(|engine| async move { take(&engine, NullShard::NAMESPACE, prefix).await }).await?;
    }
    Ok(())
}

/// The last shard is lost, and taken over again. What waited for it is answered.
async fn lose(turns: &mut Turns, shards: &[Arc<NullShard>]) -> anyhow::Result<()> {
    let shard = shards.last().context("there is a shard")?;
    let topics = turns.look().await?.topic_count;
    let before = shard.taken_over.load(Ordering::Relaxed);
    shard.lost.store(true, Ordering::Relaxed);
    let is_back = |status: &Status| {
        // A topic of new items is not in the rows that the shard is taken over with.
        shard.taken_over.load(Ordering::Relaxed) > before && status.topic_count + 100 >= topics
    };
    turns.rest(is_back).await
}
