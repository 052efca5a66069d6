//! Producers and consumers at work: the closed loop that most scenarios are made of.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    task::JoinSet,
};

use crate::{
    ledger::{InOrder, Ledger},
    payload::{Head, Payloads},
    system::{Consumer, Delivered, Item, Producer, System},
    usage::Usage,
};

/// What the load looks like.
#[derive(Debug, Clone)]
pub struct Load {
    /// All that is random follows from it.
    pub seed: u64,
    /// Bytes of a payload.
    pub item_bytes: usize,
    /// Items a call.
    pub batch: usize,
    /// Topics; each producer and consumer has its share of them.
    pub topics: u32,
    /// Priorities, drawn evenly.
    pub priorities: u8,
    /// Tasks that enqueue, each with one call under way.
    pub producers: u32,
    /// Tasks that dequeue and ack, each with one call under way.
    pub consumers: u32,
    /// What is in the queue at most, so that a run measures items that pass through, not a backlog that grows.
    pub room: usize,
}

impl Load {
    /// The topics of one of `of` workers: every `of`-th. With more workers than topics they share.
    pub fn share(&self, worker: u32, of: u32) -> Vec<u32> {
        if of > self.topics {
            vec![worker % self.topics]
        } else {
            (worker..self.topics).step_by(of as usize).collect()
        }
    }
}

/// How a run is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Before anything is measured.
    pub warm_up: Duration,
    /// What is measured.
    pub measured: Duration,
}

/// Open while work goes on.
#[derive(Debug)]
pub struct Gate(AtomicBool);

impl Gate {
    /// An open one.
    pub fn open() -> Arc<Self> {
        Arc::new(Self(AtomicBool::new(true)))
    }

    /// Whether to go on.
    pub fn is_open(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Ends the work.
    pub fn close(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// How long a consumer waits for an item before it looks whether the run is over.
const WAIT: Duration = Duration::from_millis(200);
/// How long nothing may come out while something is owed, and how long a call may take beyond what it was told
/// to wait: a queue that has stopped ends the run, it does not hold it up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Bounds what is in the queue.
#[derive(Debug)]
pub struct Room(Arc<Semaphore>);

impl Room {
    /// Room for so many items.
    pub fn of(items: usize) -> Self {
        Self(Arc::new(Semaphore::new(items)))
    }

    /// Makes more room.
    pub fn add(&self, items: usize) {
        self.0.add_permits(items);
    }

    /// Waits for room; says whether there is any, which is no longer so once it is closed.
    pub async fn enter(&self, items: usize) -> bool {
        self.0.acquire_many(items as u32).await.map(SemaphorePermit::forget).is_ok()
    }
}

/// Everything that the workers of a run share.
#[derive(Debug)]
pub struct Shared {
    /// What the load looks like.
    pub load: Load,
    /// What went in and came out.
    pub ledger: Ledger,
    /// Closed when producers are to stop.
    pub gate: Arc<Gate>,
    /// Bounds what is in the queue.
    pub room: Room,
    /// What consumers may take, where that is bounded.
    due: OnceLock<Room>,
    /// Items settled so far.
    pub settled: AtomicU64,
    /// The producers have ended.
    pub sent: AtomicBool,
    stopped: AtomicBool,
}

impl Shared {
    /// Nothing sent yet.
    pub fn new(load: &Load) -> anyhow::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            ledger: Ledger::new(Payloads::new(load.seed, load.item_bytes)?),
            gate: Gate::open(),
            room: Room::of(load.room),
            due: OnceLock::new(),
            settled: AtomicU64::new(0),
            sent: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            load: load.clone(),
        }))
    }

    /// Settled so far.
    pub fn settled(&self) -> u64 {
        self.settled.load(Ordering::Relaxed)
    }

    /// Ends the producers, also those that wait for room that a queue which has stopped will never make.
    pub fn stop_producers(&self) {
        self.gate.close();
        self.room.0.close();
    }

    /// From now on consumers take as many as go in, and no more: what waits by now stays as much as it is.
    pub fn keep_level(&self) {
        self.due.get_or_init(|| Room::of(0));
    }

    /// Ends the consumers although there is more to come.
    pub fn stop_consumers(&self) {
        self.stopped.store(true, Ordering::Release);
        self.due.get().into_iter().for_each(|due| due.0.close());
    }

    /// Everything that was sent has been settled, and nothing will be sent.
    pub fn is_done(&self) -> bool {
        self.sent.load(Ordering::Acquire) && self.ledger.delivered() >= self.ledger.confirmed()
    }
}

