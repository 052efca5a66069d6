//! Producers and consumers that keep a node busy, in every way that the API allows.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use forebay_proto::v1::{DequeuedItem, EnqueueItem};
use rand::{Rng, RngExt as _, SeedableRng as _, rngs::StdRng};
use tokio::{sync::watch, task::JoinSet, time::sleep};
use tonic::transport::Channel;

use crate::{
    history::{History, Verb},
    rpc::{Rpc, Worst, payload},
};

/// Of each delivery; short, so that abandoned items come back within a test.
pub const LEASE: Duration = Duration::from_secs(2);
const PRODUCERS: u64 = 3;
const CONSUMERS: u64 = 4;
const TOPICS: u32 = 5;
/// Producers rest while so many items wait, so that a drain is short.
const BACKLOG_MAX: u64 = 1_500;
/// Between two calls of a worker whose last call failed or had nothing to do.
const REST: Duration = Duration::from_millis(20);

/// The topics that the load uses.
pub fn topics() -> Vec<String> {
    (0..TOPICS).map(|number| format!("load/{number}")).collect()
}

/// A running load.
pub struct Load {
    targets: Arc<Mutex<Vec<Channel>>>,
    stop: watch::Sender<bool>,
    workers: JoinSet<()>,
}

impl Load {
    /// Starts it against these nodes. What a worker does follows from `seed` alone, when it does it does not.
    pub fn start(history: &Arc<History>, targets: Vec<Channel>, seed: u64) -> Self {
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
            };
            if index < PRODUCERS {
                load.workers.spawn(worker.produce());
            } else {
                load.workers.spawn(worker.consume());
            }
        }
        load
    }

    /// From the next call on, workers use these nodes.
    pub fn aim(&self, targets: Vec<Channel>) {
        *self.targets.lock().unwrap() = targets;
    }

    /// Lets each worker end its call, and waits for them; panics if one did.
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
}

impl Worker {
    fn goes_on(&self) -> bool {
        !*self.stop.borrow()
    }

    /// The node for the next call; workers are spread over all of them.
    fn target(&self) -> Channel {
        let targets = self.targets.lock().unwrap();
        targets[usize::try_from(self.index).unwrap() % targets.len()].clone()
    }

    async fn produce(mut self) {
        let history = self.history.clone();
        while self.goes_on() {
            let counts = history.counts();
            if counts.enqueued.saturating_sub(counts.acked) >= BACKLOG_MAX {
                sleep(REST).await;
                continue;
            }
            let items = self.items();
            // Half of the calls are safe to repeat, and are repeated until their outcome is known.
            let request_id =
                if self.random.random_bool(0.5) { format!("{:x}", items[0].0) } else { String::new() };
            loop {
                let worst = Rpc::new(self.target(), &history).enqueue(&items, &request_id).await;
                if worst != Worst::Done {
                    sleep(REST).await;
                }
                if worst != Worst::Unknown || request_id.is_empty() || !self.goes_on() {
                    break;
                }
            }
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
        while self.goes_on() {
            let mut rpc = Rpc::new(self.target(), &history);
            let topic = self.random.random_range(0..topics.len());
            let max = self.random.random_range(1..=40);
            let wait = Duration::from_millis(200);
            let items = rpc.dequeue(&topics[topic..=topic], max, wait, LEASE).await;
            let Some(items) = items else {
                sleep(REST).await;
                continue;
            };
            let fates = Fates::deal(&mut self.random, items);
            if !fates.extend.is_empty() {
                rpc.settle(Verb::Extend(LEASE), &fates.extend).await;
            }
            if !fates.nack.is_empty() {
                rpc.settle(Verb::Nack, &fates.nack).await;
            }
            if !fates.ack.is_empty() {
                rpc.settle(Verb::Ack, &fates.ack).await;
            }
            // Now and then receipts that are used up, or whose leases have run out.
            if self.random.random_bool(0.1) && !settled_before.is_empty() {
                let verb = if self.random.random_bool(0.5) { Verb::Ack } else { Verb::Nack };
                rpc.settle(verb, &std::mem::take(&mut settled_before)).await;
            }
            settled_before.extend(fates.ack.into_iter().take(1));
            settled_before.extend(fates.abandon.into_iter().take(1));
        }
    }
}

/// What a consumer does with the items of one answer.
#[derive(Default)]
struct Fates {
    ack: Vec<String>,
    nack: Vec<String>,
    /// Acked after an extension.
    extend: Vec<String>,
    /// Left to run out.
    abandon: Vec<String>,
}

impl Fates {
    fn deal(random: &mut impl Rng, items: Vec<DequeuedItem>) -> Self {
        let mut fates = Self::default();
        for item in items {
            match random.random_range(0..100) {
                0..4 => fates.abandon.push(item.receipt),
                4..12 => fates.nack.push(item.receipt),
                12..20 => {
                    fates.extend.push(item.receipt.clone());
                    fates.ack.push(item.receipt);
                }
                _ => fates.ack.push(item.receipt),
            }
        }
        fates
    }
}
