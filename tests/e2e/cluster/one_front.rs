//! Producers at all nodes, consumers at one of them, and how long items wait beside polls that wait.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use forebay_proto::v1::EnqueueItem;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{sleep, timeout},
};
use tonic::transport::Channel;

use crate::{
    history::{Call, Event, History, Outcome, SettlementEnd, Verb},
    load::{LEASE, SettlementPlan, topics},
    rpc::{Rpc, WorstOutcome, payload},
    scenario::until,
};

/// Consumers, all of them at one node.
const CONSUMERS: u64 = 4;
/// How long a poll waits.
const WAIT: Duration = Duration::from_secs(5);
/// A poll is answered within this time, or its node does not answer.
const POLL_DEADLINE: Duration = Duration::from_secs(7);
/// A producer's pause between two calls: consumers are quicker, so that their polls wait.
const PAUSE: Duration = Duration::from_millis(40);
/// Calls of a producer without an answer. Some may hang while others go on.
const CALLS_MAX: usize = 30;
/// Items that are more urgent than all others of their shards are delivered within this time.
const CAUGHT_UP_WITHIN: Duration = Duration::from_secs(30);

/// Producers and consumers that work.
pub struct Work {
    /// Events that they saw.
    pub history: Arc<History>,
    /// Polls that were answered.
    polls: Arc<Mutex<Vec<Call>>>,
    /// Polls that failed.
    failed: Arc<AtomicU64>,
    /// The node that consumers ask.
    front: watch::Sender<Channel>,
    /// Numbers of items.
    numbers: Arc<AtomicU64>,
    /// Becomes true to end it.
    stop: watch::Sender<bool>,
    /// All of them.
    workers: JoinSet<()>,
}

/// A time in which items of some shards may wait.
#[derive(Debug)]
pub struct Excuse {
    /// Their shards.
    pub shards: BTreeSet<u64>,
    /// When it begins and ends, in times of the history.
    pub span: Call,
}

impl Work {
    /// Begins. There is a producer for each of these nodes; consumers ask `front`. Shards have numbers from 1
    /// on.
    pub fn start(nodes: Vec<Channel>, front: Channel, shards: u32) -> Self {
        let mut work = Self {
            history: Arc::new(History::new()),
            polls: Arc::default(),
            failed: Arc::default(),
            front: watch::Sender::new(front),
            numbers: Arc::new(AtomicU64::new(1)),
            stop: watch::Sender::new(false),
            workers: JoinSet::new(),
        };
        for (seed, node) in (0..).zip(nodes) {
            let producer = Producer {
                node,
                shards,
                random: StdRng::seed_from_u64(seed),
                history: work.history.clone(),
                numbers: work.numbers.clone(),
            };
            work.workers.spawn(producer.run(work.stop.subscribe()));
        }
        for seed in 0..CONSUMERS {
            let consumer = Consumer {
                front: work.front.subscribe(),
                random: StdRng::seed_from_u64(seed),
                history: work.history.clone(),
                polls: work.polls.clone(),
                failed: work.failed.clone(),
            };
            work.workers.spawn(consumer.run(work.stop.subscribe()));
        }
        work
    }

    /// From their next polls on, consumers ask this node.
    pub fn ask(&self, front: Channel) {
        self.front.send_replace(front);
    }

