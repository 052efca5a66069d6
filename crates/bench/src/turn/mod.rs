//! What a turn of the engine's event loop costs, over a store that does nothing: against the numbers of
//! shards, topics, waiting polls, queued enqueues and open leases. One axis is varied at a time.

mod store;

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, ensure};
use forebay_engine::{
    ActiveTopicsCall, Demand, DequeueCall, Engine, EnqueueCall, NewItem, Schedule, Settings, TurnStatus,
};
use forebay_store::Shard;
use forebay_types::{Body, DeliveryPolicy, ShardId, SystemClock};
use tokio::time::{Instant, sleep};

use self::store::NullShard;

/// Single enqueues of one measurement.
const ENQUEUES: u32 = 20_000;
/// A turn that takes longer keeps others waiting.
const LONGEST_MAX: Duration = Duration::from_millis(5);
/// The namespace of what a measurement enqueues.
const NAMESPACE: &str = "probe";

/// What a node holds while single items are enqueued.
#[derive(Debug, Clone, Copy)]
struct Setup {
    shards: u32,
    /// Over all shards.
    topics: u32,
    polls: usize,
    queued: usize,
    /// Over all shards.
    leases: u64,
}

impl Default for Setup {
    fn default() -> Self {
        Self { shards: 4, topics: 10, polls: 0, queued: 0, leases: 0 }
    }
}