/// Watches one consumer's run for an end that never comes.
#[derive(Debug)]
pub struct Patience {
    /// How many had come out, to whichever consumer, when that was last looked at.
    delivered: u64,
    since: Instant,
}

impl Patience {
    /// It begins now.
    pub fn new() -> Self {
        Self { delivered: 0, since: now() }
    }

    /// Fails when everything has been sent and nothing has come out to anyone for too long.
    pub fn check(&mut self, shared: &Shared) -> anyhow::Result<()> {
        let (delivered, sent) = (shared.ledger.delivered(), shared.sent.load(Ordering::Acquire));
        if delivered != self.delivered || !sent {
            *self = Self { delivered, since: now() };
        }
        ensure!(
            self.since.elapsed() < PATIENCE,
            "{} items were confirmed, {delivered} came out, and nothing more in {PATIENCE:?}",
            shared.ledger.confirmed()
        );
        Ok(())
    }
}

/// A call that may take `wait` and the usual patience; what it is called goes before its error.
pub async fn within<T>(
    what: &'static str,
    wait: Duration,
    call: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let patience = wait + PATIENCE;
    match tokio::time::timeout(patience, call).await {
        Ok(answer) => answer.context(what),
        Err(_) => bail!("{what}: no answer in {patience:?}"),
    }
}

/// Enqueues until the gate closes or `limit` items are in, with random priorities or all with `priority`.
pub async fn produce(
    shared: Arc<Shared>,
    mut producer: Box<dyn Producer>,
    worker: u32,
    limit: Option<u64>,
    priority: Option<u8>,
) -> anyhow::Result<()> {
    let load = &shared.load;
    let topics = load.share(worker, load.producers);
    let mut random = StdRng::seed_from_u64(load.seed ^ u64::from(worker) << 32);
    let mut sent = 0;
    for &topic in topics.iter().cycle() {
        let batch = limit.map_or(load.batch as u64, |limit| (limit - sent).min(load.batch as u64)) as usize;
        if batch == 0 || !shared.gate.is_open() {
            break;
        }
        if !shared.room.enter(batch).await {
            break;
        }
        let first = shared.ledger.number(batch);
        let item = |number| {
            let priority = priority.unwrap_or((random.next_u32() % u32::from(load.priorities)) as u8);
            let payload = shared.ledger.payloads().make(Head { number, topic, priority, at_us: 0 });
            Item { priority, payload, due: None }
        };
        let items = (first..first + batch as u64).map(item).collect();
        within("enqueue", Duration::ZERO, producer.put(topic, items)).await?;
        shared.ledger.confirm(first, batch);
        shared.due.get().into_iter().for_each(|due| due.add(batch));
        sent += batch as u64;
    }
    Ok(())
}