    /// How many polls have failed.
    pub fn failed_polls(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// How many deliveries have come since then: of these shards, and of the others.
    pub fn delivered_since(&self, from: Duration, shards: &BTreeSet<u64>) -> [usize; 2] {
        self.history.inspect(|events| {
            let ids = events.iter().filter_map(|event| match event {
                Event::Delivery { call, id, .. } if call.ended >= from => Some(id),
                _ => None,
            });
            let (theirs, others): (Vec<_>, Vec<_>) = ids.partition(|id| shards.contains(&shard_of(id)));
            [theirs.len(), others.len()]
        })
    }

    /// Stores items in these shards, at this node, and waits until they are delivered.
    pub async fn caught_up(&self, what: &str, node: Channel, shards: &BTreeSet<u64>) {
        let (mut items, mut rpc) = (Vec::new(), Rpc::new(node, &self.history));
        let stored = async || {
            items = self.first_items(shards);
            rpc.enqueue(&items, "").await == WorstOutcome::Done
        };
        until(&format!("{what}: items are stored"), CAUGHT_UP_WITHIN, stored).await;
        let wanted: BTreeSet<u64> = items.iter().map(|(number, _)| *number).collect();
        let came = async || {
            let delivered = |event: &Event| match event {
                Event::Delivery { item: Some(item), .. } => wanted.contains(item).then_some(*item),
                _ => None,
            };
            let came = |events: &[Event]| events.iter().filter_map(delivered).collect::<BTreeSet<_>>();
            self.history.inspect(came).len() == wanted.len()
        };
        until(&format!("{what}: they are delivered"), CAUGHT_UP_WITHIN, came).await;
    }

    /// Items that come before all others, one of each topic in each of these shards: others that come without
    /// end on a busy machine do not keep them.
    fn first_items(&self, shards: &BTreeSet<u64>) -> Vec<(u64, EnqueueItem)> {
        let mut items = Vec::new();
        for shard in shards {
            for topic in topics() {
                let number = self.numbers.fetch_add(1, Ordering::Relaxed);
                let (shard, payload) = (u32::try_from(*shard).ok(), payload(number).into());
                let item = EnqueueItem { topic, payload, shard, priority: -9, ..EnqueueItem::default() };
                items.push((number, EnqueueItem { max_attempts: 1_000, ..item }));
            }
        }
        items
    }

    /// Ends it. Returns the polls that were answered.
    pub async fn stop(mut self) -> Vec<Call> {
        self.stop.send_replace(true);
        while let Some(ended) = self.workers.join_next().await {
            ended.unwrap();
        }
        std::mem::take(&mut *self.polls.lock().unwrap())
    }
}

/// Number of the shard in an item's id.
fn shard_of(id: &str) -> u64 {
    id.split_once('-').unwrap().0.parse().unwrap()
}

struct Producer {
    node: Channel,
    shards: u32,
    random: StdRng,
    history: Arc<History>,
    numbers: Arc<AtomicU64>,
}

impl Producer {
    async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut calls = JoinSet::new();
        while timeout(PAUSE, stop.wait_for(|stop| *stop)).await.is_err() {
            while calls.len() >= CALLS_MAX {
                calls.join_next().await;
            }
            let (items, history, node) = (self.items(), self.history.clone(), self.node.clone());
            calls.spawn(async move { Rpc::new(node, &history).enqueue(&items, "").await });
        }
        calls.join_all().await;
    }

    /// Items of one call: for the shard that the node chooses, or one by chance.
    fn items(&mut self) -> Vec<(u64, EnqueueItem)> {
        let count = self.random.random_range(1..=3);
        let first = self.numbers.fetch_add(count, Ordering::Relaxed);
        let topics = topics();
        let shard = self.random.random_bool(0.5).then(|| self.random.random_range(1..=self.shards));
        let mut item = |number| EnqueueItem {
            topic: topics[self.random.random_range(0..topics.len())].clone(),
            priority: self.random.random_range(-3..=3),
            payload: payload(number).into(),
            max_attempts: 1_000,
            shard,
            ..EnqueueItem::default()
        };
        (first..first + count).map(|number| (number, item(number))).collect()
    }
}

struct Consumer {
    front: watch::Receiver<Channel>,
    random: StdRng,
    history: Arc<History>,
    polls: Arc<Mutex<Vec<Call>>>,
    failed: Arc<AtomicU64>,
}

impl Consumer {
    /// Polls all topics, again and again. Settlements are made meanwhile, since some may hang.
    async fn run(mut self, stop: watch::Receiver<bool>) {
        let mut settlements = JoinSet::new();
        while !*stop.borrow() {
            let front = self.front.borrow_and_update().clone();
            let history = self.history.clone();
            let mut rpc = Rpc::within(front.clone(), &history, POLL_DEADLINE);
            let began = history.now();
            let Some(items) = rpc.dequeue(&topics(), 5, WAIT, LEASE).await else {
                self.failed.fetch_add(1, Ordering::Relaxed);
                sleep(PAUSE).await;
                continue;
            };
            self.polls.lock().unwrap().push(Call { began, ended: history.now() });
            let plan = SettlementPlan::random(&mut self.random, items);
            settlements.spawn(async move { plan.settle(&mut Rpc::new(front, &history)).await });
            while settlements.try_join_next().is_some() {}
        }
        settlements.join_all().await;
    }
}

