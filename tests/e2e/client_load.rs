//! A load by the Rust client. It retries what may be retried, and no call of it may fail.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use forebay_client::{
    Client, ClientConfig, DequeueCall, Error, Nack, NackAction, NewItem, Producer, ProducerConfig,
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tokio::{sync::watch, task::JoinSet, time::sleep};

use crate::{
    history::{Call, Event, History, Outcome, SettlementEnd, Verb},
    load::topics,
    rpc::{NAMESPACE, payload, read_payload},
};

/// The lease of each delivery. Its settlement is retried for longer than a hand-over takes.
const LEASE: Duration = Duration::from_secs(10);
/// How long a dequeue waits for items.
const WAIT: Duration = Duration::from_millis(200);
/// Producers pause while this many items are not acked, so that a drain is short.
const BACKLOG_ITEMS_MAX: u64 = 1_500;
/// The pause of a producer that has nothing to do.
const IDLE_DELAY: Duration = Duration::from_millis(20);

/// A running load.
pub struct ClientLoad {
    /// Becomes true to stop the workers.
    stop: watch::Sender<bool>,
    /// Producers and consumers, to be waited for.
    workers: JoinSet<()>,
    /// Errors of calls.
    errors: Arc<Mutex<Vec<String>>>,
}

impl ClientLoad {
    /// Starts workers that know these nodes. `seed` determines what a worker does, but not when.
    pub fn start(history: &Arc<History>, nodes: impl IntoIterator<Item = String>, seed: u64) -> Self {
        let mut config = ClientConfig::new("").namespace(NAMESPACE);
        config.endpoints = nodes.into_iter().collect();
        let client = Client::connect(config).unwrap();
        let (stop, errors) = (watch::Sender::new(false), Arc::default());
        let numbers = Arc::new(AtomicU64::new(seed << 32));
        let mut workers = JoinSet::new();
        let worker = |index: u64| Worker {
            client: client.clone(),
            random: StdRng::seed_from_u64(seed ^ (index << 8)),
            history: history.clone(),
            stop: stop.subscribe(),
            numbers: numbers.clone(),
            errors: Arc::clone(&errors),
        };
        workers.spawn(worker(0).enqueue());
        workers.spawn(worker(1).produce());
        workers.spawn(worker(2).consume());
        workers.spawn(worker(3).consume());
        Self { stop, workers, errors }
    }

    /// Waits until each worker has ended its call. Panics with what calls failed with.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        while let Some(ended) = self.workers.join_next().await {
            ended.unwrap();
        }
        let errors = self.errors.lock().unwrap();
        assert!(errors.is_empty(), "{} errors at the client:\n{}", errors.len(), errors.join("\n"));
    }
}

struct Worker {
    client: Client,
    random: StdRng,
    history: Arc<History>,
    stop: watch::Receiver<bool>,
    numbers: Arc<AtomicU64>,
    errors: Arc<Mutex<Vec<String>>>,
}

impl Worker {
    fn is_running(&self) -> bool {
        !*self.stop.borrow()
    }

    /// Returns the value of `result`, unless it is an error, which is noted.
    fn noted<T>(&self, what: &str, result: Result<T, Error>) -> Option<T> {
        let (at, servers) = (self.history.now(), self.client.servers());
        let note = |error| format!("{what} at {at:?}, calls went to {servers:?}: {error}");
        result.map_err(|error| self.errors.lock().unwrap().push(note(error))).ok()
    }

    fn since(&self, began: Duration) -> Call {
        Call { began, ended: self.history.now() }
    }

    /// New items with their numbers. Waits while there are enough. None once the load is stopped.
    async fn items(&mut self) -> Vec<(u64, NewItem)> {
        loop {
            let counts = self.history.counts();
            if !self.is_running() {
                return Vec::new();
            }
            if counts.enqueued.saturating_sub(counts.acked) < BACKLOG_ITEMS_MAX {
                break;
            }
            sleep(IDLE_DELAY).await;
        }
        let count = self.random.random_range(1..=20);
        let first = self.numbers.fetch_add(count, Ordering::Relaxed);
        let topics = topics();
        let items = (first..first + count).map(|number| {
            let topic = self.random.random_range(0..topics.len());
            let item = NewItem::new(&topics[topic], payload(number));
            (number, NewItem { max_attempts: 1_000, ..item })
        });
        items.collect()
    }

