//! Producers and consumers that keep a node busy and use every kind of settlement.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use forebay_proto::v1::{DequeuedItem, EnqueueItem};
use rand::{Rng, RngExt as _, SeedableRng as _, rngs::StdRng};
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep},
};
use tonic::transport::Channel;

use crate::{
    history::{History, Verb},
    rpc::{Rpc, WorstOutcome, payload},
};

/// The lease of each delivery; short, so that abandoned items are delivered again within a test.
pub const LEASE: Duration = Duration::from_secs(2);
const PRODUCERS: u64 = 3;
const CONSUMERS: u64 = 4;
const TOPICS: u32 = 5;
/// Producers pause while this many items are not acked, so that a drain is short.
const BACKLOG_ITEMS_MAX: u64 = 1_500;
/// Calls that a producer repeats are at most so old: far younger than the dedupe window.
const REPEATED_WITHIN: Duration = Duration::from_secs(240);
/// Most calls that a producer remembers to repeat them.
const PAST_CALLS_MAX: usize = 300;
/// Most calls of unknown outcome that a producer sets aside: it begins no other then.
const UNKNOWN_CALLS_MAX: usize = 20;
/// A deadline that loses answers.
const BRIEF_DEADLINE_MS: std::ops::Range<u64> = 2..20;
/// Pause of a worker after a call that failed, or while it has nothing to do.
const IDLE_DELAY: Duration = Duration::from_millis(20);

/// The topics that the load uses.
pub fn topics() -> Vec<String> {
    (0..TOPICS).map(|number| format!("load/{number}")).collect()
}

/// A running load.
pub struct Load {
    /// The nodes that workers call.
    targets: Arc<Mutex<Vec<Channel>>>,
    /// Becomes true to stop the workers.
    stop: watch::Sender<bool>,
    /// Producers and consumers, to be waited for.
    workers: JoinSet<()>,
}

impl Load {
    /// Starts workers against these nodes. `seed` determines what a worker does, but not when.
    pub fn start(history: &Arc<History>, targets: Vec<Channel>, seed: u64) -> Self {
        Self::start_with(history, targets, seed, false)
    }

    /// The same with dedupe keys in some calls, with answers that are lost, and with repeats of calls that
    /// were answered long ago.
    pub fn start_repeating(history: &Arc<History>, targets: Vec<Channel>, seed: u64) -> Self {
        Self::start_with(history, targets, seed, true)
    }

    fn start_with(history: &Arc<History>, targets: Vec<Channel>, seed: u64, repeats: bool) -> Self {
        let load = Self {
            targets: Arc::new(Mutex::new(targets)),
            stop: watch::Sender::new(false),
            workers: JoinSet::new(),
        };
        let numbers = Arc::new(AtomicU64::new(seed << 32));
        let mut load = load;
        for index in 0..PRODUCERS + CONSUMERS {
            let worker = Worker {
                index,
                random: StdRng::seed_from_u64(seed ^ (index << 8)),
                history: history.clone(),
                targets: load.targets.clone(),
                stop: load.stop.subscribe(),
                numbers: numbers.clone(),
                repeats,
                past: VecDeque::new(),
                unknown: VecDeque::new(),
            };
            if index < PRODUCERS {
                load.workers.spawn(worker.produce());
            } else {
                load.workers.spawn(worker.consume());
            }
        }
        load
    }

    /// Directs each worker's next calls to these nodes.
    pub fn retarget(&self, targets: Vec<Channel>) {
        *self.targets.lock().unwrap() = targets;
    }

    /// Waits until each worker has ended its call. Panics if a worker did.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        while let Some(ended) = self.workers.join_next().await {
            ended.unwrap();
        }
    }
}

struct Worker {
    index: u64,
    random: StdRng,
    history: Arc<History>,
    targets: Arc<Mutex<Vec<Channel>>>,
    stop: watch::Receiver<bool>,
    numbers: Arc<AtomicU64>,
    /// Whether it repeats calls that were answered.
    repeats: bool,
    /// Calls that may be repeated.
    past: VecDeque<PastCall>,
    /// Calls of unknown outcome, to be repeated until it is known.
    unknown: VecDeque<PastCall>,
}

impl Worker {
    fn is_running(&self) -> bool {
        !*self.stop.borrow()
    }

    /// The node for the next call. Workers are spread over all nodes.
    fn target(&self) -> Channel {
        let targets = self.targets.lock().unwrap();
        targets[usize::try_from(self.index).unwrap() % targets.len()].clone()
    }

    async fn produce(mut self) {
        let history = self.history.clone();
        while self.is_running() {
            let counts = history.counts();
            if counts.enqueued.saturating_sub(counts.acked) >= BACKLOG_ITEMS_MAX {
                sleep(IDLE_DELAY).await;
                continue;
            }
            let call = self.next_call();
            let worst = self.send(&call).await;
            if worst != WorstOutcome::Done {
                sleep(IDLE_DELAY).await;
            }
            if worst == WorstOutcome::Unknown && call.is_repeatable() {
                self.unknown.push_back(call);
            } else if self.repeats {
                self.repeat_some(call).await;
            }
        }
    }