/// The longest time for which a ready item waited beside a poll, apart from excuses, and a line about it.
/// Items count from their enqueue, or from a nack, to the next delivery, if nothing was between the two.
pub fn longest_wait(events: &[Event], polls: &[Call], excuses: &[Excuse]) -> (Duration, String) {
    let mut ready = BTreeMap::<(&str, u32), Duration>::new();
    let mut of_receipt = BTreeMap::new();
    for event in events {
        if let Event::Delivery { id, receipt, attempt, .. } = event {
            of_receipt.insert(receipt, (id.as_str(), *attempt));
        }
    }
    for event in events {
        match event {
            Event::Enqueue { call, outcome: Outcome::Ok(id), .. } => {
                ready.entry((id, 1)).or_insert(call.ended);
            }
            Event::Settle { call, verb: Verb::Nack, receipt, settled: SettlementEnd::Ok } => {
                if let Some((id, attempt)) = of_receipt.get(receipt) {
                    ready.insert((id, attempt + 1), call.ended);
                }
            }
            _ => {}
        }
    }
    let mut longest = (Duration::ZERO, "nothing was delivered".to_owned());
    for event in events {
        let Event::Delivery { call, id, attempt, .. } = event else { continue };
        let Some(since) = ready.get(&(id.as_str(), *attempt)) else { continue };
        let wait = Call { began: *since, ended: call.ended };
        let own = excuses.iter().filter(|excuse| excuse.shards.contains(&shard_of(id)));
        let waited = waited(wait, polls, own.map(|excuse| excuse.span));
        if waited > longest.0 {
            longest = (waited, format!("{id}, attempt {attempt}, ready at {since:?}, came at {call:?}"));
        }
    }
    longest
}

/// How much of a time polls were there, apart from excuses.
fn waited(wait: Call, polls: &[Call], excuses: impl Iterator<Item = Call>) -> Duration {
    let within = |call: Call| {
        let (began, ended) = (call.began.max(wait.began), call.ended.min(wait.ended));
        (began < ended).then_some((began, ended))
    };
    // Each begin and end of a poll or an excuse is a change of the numbers of both.
    let mut changes = Vec::new();
    for (began, ended) in polls.iter().copied().filter_map(within) {
        changes.extend([(began, 1, 0), (ended, -1, 0)]);
    }
    for (began, ended) in excuses.filter_map(within) {
        changes.extend([(began, 0, 1), (ended, 0, -1)]);
    }
    changes.sort_unstable();
    let (mut waited, mut last, mut beside, mut excused) = (Duration::ZERO, wait.began, 0, 0);
    for (at, poll, excuse) in changes {
        if beside > 0 && excused == 0 {
            waited += at - last;
        }
        (last, beside, excused) = (at, beside + poll, excused + excuse);
    }
    waited
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(began: u64, ended: u64) -> Call {
        Call { began: Duration::from_secs(began), ended: Duration::from_secs(ended) }
    }

    fn delivery(at: Call, id: &str, attempt: u32) -> Event {
        let (id, receipt) = (id.to_owned(), format!("{id} {attempt}"));
        Event::Delivery { call: at, item: Some(1), id, receipt, attempt, lease: LEASE }
    }

    #[test]
    fn a_wait_counts_beside_polls_and_apart_from_excuses() {
        let (polls, none) = ([call(0, 4), call(3, 6), call(8, 20)], std::iter::empty);
        assert_eq!(waited(call(1, 10), &polls, none()), Duration::from_secs(7));
        assert_eq!(waited(call(1, 10), &polls, [call(2, 5), call(4, 9)].into_iter()), Duration::from_secs(2));
        assert_eq!(waited(call(6, 8), &polls, none()), Duration::ZERO);
    }

    #[test]
    fn an_item_waits_from_its_enqueue_or_its_nack_on() {
        let nack = |receipt: &str| Event::Settle {
            call: call(8, 9),
            verb: Verb::Nack,
            receipt: receipt.to_owned(),
            settled: SettlementEnd::Ok,
        };
        let stored = Event::Enqueue { call: call(0, 1), item: 1, outcome: Outcome::Ok("2-1".into()) };
        let mut events = vec![stored, delivery(call(3, 6), "2-1", 1)];
        let polls = [call(0, 30)];
        assert_eq!(longest_wait(&events, &polls, &[]).0, Duration::from_secs(5));
        events.extend([nack("2-1 1"), delivery(call(10, 20), "2-1", 2)]);
        assert_eq!(longest_wait(&events, &polls, &[]).0, Duration::from_secs(11));
        let excuse = |shard| Excuse { shards: BTreeSet::from([shard]), span: call(10, 20) };
        assert_eq!(longest_wait(&events, &polls, &[excuse(2)]).0, Duration::from_secs(5));
        assert_eq!(longest_wait(&events, &polls, &[excuse(3)]).0, Duration::from_secs(11));
    }
}