/// Dequeues and acks until everything that was sent has been settled. `look` sees each answer as soon as it is there, and
/// an empty one comes after `wait`, when it is looked whether the run is over.
pub async fn consume(
    shared: Arc<Shared>,
    mut consumer: Box<dyn Consumer>,
    wait: Duration,
    mut look: impl FnMut(&[Delivered]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut patience = Patience::new();
    let (batch, due) = (shared.load.batch, shared.due.get());
    while !shared.stopped.load(Ordering::Acquire) {
        if let Some(due) = due
            && !due.enter(batch).await
        {
            break;
        }
        let items = within("dequeue", wait, consumer.take(batch, wait)).await?;
        if let Some(due) = due {
            due.add(batch.saturating_sub(items.len()));
            // A consumer of many topics may get more than it asked for: that is owed.
            due.enter(items.len().saturating_sub(batch)).await;
        }
        if items.is_empty() {
            if shared.is_done() {
                return Ok(());
            }
            patience.check(&shared)?;
            continue;
        }
        look(&items)?;
        within("ack", Duration::ZERO, consumer.ack()).await?;
        shared.settled.fetch_add(items.len() as u64, Ordering::Relaxed);
        shared.room.add(items.len());
    }
    Ok(())
}

/// The producers of a run.
pub async fn connect_producers(load: &Load, system: &dyn System) -> anyhow::Result<Vec<Box<dyn Producer>>> {
    let mut producers = Vec::new();
    for _ in 0..load.producers {
        producers.push(system.producer().await?);
    }
    Ok(producers)
}

/// The consumers of a run, each of its share of the topics.
pub async fn connect_consumers(load: &Load, system: &dyn System) -> anyhow::Result<Vec<Box<dyn Consumer>>> {
    let mut consumers = Vec::new();
    for worker in 0..load.consumers {
        consumers.push(system.consumer(load.share(worker, load.consumers)).await?);
    }
    Ok(consumers)
}

/// Connects the producers of a run, and starts them all at once when the last one is connected; `limit` items in all, or until the gate closes.
pub async fn start_producers(
    shared: &Arc<Shared>,
    system: &dyn System,
    limit: Option<u64>,
    priority: Option<u8>,
) -> anyhow::Result<JoinSet<anyhow::Result<()>>> {
    let workers = shared.load.producers;
    let producers = connect_producers(&shared.load, system).await?;
    let mut tasks = JoinSet::new();
    for (worker, producer) in (0..workers).zip(producers) {
        let share = limit.map(|limit| {
            let each = limit / u64::from(workers);
            each + u64::from(u64::from(worker) < limit % u64::from(workers))
        });
        tasks.spawn(produce(shared.clone(), producer, worker, share, priority));
    }
    Ok(tasks)
}

/// Starts the consumers of a run. The order is checked over everything that a consumer gets where `strict` says
/// so, else inside each answer, where the queue has answers.
pub async fn start_consumers(
    shared: &Arc<Shared>,
    system: &dyn System,
    strict: bool,
) -> anyhow::Result<JoinSet<anyhow::Result<()>>> {
    let mut tasks = JoinSet::new();
    let load = &shared.load;
    for consumer in connect_consumers(load, system).await? {
        let mut order =
            (strict || system.answers()).then(|| InOrder::new(system.order(), load.producers <= load.topics));
        let of = shared.clone();
        let look = move |items: &[Delivered]| {
            if !strict && let Some(order) = &mut order {
                order.cut();
            }
            for item in items {
                let head = of.ledger.deliver(item)?;
                if let Some(order) = &mut order {
                    order.next(head)?;
                }
            }
            Ok(())
        };
        tasks.spawn(consume(shared.clone(), consumer, WAIT, look));
    }
    Ok(tasks)
}

/// What a closed loop did in the measured part of a run.
#[derive(Debug)]
pub struct Measured {
    /// Items that were settled.
    pub settled: u64,
    /// Items that the queue has confirmed.
    pub confirmed: u64,
    /// How long it was.
    pub took: Duration,
    /// What it cost.
    pub usage: Usage,
}

/// Lets the workers warm up, calls `begin`, and measures. A worker that fails ends it.
pub async fn measure(
    shared: &Shared,
    system: &dyn System,
    span: Span,
    workers: [&mut JoinSet<anyhow::Result<()>>; 2],
    begin: impl FnOnce(),
) -> anyhow::Result<Measured> {
    let work = async {
        tokio::time::sleep(span.warm_up).await;
        begin();
        let (from, settled, confirmed) = (now(), shared.settled(), shared.ledger.confirmed());
        let usage = Usage::now(&system.parts());
        tokio::time::sleep(span.measured).await;
        let usage = Usage::now(&system.parts()).since(&usage);
        let (settled, confirmed) = (shared.settled() - settled, shared.ledger.confirmed() - confirmed);
        Measured { settled, confirmed, took: from.elapsed(), usage }
    };
    let [producers, consumers] = workers;
    tokio::select! {
        biased;
        measured = work => Ok(measured),
        Err(error) = finish(producers) => Err(error),
        Err(error) = finish(consumers) => Err(error),
    }
}

/// Waits for all of them; the first error ends the rest.
pub async fn finish(tasks: &mut JoinSet<anyhow::Result<()>>) -> anyhow::Result<()> {
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}

/// Waits until the producers have ended and all that they sent has come out, and checks that.
pub async fn drain(
    shared: &Shared,
    producers: &mut JoinSet<anyhow::Result<()>>,
    consumers: &mut JoinSet<anyhow::Result<()>>,
) -> anyhow::Result<()> {
    finish(producers).await?;
    shared.sent.store(true, Ordering::Release);
    finish(consumers).await?;
    shared.ledger.close()
}

/// The monotonic clock.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub fn now() -> Instant {
    Instant::now()
}