    /// A new call, or one of unknown outcome again. The shard of such a call may be away for long, and a
    /// producer that waited for it would leave the other shards without load.
    fn next_call(&mut self) -> PastCall {
        let again = match self.unknown.len() {
            0 => false,
            UNKNOWN_CALLS_MAX.. => true,
            _ => self.random.random_bool(0.5),
        };
        match again.then(|| self.unknown.pop_front()).flatten() {
            Some(call) => call,
            None => self.call(),
        }
    }

    /// A new call. Half of them have a request id, and some have dedupe keys: those are repeated until their
    /// outcome is known.
    fn call(&mut self) -> PastCall {
        let mut items = self.items();
        let request_id =
            if self.random.random_bool(0.5) { format!("{:x}", items[0].0) } else { String::new() };
        if self.repeats && request_id.is_empty() && self.random.random_bool(0.7) {
            items.iter_mut().for_each(|(number, item)| item.dedupe_key = format!("{number:x}"));
        }
        PastCall { items, request_id, at: Instant::now() }
    }

    /// Sends a call. Its answer may be lost.
    async fn send(&mut self, call: &PastCall) -> WorstOutcome {
        let history = self.history.clone();
        let is_lost = self.repeats && call.is_repeatable() && self.random.random_bool(0.1);
        let deadline = Duration::from_millis(self.random.random_range(BRIEF_DEADLINE_MS));
        let mut rpc = match is_lost {
            true => Rpc::within(self.target(), &history, deadline),
            false => Rpc::new(self.target(), &history),
        };
        rpc.enqueue(&call.items, &call.request_id).await
    }

    /// Remembers a call, and sends one again that it remembers.
    async fn repeat_some(&mut self, call: PastCall) {
        if call.is_repeatable() {
            self.past.push_back(call);
        }
        let is_old = |call: &PastCall| call.at.elapsed() > REPEATED_WITHIN;
        while self.past.len() > PAST_CALLS_MAX || self.past.front().is_some_and(is_old) {
            self.past.pop_front();
        }
        if !self.past.is_empty() && self.random.random_bool(0.2) {
            let again = self.past[self.random.random_range(0..self.past.len())].clone();
            self.send(&again).await;
        }
    }

    fn items(&mut self) -> Vec<(u64, EnqueueItem)> {
        let count = self.random.random_range(1..=20);
        let first = self.numbers.fetch_add(count, Ordering::Relaxed);
        let items = (first..first + count).map(|number| {
            let item = EnqueueItem {
                topic: format!("load/{}", self.random.random_range(0..TOPICS)),
                priority: self.random.random_range(-3..=3),
                payload: payload(number).into(),
                max_attempts: 1_000,
                ..EnqueueItem::default()
            };
            (number, item)
        });
        items.collect()
    }

    async fn consume(mut self) {
        let history = self.history.clone();
        let topics = topics();
        let mut settled_before: Vec<String> = Vec::new();
        while self.is_running() {
            let mut rpc = Rpc::new(self.target(), &history);
            let topic = self.random.random_range(0..topics.len());
            let max = self.random.random_range(1..=40);
            let wait = Duration::from_millis(200);
            let items = rpc.dequeue(&topics[topic..=topic], max, wait, LEASE).await;
            let Some(items) = items else {
                sleep(IDLE_DELAY).await;
                continue;
            };
            let plan = SettlementPlan::random(&mut self.random, items);
            plan.settle(&mut rpc).await;
            // Sometimes receipts that are settled already, or whose leases have ended.
            if self.random.random_bool(0.1) && !settled_before.is_empty() {
                let verb = if self.random.random_bool(0.5) { Verb::Ack } else { Verb::Nack };
                rpc.settle(verb, &std::mem::take(&mut settled_before)).await;
            }
            settled_before.extend(plan.ack.into_iter().take(1));
            settled_before.extend(plan.abandon.into_iter().take(1));
        }
    }
}

/// A call that a producer may repeat.
#[derive(Clone)]
struct PastCall {
    items: Vec<(u64, EnqueueItem)>,
    request_id: String,
    /// When it was made.
    at: Instant,
}

impl PastCall {
    fn is_repeatable(&self) -> bool {
        !self.request_id.is_empty() || self.items.iter().all(|(_, item)| !item.dedupe_key.is_empty())
    }
}

/// Plan of a consumer for the items of one answer.
#[derive(Default)]
pub struct SettlementPlan {
    /// Done.
    ack: Vec<String>,
    /// Given back.
    nack: Vec<String>,
    /// Acked after an extension.
    extend: Vec<String>,
    /// Not settled: their leases end.
    abandon: Vec<String>,
}

impl SettlementPlan {
    /// Some of each, by chance.
    pub fn random(random: &mut impl Rng, items: Vec<DequeuedItem>) -> Self {
        let mut plan = Self::default();
        for item in items {
            match random.random_range(0..100) {
                0..4 => plan.abandon.push(item.receipt),
                4..12 => plan.nack.push(item.receipt),
                12..20 => {
                    plan.extend.push(item.receipt.clone());
                    plan.ack.push(item.receipt);
                }
                _ => plan.ack.push(item.receipt),
            }
        }
        plan
    }

    /// Carries it out.
    pub async fn settle(&self, rpc: &mut Rpc<'_>) {
        for (verb, receipts) in
            [(Verb::Extend(LEASE), &self.extend), (Verb::Nack, &self.nack), (Verb::Ack, &self.ack)]
        {
            if !receipts.is_empty() {
                rpc.settle(verb, receipts).await;
            }
        }
    }
}