/// What is varied: its name, the points, and the value at a point.
type Axis = (&'static str, Vec<Setup>, fn(&Setup) -> u64);

/// What was measured.
struct Measured {
    /// Time in turns for each enqueue.
    per_enqueue: Duration,
    /// The longest turn meanwhile.
    longest: Duration,
    /// The longest turn while the shards were taken over, and what they hold was put in place.
    starting: Duration,
    /// The longest turn while active topics were listed and the status was read.
    looking: Duration,
}

/// Measures along each axis, and prints a line for each point. Fails if a turn took too long.
pub async fn run() -> anyhow::Result<()> {
    println!("{:>24} {:>14} {:>12} {:>12} {:>12}", "", "µs/enqueue", "longest ms", "start ms", "look ms");
    let base = Setup::default();
    let mut too_long = Vec::new();
    let axes: [Axis; 5] = [
        ("shards", [1, 4, 16, 64, 256].map(|shards| Setup { shards, ..base }).into(), |it| it.shards.into()),
        ("topics", [10, 1_000, 100_000, 1_000_000].map(|topics| Setup { topics, ..base }).into(), |it| {
            it.topics.into()
        }),
        ("waiting polls", [0, 100, 10_000, 40_000].map(|polls| Setup { polls, ..base }).into(), |it| {
            it.polls as u64
        }),
        ("queued enqueues", [0, 1_000, 50_000].map(|queued| Setup { queued, ..base }).into(), |it| {
            it.queued as u64
        }),
        ("open leases", [0, 1_000, 100_000, 1_000_000].map(|leases| Setup { leases, ..base }).into(), |it| {
            it.leases
        }),
    ];
    for (axis, setups, value) in axes {
        for setup in setups {
            let measured = measure(setup).await?;
            let name = format!("{} {axis}", value(&setup));
            println!("{}", line(&name, &measured));
            if measured.longest.max(measured.starting).max(measured.looking) > LONGEST_MAX {
                too_long.push(name);
            }
        }
    }
    ensure!(too_long.is_empty(), "a turn took longer than {LONGEST_MAX:?} with: {}", too_long.join(", "));
    Ok(())
}

fn line(name: &str, measured: &Measured) -> String {
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    format!(
        "{name:>24} {:>14.1} {:>12.2} {:>12.2} {:>12.2}",
        measured.per_enqueue.as_secs_f64() * 1e6,
        millis(measured.longest),
        millis(measured.starting),
        millis(measured.looking),
    )
}

async fn measure(setup: Setup) -> anyhow::Result<Measured> {
    let engine = start(setup).await?;
    let polls = park(&engine, setup.polls).await?;
    let queued = queue(&engine, setup.queued);
    let starting = turns(&engine).await?.longest();
    let before = turns(&engine).await?;
    let probe = if setup.polls > 0 { "waited-for" } else { "probe" };
    let count = if setup.queued > 0 { ENQUEUES / 20 } else { ENQUEUES };
    for _ in 0..count {
        enqueue(&engine, probe, 1, Some(ShardId(1))).await?;
    }
    let after = turns(&engine).await?;
    let looking = look(&engine).await?;
    queued.abort();
    polls.into_iter().for_each(|poll| poll.abort());
    engine.stop().await;
    let per_enqueue = (after.busy() - before.busy()) / count;
    Ok(Measured { per_enqueue, longest: after.longest(), starting, looking })
}

/// Starts an engine, and waits until it has taken its shards over and has read the heads of their topics.
async fn start(setup: Setup) -> anyhow::Result<Engine> {
    let shard = |number: u32| {
        let share = |whole: u32| whole / setup.shards + u32::from(number <= whole % setup.shards);
        // The last shard is slow, so that enqueues queue up there.
        let slow = setup.queued > 0 && number == setup.shards;
        let shard: Arc<dyn Shard> = Arc::new(NullShard {
            id: ShardId(number),
            topics: share(setup.topics).max(1),
            leases: setup.leases / u64::from(setup.shards),
            commit: if slow { Duration::from_millis(20) } else { Duration::ZERO },
        });
        (ShardId(number), shard)
    };
    let shards: Vec<_> = (1..=setup.shards).map(shard).collect();
    let settings = Settings::default();
    let clock = Arc::new(SystemClock::default());
    let engine = Engine::start(settings, "bench:1".to_owned(), shards, clock, Arc::new(()), 1);
    engine.ready().await;
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let status = engine.status().await.context("the engine has stopped")?;
        let heads = u64::from(setup.topics.max(setup.shards));
        let bytes: usize = status.shards.iter().map(|shard| shard.index_bytes).sum();
        if bytes as u64 >= heads * 64 || Instant::now() > until {
            return Ok(engine);
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// So many consumers wait for items of one topic, and wait again when they have one.
async fn park(engine: &Engine, polls: usize) -> anyhow::Result<Vec<tokio::task::JoinHandle<()>>> {
    let consumer = |_| {
        let engine = engine.clone();
        tokio::spawn(async move {
            let call = DequeueCall {
                namespace: NAMESPACE.into(),
                demands: vec![Demand { topic: "waited-for".into(), max_items: 1 }],
                wait: Duration::from_secs(3_600),
                lease: None,
                consumer: String::new(),
                max_bytes: 1 << 20,
            };
            while let Ok(items) = engine.dequeue(call.clone()).await {
                let receipts = items.iter().filter_map(|item| item.receipt).collect();
                let _ = engine.ack(NAMESPACE.into(), receipts).await;
            }
        })
    };
    let consumers = (0..polls).map(consumer).collect();
    while engine.status().await.context("the engine has stopped")?.polls < polls {
        sleep(Duration::from_millis(1)).await;
    }
    Ok(consumers)
}

/// Keeps so many items queued at the last shard.
fn queue(engine: &Engine, items: usize) -> tokio::task::JoinHandle<()> {
    let engine = engine.clone();
    tokio::spawn(async move {
        let producer = |_| {
            let engine = engine.clone();
            async move { while enqueue(&engine, "queued", 1_000, Some(ShardId(4))).await.is_ok() {} }
        };
        futures_util::future::join_all((0..items / 1_000).map(producer)).await;
    })
}

/// Lists active topics and reads the status. Returns the longest turn meanwhile.
async fn look(engine: &Engine) -> anyhow::Result<Duration> {
    turns(engine).await?;
    let call = ActiveTopicsCall {
        namespace: NullShard::NAMESPACE.into(),
        prefix: String::new(),
        after: None,
        limit: 1_000,
    };
    let mut longest = Duration::ZERO;
    for _ in 0..5 {
        // The first pages may have to wait until every head is known.
        let _ = engine.active_topics(call.clone()).await;
        longest = longest.max(turns(engine).await?.longest());
    }
    Ok(longest.max(turns(engine).await?.longest()))
}

async fn turns(engine: &Engine) -> anyhow::Result<TurnStatus> {
    Ok(engine.status().await.context("the engine has stopped")?.turns)
}

async fn enqueue(engine: &Engine, topic: &str, items: usize, shard: Option<ShardId>) -> anyhow::Result<()> {
    let item = NewItem {
        topic: topic.into(),
        priority: 0,
        body: Body::default(),
        schedule: Schedule::Now,
        lease: Duration::from_secs(30),
        ttl: None,
        policy: DeliveryPolicy::AtLeastOnce,
        max_attempts: 16,
        dedupe_key: None,
        shard,
    };
    let call = EnqueueCall { namespace: NAMESPACE.into(), items: vec![item; items], request_id: None };
    match engine.enqueue(call).await {
        Ok(_) => Ok(()),
        // A tenant's share is full: that is what a queue of many items means.
        Err(_) if items > 1 => {
            sleep(Duration::from_millis(5)).await;
            Ok(())
        }
        Err(refusal) => Err(anyhow::anyhow!("{}", refusal.message)),
    }
}