    fn stored(&self, began: Duration, item: u64, id: String) {
        self.history.record(Event::Enqueue { call: self.since(began), item, outcome: Outcome::Ok(id) });
    }

    /// Enqueues, a call at a time.
    async fn enqueue(mut self) {
        while self.is_running() {
            let (numbers, mut items): (Vec<_>, Vec<_>) = self.items().await.into_iter().unzip();
            if items.is_empty() {
                break;
            }
            // Without keys the client gives the call a request id.
            if self.random.random_bool(0.4) {
                let keyed = |(item, number): (NewItem, &u64)| item.dedupe_key(format!("{number:x}"));
                items = items.into_iter().zip(&numbers).map(keyed).collect();
            }
            let began = self.history.now();
            let results = self.client.enqueue(items).await;
            for (item, result) in numbers.into_iter().zip(self.noted("enqueue", results).unwrap_or_default())
            {
                if let Some(stored) = self.noted("an item of an enqueue", result) {
                    self.stored(began, item, stored.item_id);
                }
            }
        }
    }

    /// Enqueues through a producer, which makes batches and stays with a node.
    async fn produce(mut self) {
        let producer = Producer::start(self.client.clone(), ProducerConfig::default());
        while self.is_running() {
            let (mut pending, began) = (Vec::new(), self.history.now());
            for (number, item) in self.items().await {
                let sent = producer.send(item).await;
                pending.extend(self.noted("send", sent).map(|sent| (number, sent)));
            }
            for (number, sent) in pending {
                let answer = sent.await;
                if let Some(stored) = self.noted("an item of a producer", answer) {
                    self.stored(began, number, stored.item_id);
                }
            }
        }
    }

    /// Dequeues and settles: acks, sometimes after an extension, and nacks.
    async fn consume(mut self) {
        let topics = topics();
        while self.is_running() {
            let topic = &topics[self.random.random_range(0..topics.len())];
            let (max, began) = (self.random.random_range(1..=40), self.history.now());
            let call = DequeueCall::topic(topic, max).wait(WAIT).lease(LEASE);
            let items = self.client.dequeue(call).await;
            let call = self.since(began);
            let mut receipts = Vec::new();
            for item in self.noted("dequeue", items).unwrap_or_default() {
                receipts.push(item.receipt.clone());
                self.history.record(Event::Delivery {
                    call,
                    item: read_payload(&item.payload),
                    id: item.item_id,
                    receipt: item.receipt,
                    attempt: item.attempt,
                    lease: LEASE,
                });
            }
            let nacked = receipts.split_off(receipts.len() - receipts.len() / 10);
            if self.random.random_bool(0.1) {
                self.settle(Verb::Extend(LEASE), &receipts).await;
            }
            self.settle(Verb::Ack, &receipts).await;
            self.settle(Verb::Nack, &nacked).await;
        }
    }

    async fn settle(&self, verb: Verb, receipts: &[String]) {
        if receipts.is_empty() {
            return;
        }
        let began = self.history.now();
        let results: Result<Vec<Result<(), Error>>, Error> = match verb {
            Verb::Ack => self.client.ack(receipts.to_vec()).await,
            Verb::Nack => {
                let nack = |receipt| Nack::new(receipt, NackAction::Fail(None));
                let results = self.client.nack(receipts.iter().map(nack).collect()).await;
                results.map(|results| results.into_iter().map(|result| result.map(drop)).collect())
            }
            Verb::Extend(lease) => {
                let results = self.client.extend_lease(receipts.to_vec(), Some(lease)).await;
                results.map(|results| results.into_iter().map(|result| result.map(drop)).collect())
            }
        };
        let call = self.since(began);
        let results = self.noted(&format!("{verb:?}"), results).unwrap_or_default();
        for (receipt, result) in receipts.iter().cloned().zip(results) {
            if self.noted(&format!("an item of {verb:?}"), result).is_some() {
                self.history.record(Event::Settle { call, verb, receipt, settled: SettlementEnd::Ok });
            }
        }
    }
}
